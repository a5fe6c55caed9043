"""Secrets in text: what every line passes through on its way to a disk or a screen. Pure.

Two ideas: *shapes* (a token is known by its look, wherever it stands) and *names* (whatever follows ``--api-key``,
``Authorization:`` or ``HF_TOKEN=`` goes). When in doubt text is removed: a report misses a word, a key stays private.

What cannot be known: a secret without a telling look and without a telling name beside it (a password in a sentence, a
prompt, a key cut in two by a line end). Such things are kept out by not recording the field they come in.

Every step is linear in the length of a line: a name, a number of characters to look back, a value that is stepped over.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from sparkdiag.harmless.names import is_secret_option, kind_of, looks_chosen, looks_random
from sparkdiag.harmless.printable import hidden_characters, without_hidden, without_sequences
from sparkdiag.harmless.shapes import MARK, TELLTALES, without_shapes, without_spoken

REDACTED = MARK

_MOST_PASSES = 8
"""Removing one secret can lay bare the next; after this many passes it is as good as it gets."""
_MOST_KEY_LINES = 200
"""Lines that a private key's block may have (8192 bits take about 100); without an end it ends here."""
_MOST_VALUE_LINES = 20
_SHORT = 300
_FAR = 500

_KEY_BEGINS = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_ENDS = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_LINE = re.compile(r"\s*[A-Za-z0-9+/=]+\s*")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")

_DIGEST = re.compile(r"digest\s", re.IGNORECASE)
_URL_QUERY = re.compile(r"(?P<url>\bhttps?://[^\s?#]+)\?[^\s]+", re.IGNORECASE)
_HEADER = re.compile(
    r"(?P<quote>[\"']?)\b(?:(?:proxy-)?authori[sz]ation|(?:set-)?cookie)[\"']?\s*+(?:[:=]|,(?=\s*+b?[\"']))\s*+",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?P<head>\b(?:name|key)[\"']?\s*[:=]\s*[\"']?(?P<name>[\w.-]{1,100})[\"']?(?:\s*,\s*|(?<=[\"'])\s+)[\"']?value[\"']?\s*[:=]\s*+)",
    re.IGNORECASE,
)

_FLAG = re.compile(r"(?<![\w-])--?(?P<name>[A-Za-z][\w.-]{0,100}+)(?P<sep>=|[\"'],\s*+(?=[bru]?[\"'])|[ \t]++)")
_FLAG_WORD = re.compile(r"\\*\"[^\"\n]*\"|\\*'[^'\n]*'|(?!--)[^\s\"']+|[\"'](?=[^\s\"',\])}])")
_FLAG_GAP = re.compile(r"[ \t]+(?![\"']?--)|(?=[\"'][^\s\"',\])}])|(?<=[\"'])(?=[^\s\"',\])}])")
_FLAG_ITEM = re.compile(r"\s*+,\s*+(?![bru]?[\"']--)[bru]?(?:\"[^\"\n]*\"|'[^'\n]*')")

_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]++)"
    r"(?:(?:\\*[\"']|&quot;|&#3[49];)?\s*+(?:=>|:=|[:=：＝]|&#61;|(?<=\s)->(?=\s))\s*+|(?P<list>\\*[\"'],\s*+(?=[bru]?[\"']))|(?:%22)?%3[DdAa](?:%22)?|(?<=[\w-])>(?=[^\s<]))"
)
_HEX_ESCAPE = re.compile(r"(?:u?00)?[0-9A-Fa-f]{2}")
_BARE = (
    r"(?:\[redacted\]|[^\s,;&)}\]\"'%<]|[,;&](?!\s|$|[\"']|[\w.%-]{0,40}[=:])|[)}\]](?![\s,;:.)}\]\"']|$)"
    r"|%(?!(?:26|2C|3B)[\w.-]{1,40}%3D)|<(?!/)|[\"'](?=[\w!#$%*+/.-]))"
)
_VALUE = re.compile(
    r"(?P<open>[bru]{0,2}(?P<quote>\\*(?:\"\"\"|'''|[\"'])))(?P<body>(?:(?!(?P=quote))(?:\\.|[^\n]))*+)(?P<close>(?P=quote))"
    r"|(?P<cut>[bru]{0,2}\\*[\"'][^\n]*)"
    r"|(?P<list>(?!\[redacted\])(?:\[[^\]\n]*+\]?|\([^)\n]*+\)?))"
    r"|(?P<bare>(?:(?:bearer|basic|token|digest|negotiate)\s+(?=[^\s=:]))?" + _BARE + r"+)",
    re.IGNORECASE,
)
_HARMLESS = frozenset({"", "none", "null", "true", "false", "[]", "()", "{}", "[none]", REDACTED})
_GOING_ON = frozenset({"a", "an", "the", "no", "not", "is", "found", "set"})
_LETTERS = re.compile(r"[A-Za-z]+")
_NEXT_WORD = re.compile(r"[ \t]+(?![\w.-]+=|--)(?P<word>(?:" + _BARE + r")+)")
_OWN_WORDS = re.compile(
    r"(?<=: )(?:found (?:the name of a secret|nothing \(the key is missing\)|a variable [^\n;]{1,200}|[^\s;\"']{1,200})"
    r"; allowed: |a scenario is copied into run|a scenario is copied$)"
)
"""How a problem of a scenario reads: ``server.env.HF_TOKEN: found the name of a secret; allowed: ...``."""
_OWN_QUOTE = re.compile(r"(?P<own>found )(?:\"[^\"\n]*\"|'[^'\n]*')(?P<rest>; allowed: )")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_BRACKET = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'|[\[\](){}]")
_FILE = re.compile(r"\.(?:toml|jsonl?|ya?ml|txt|py|log|cfg|ini|conf|pem|html|md|gz|sh)\Z", re.IGNORECASE)
_TWO_WORDS = re.compile(r"(?<![\w.-])(?P<name>[A-Za-z]{2,12}[ \t](?:keys?|token))(?:\s*+[:=]\s*+)", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z]{2,12}[ \t](?:key|token|secret)|[\w.-]++)"
    r"(?:[ \t]++(?:is[ \t]++)?|[ \t]*+\|[ \t]*+)(?=[A-Za-z0-9+/_~%.-]{12})",
    re.IGNORECASE,
)
_BESIDE_VALUE = re.compile(r"[A-Za-z0-9+/_~%.-]++={0,2}(?![=\w])")
_FUNCTION = re.compile(r"_?[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){2,8}")
"""What a signature may be of that is none of a message."""
_LONG = re.compile(r"[A-Za-z0-9]{20,}")
_OPEN = re.compile(
    r"(?P<indent>\s*(?:- )?)(?:.*[^\w.-])?\\*[\"']?(?P<dashes>--?)?(?P<name>[A-Za-z_][\w.-]*+)[\"']?"
    r"(?P<sep>\s*+(?:=>|:=|[:=])\s*+(?:[|>][+-]?\d?|[\[({\"']|\"\"\"|''')?)?\s*\\?\s*"
)
_NAMES_NEXT = re.compile(
    r"\s*(?:- |[{,]\s*)?[\"']?(?:name|key)[\"']?\s*[:=]\s*[\"']?(?P<name>[\w.-]{1,100})[\"']?\s*,?\s*"
)
_VALUED = re.compile(r"\s*[\"']?value[\"']?\s*[:=]\s*(?!\[redacted\])(?=\S)", re.IGNORECASE)
"""``- name: DB_PASSWORD`` and in the next line ``value: ...``, as containers' settings are written."""
_LOG_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")


def redact_text(text: str) -> str:
    """``text`` without secrets of known shape or after known names. What is redacted already stays as it is."""
    return _redact_short(text) if len(text) <= _SHORT else _redact_lines(text)


@lru_cache(maxsize=4096)
def _redact_short(text: str) -> str:
    """Names of functions and files come again with every sample."""
    return _redact_lines(text)


def _redact_lines(text: str) -> str:
    if not _may_tell(text) and not hidden_characters(text, allowed="\n\r\t"):
        return text
    return "\n".join(map(LineRedactor(), text.split("\n")))


def without_queries(text: str) -> str:
    """``text`` with the query of every URL gone, for those who download: a signed one is all secret."""
    return _URL_QUERY.sub(lambda match: f"{match['url']}?{REDACTED}", text)


class LineRedactor:
    """Redacts a log line by line, line for line: keeps in mind that a private key or a value goes on.

    Within a private key only what looks like its lines is taken, for at most ``_MOST_KEY_LINES`` lines: what another
    process says in between stays, and a block that never ends does not swallow the log.
    """

    def __init__(self) -> None:
        self._key_lines = 0
        self._value_lines = 0
        self._indent = 0
        self._first = False
        self._named_before = False

    def __call__(self, line: str) -> str:
        """One line, its line end (if it has one) kept."""
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if self._value_lines and (taken := self._continued(body)) is not None:
            return taken + end
        if self._named_before:
            self._named_before = False
            if (valued := _VALUED.match(body)) is not None:
                return valued[0] + REDACTED + end
        kept = self._without_key(body)
        if not _may_tell(body) and not hidden_characters(body, allowed="\t"):
            return kept + end
        self._look_ahead(body)
        return _redact_line(kept) + end

    def _without_key(self, line: str) -> str:
        done, rest = "", line
        while True:
            begin, end = _KEY_BEGINS.search(rest), _KEY_ENDS.search(rest)
            if self._key_lines and (begin is None or (end is not None and end.start() < begin.start())):
                done += _without_key_lines(rest if end is None else rest[: end.start()])
                if end is None:
                    self._key_lines -= 1
                    return done
                self._key_lines, rest = 0, rest[end.end() :]
            elif begin is None:
                return done + rest
            else:
                before = rest[: begin.start()]
                done += (_without_key_lines(before) if self._key_lines else before) + REDACTED
                end = _KEY_ENDS.search(rest, begin.end())
                self._key_lines = 0 if end is not None else _MOST_KEY_LINES
                if end is None:
                    return done
                rest = rest[end.end() :]

    def _look_ahead(self, line: str) -> None:
        """Whether the line ends where a secret's value would begin: ``api_keys:`` of YAML, ``--api-key \\``."""
        named = _NAMES_NEXT.fullmatch(line) if len(line) < _SHORT else None
        self._named_before = named is not None and kind_of(named["name"]) == "telling"
        match = _OPEN.fullmatch(line[-_SHORT:])
        if match is None:
            return
        is_file = _is_file(line[-_SHORT:], *match.span("name"))
        by_name = match["sep"] and kind_of(match["name"]) == "telling" and not is_file
        by_option = match["dashes"] and not match["sep"] and is_secret_option(match["name"])
        if by_name or by_option:
            self._value_lines = _MOST_VALUE_LINES if by_name else 1
            self._indent = len(line) - len(line.lstrip())
            self._first = True

    def _continued(self, line: str) -> str | None:
        """The line as part of the value before it; None where the value is over."""
        stripped = line.lstrip()
        indent = len(line) - len(stripped)
        is_item = stripped.startswith("- ") or stripped[:1] in "\"'" or indent > self._indent
        if not stripped or not (self._first or is_item) or _LOG_LEVEL.search(line) or _KEY_BEGINS.search(line):
            self._value_lines = 0
            return None
        self._first = False
        self._value_lines -= 1
        return line[:indent] + REDACTED


def _without_key_lines(text: str) -> str:
    return REDACTED if _KEY_LINE.fullmatch(text) else _KEY_RUN.sub(REDACTED, text)


def _redact_line(line: str) -> str:
    """What draws nothing may stand in the middle of a token to hide it: where it does, it goes too."""
    if hidden_characters(line, allowed="\t"):
        bare = without_hidden(without_sequences(line))
        if bare != line and _redact_seen(bare) != bare:
            line = bare
    return _redact_seen(line)


def _redact_seen(line: str) -> str:
    for _ in range(_MOST_PASSES):
        before, line = line, _one_pass(line)
        if line == before:
            break
    return line


def _may_tell(text: str) -> bool:
    lower = text.lower()
    return any(telltale in lower for telltale in TELLTALES)


def _one_pass(line: str) -> str:
    lower = line.lower()
    line = without_shapes(line)
    if "authori" in lower or "cookie" in lower:
        line = _each(_HEADER, line, _header)
    line = without_spoken(line)
    if "-" in line:
        line = _each(_FLAG, line, _flag)
    if "value" in lower:
        line = _each(_PAIR, line, _named)
    line = _each(_NAME, line, _named)
    line = _each(_TWO_WORDS, line, _named)
    return _each(_BESIDE, line, _beside)


def _each(pattern: re.Pattern[str], line: str, take: Callable[[str, re.Match[str]], tuple[str, int] | None]) -> str:
    """``line`` with what follows each match replaced, as ``take`` says: by what, and up to where; None: nothing."""
    parts: list[str] = []
    done = 0
    for match in pattern.finditer(line):
        if match.start() < done:
            continue
        taken = take(line, match)
        if taken is not None:
            parts += (line[done : match.end()], taken[0])
            done = taken[1]
    return "".join((*parts, line[done:])) if parts else line


def _header(line: str, match: re.Match[str]) -> tuple[str, int] | None:
    """A header's value is the rest of the line, or of the string that it stands in."""
    start = match.end()
    value = _VALUE.match(line, start)
    if value is not None and value["quote"]:
        return _filled(value), value.end()
    quote = match["quote"]
    whole = not quote or _DIGEST.match(line, start)  # its parts are quoted themselves
    end = -1 if whole else line.find(quote, start)
    end = len(line) if end < 0 else end
    return (REDACTED, end) if end > start else None


def _flag(line: str, match: re.Match[str]) -> tuple[str, int] | None:
    """The values of a secret option, up to the next option: vLLM's ``--api-key`` takes several."""
    name = match["name"]
    if not is_secret_option(name) or (kind_of(name) == "hinting" and not match[0].startswith("--")):
        return None
    start = position = match.end()
    if match["sep"][0] in "\"'":
        position = _past(_FLAG_ITEM, line, start - 1, first=_VALUE.match(line, start))
        return (f"{line[start]}{REDACTED}{line[start]}", position) if line[start] in "\"'" else (REDACTED, position)
    word = _FLAG_WORD.match(line, position)
    while word is not None:
        position = word.end()
        gap = _FLAG_GAP.match(line, position)
        word = _FLAG_WORD.match(line, gap.end()) if gap is not None else None
    if position == start:
        return None
    inside = line[start:position]
    return (f"{inside[0]}{REDACTED}{inside[0]}" if inside[0] in "\"'" else REDACTED), position


def _past(pattern: re.Pattern[str], line: str, default: int, *, first: re.Match[str] | None) -> int:
    position = first.end() if first is not None else default + 1
    while (match := pattern.match(line, position)) is not None:
        position = match.end()
    return position


def _named(line: str, match: re.Match[str]) -> tuple[str, int] | None:
    kind, start = kind_of(_unescaped(line, match)), match.end()
    if kind == "plain" or _OWN_WORDS.match(line, start):
        return None
    if kind == "telling" and line[start : start + 1] == "{":
        end = _past_brackets(line, start)
        return None if line[start:end] == "{}" else (REDACTED, end)
    if (quoted := _OWN_QUOTE.match(line, start)) is not None:
        return f"{quoted['own']}{REDACTED}{quoted['rest']}", quoted.end()
    doubtful = kind == "hinting" or _is_file(line, *match.span("name"))
    # what may stay is looked at for a bounded length: the next name looks at the same text again
    value = _VALUE.match(line, start, start + _FAR if doubtful else len(line))
    if value is None:
        return None
    shown = value[0] if value["quote"] is None else value["body"]
    if shown.strip("\"'").lower() in _HARMLESS:
        return None
    end, last = _words_on(line, value, colon=":" in match[0], most=3 if doubtful else len(line))
    if doubtful and not _looks_secret(match["name"], last if end > value.end() else shown):
        return None
    if end > value.end():
        return REDACTED, end
    value = _VALUE.match(line, start) or value
    return _filled(value), value.end()


def _words_on(line: str, value: re.Match[str], *, colon: bool, most: int) -> tuple[int, str]:
    """Where a bare value of several words ends, and its last word: ``the hunter2pw`` goes as a whole.

    Behind ``=`` only an article and its like go on: in ``TOKEN=abc vllm serve`` a command follows.
    """
    end, last = value.end(), value[0]
    while value["bare"] and (last.lower() in _GOING_ON or last.endswith(":") or (colon and _LETTERS.fullmatch(last))):
        word = _NEXT_WORD.match(line, end)
        if word is None or most == 0:
            break
        most -= 1
        end, last = word.end(), word["word"]
    return end, last


def _looks_secret(name: str, value: str) -> bool:
    if value[:1] in "[(" and "tokens" in name.lower():
        return any(looks_random(item) for item in _QUOTED.findall(value))
    if _FUNCTION.fullmatch(value) and name.lower().endswith(("sig", "signature")):
        return False
    return looks_random(value) or looks_chosen(name, value)


def _is_file(line: str, start: int, end: int) -> bool:
    """``/etc/passwd: no such file``, ``secret.toml: TOML syntax``: a path before a colon names no setting."""
    return line[end : end + 2] in (":", ": ") and (
        line[:start].endswith("/") or _FILE.search(line[start:end]) is not None
    )


def _past_brackets(line: str, start: int) -> int:
    depth = 0
    for match in _BRACKET.finditer(line, start):
        depth += (match[0] in "{[(") - (match[0] in "}])")
        if depth == 0:
            return match.end()
    return len(line)


def _beside(line: str, match: re.Match[str]) -> tuple[str, int] | None:
    """``WANDB_API_KEY X rejected``: no sign between name and value, so that the value must look like one."""
    kind = kind_of(match["name"])
    value = None if kind == "plain" else _BESIDE_VALUE.match(line, match.end())
    if value is None or not looks_random(value[0]) or (kind == "hinting" and not _LONG.fullmatch(value[0])):
        return None
    return REDACTED, value.end()


def _unescaped(line: str, match: re.Match[str]) -> str:
    """The name without what is left of an escaped character before it (``\\napi_key``, ``%26api_key``)."""
    name, before = match["name"], line[match.start("name") - 1 : match.start("name")]
    if before == "\\" and name[0] in "nrtbfux":
        escape = _HEX_ESCAPE.match(name, 1) if name[0] in "ux" else None
        return name[escape.end() if escape else 1 :]
    return name[2:] if before == "%" and len(name) > 2 else name


def _filled(value: re.Match[str]) -> str:
    """The mark with the quotes of what it replaces, so that the text around it still reads."""
    if value["quote"] is not None:
        return value["open"] + REDACTED + value["close"]
    text = value[0]
    return REDACTED + (text[-1] if value["bare"] and text[-1] in "\"'" and len(text) > 1 else "")
