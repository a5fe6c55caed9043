"""One line of ``py-spy dump``: what it is, whatever was done to it on its way into an issue. Pure.

The same lines come again in every dump, so what a line is found to be is remembered. Every pattern begins at the
line's start and is bounded: a line of a million characters is read in a few milliseconds.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from sparkdiag.dumps.kept import kept_frame, kept_id, kept_line, kept_name
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.evidence.dump import DumpFrame

LineKind = Literal[
    "frame",
    "glued",  # two frames, or a frame and a header, in one line
    "cut",  # a frame that ends in the middle
    "bare",  # a function's name alone
    "more",  # "..."
    "thread",
    "process",
    "parent",
    "python",
    "block",  # "Arguments:", "Locals:"
    "broken",  # pieces of a frame
    "other",
]
LONGEST_LINE = 8000
"""C++ templates take more than 1,000 characters; a longer line is cut."""


class ThreadHead(NamedTuple):
    """``Thread 123 (active+gil): "MainThread"``."""

    name: str | None
    thread_id: int | None
    os_thread_id: int | None
    state: Literal["active", "idle", "unknown"]
    owns_gil: bool


class Told(NamedTuple):
    """What a line is."""

    kind: LineKind
    frame: DumpFrame | None = None
    thread: ThreadHead | None = None
    pid: int | None = None
    text: str = ""
    """A process's title, a Python's version."""
    noted: bool = False
    """Somebody's comment stands behind the frame."""


_PYTHON_FRAME = re.compile(
    r"(?P<function>[^\s()]{0,1000})[ \t\xa0]*\((?P<path><[^<>()]{1,200}>|[^()]{1,400}?):(?P<line>\d{1,9})\)"
)
_FRAME_INSIDE = re.compile(
    r"\([^()\s]{1,400}\.(?:py|pyx|so)(?:\.\d+)*(?::\d{1,9})?\)|\bThread \S{1,20} \((?:active|idle)"
)
_PIECES = re.compile(r"\.py:\d|\.py\)|\(\w[\w./-]{1,200}\.py|Thread \d+ \(|File \"[^\"]{1,400}\.py\"")
_SENTENCE = 3
"""Plain words in a line that somebody wrote, and that names a file in passing."""
_PYTHON_NAME = re.compile(r"[\w.<>]+")
_DECORATION = re.compile(r"(?:[-*+•→⇒↳└├─│|>=]{1,8}|\d{1,3}[.):])[ \t\xa0]*(?=[\w<(?~])")
_C_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".cu", ".cuh", ".inl", ".rs", ".S")
_LIBRARY = re.compile(
    r"(?:[^\s()]*\.(?:so(?:\.[\w.+~-]+)?|dylib|dll|pyd|exe)|[^\s()]*python[\d.]*[a-z]?|lib[\w.+-]+|\[?vdso\]?"
    r"|(?:sglang|ray|VLLM)::[^\s()]+)"
)
_BARE = re.compile(
    r"(?!(?:VLLM|vllm|sglang)::|ray::[A-Z]|EngineCore|Worker_|VllmWorker|APIServer)(?=[^\s]*(?:_|::))[A-Za-z_~][\w:~.@$<>]{2,300}(?:\(\))?"
)
_C_NAMES = (
    "pthread_",
    "__",
    "cuda",
    "cu",
    "nccl",
    "sem_",
    "epoll",
    "clock_",
    "sched_",
    "futex",
    "PyThread_",
    "_Py",
    "std::",
)
_CUT = re.compile(r"(?P<function>[\w.<>]{2,300})[ \t]+\((?P<path>[^\s()]{0,400}|<frozen [\w.]{0,100}>?:?\d*)")
_MORE = re.compile(
    r"(?:\[|\(|<)?(?:\.{2,}|…)(?: ?\(?\d{1,6} more\b.{0,60})?(?:\]|\)|>)?|\[?\(?\d{1,6} more frames?.{0,40}"
)
_THREAD = re.compile(
    r"(?:\*\*|#{1,6} )?Thread(?:[ \t]+(?P<id>[^\s()]{1,60}))?[ \t]*"
    r"\((?P<state>(?:active|idle|unknown|running)[^()]{0,40})\)"
    r"[ \t]*(?::[ \t]*(?P<name>.*))?\Z",
    re.IGNORECASE,
)
_PROCESS = re.compile(
    r"(?:[=\-#*]{1,80}[ \t]*)?Process[ \t]+(?P<pid>\d{1,10})[ \t]*(?::[ \t]*(?P<title>.*)|[=\-#*]*)\Z"
)
_PARENT = re.compile(r"Parent Process \d{1,10}\b")
_VERSION = re.compile(r"Python v?(?P<version>\d\.\d{1,3}[\w.+]{0,20})(?:[ \t]*\(.*)?\Z")
_BLOCKS = frozenset({"Arguments:", "Locals:", "arguments:", "locals:"})
VARIABLE = re.compile(r"(?P<name>[^\W\d]\w{0,99})[ \t]*:(?:[ \t](?P<shown>.*))?\Z", re.DOTALL)
_OTHER = Told("other")


@lru_cache(maxsize=32768)
def told(text: str) -> Told:
    """What the line ``text``, white space at its ends removed, is."""
    text = text[:LONGEST_LINE]
    if text[-1] == ")" and (frame := _python_frame(text)) is not None:
        return frame  # nearly every line
    if text[0] in "`*" or text[-1] == "`":
        text = text.strip("`").removeprefix("**").strip()
        if not text:
            return _OTHER
    if (head := _header(text)) is not None:
        return head
    if text[0] in "-+•" and (decoration := _DECORATION.match(text)) is not None:
        head = _header(text[decoration.end() :])
        if head is not None and head.kind in ("thread", "process", "python"):
            return head
    return _framed(text) or _unframed(text)


def _header(text: str) -> Told | None:
    if text in _BLOCKS:
        return Told("block")
    if "Thread" in text[:12] and (thread := _THREAD.match(text)) is not None:
        return _glued(thread["name"] or "") or Told("thread", thread=_thread_head(thread))
    if "Process" in text[:100]:
        if (process := _PROCESS.match(text)) is not None:
            return Told("process", pid=kept_id(process["pid"]), text=process["title"] or "")
        if _PARENT.match(text):
            return Told("parent")
    if text.startswith("Python ") and (version := _VERSION.match(text)) is not None:
        return Told("python", text=version["version"])
    return None


def _glued(rest: str) -> Told | None:
    return Told("glued") if "(" in rest and _FRAME_INSIDE.search(rest) else None


def _thread_head(match: re.Match[str]) -> ThreadHead:
    state, name = match["state"].lower(), (match["name"] or "").strip().removesuffix("**")
    if name.startswith('"'):
        name = name[1:-1] if len(name) > 1 and name.endswith('"') else name[1:]
    own, _, ident = (match["id"] or "").partition("/")
    thread_id = kept_id(ident)
    os_thread_id = None
    if own[:2].lower() == "0x":
        thread_id = kept_id(own)
    elif own:
        os_thread_id = kept_id(own)
    return ThreadHead(
        name=kept_name(name) if name else None,
        thread_id=thread_id,
        os_thread_id=os_thread_id,
        state="idle"
        if state.startswith("idle")
        else "active"
        if state.startswith(("active", "running"))
        else "unknown",
        owns_gil="gil" in state,
    )


def _framed(text: str) -> Told | None:
    """A whole frame, with or without decoration before and a comment behind."""
    found = _python_frame(text) or _other_frame(text)
    if found is None and (decoration := _DECORATION.match(text)) is not None:
        rest = text[decoration.end() :]
        found = _python_frame(rest) or _other_frame(rest)
    return found


def _python_frame(text: str) -> Told | None:
    match = _PYTHON_FRAME.match(text)
    if match is None:
        return None
    function, path = match["function"], match["path"]
    if not _is_file(path) or (not function and not path.endswith((".py", ">"))):
        return None
    native = path.endswith(_C_SOURCES)
    frame = kept_frame(
        bare_native(function) if native else function or "<module>",  # GitHub takes ``<module>`` for a tag
        path=path,
        line=kept_line(match["line"]),
        native=native,
    )
    rest = text[match.end() :]
    if not rest:
        return Told("frame", frame)
    if _FRAME_INSIDE.search(rest):
        return Told("glued", frame)
    return Told("frame", frame, noted=True)


def _is_file(path: str) -> bool:
    if path[0] == "<":
        return True
    return ("." in path or "/" in path or "\\" in path) and (" " not in path or path[0] in "/~" or path[1:2] == ":")


def _other_frame(text: str) -> Told | None:
    """``function (library)``, ``function (path)``, and C++ names with blanks and parentheses of their own."""
    if text[-1] != ")":
        return None
    start = text.rfind("(")
    for _ in range(3):
        inside = text[start + 1 : -1]
        if start < 1 or inside.count(")") <= inside.count("("):
            break
        start = text.rfind("(", 0, start)
    if start < 1:
        return None
    function, inner = text[:start].rstrip(), text[start + 1 : -1]
    if not function or not inner or text[start - 1] not in " \t\xa0":
        return None
    path, line = inner, None
    before, colon, number = inner.rpartition(":")
    if colon and number.isdigit() and not before.endswith(":"):
        path, line = before, kept_line(number)
    is_source = path.endswith(_C_SOURCES) and " " not in path
    if is_source or (line is None and _LIBRARY.fullmatch(path)):
        if any(char.isspace() for char in function) and not any(
            sign in function for sign in ("::", "<", "(", "operator")
        ):
            return None
        return Told("frame", kept_frame(bare_native(function), path=path, line=line, native=True))
    if (
        _PYTHON_NAME.fullmatch(function)
        and _is_file(path)
        and (path.endswith((".py", ".pyx", ">")) or line is not None)
    ):
        return Told("frame", kept_frame(function, path=path, line=line))
    if function.startswith("0x") and function.isalnum() and " " not in path:
        return Told("frame", kept_frame(function, path=path, line=line, native=True))
    return None


def _unframed(text: str) -> Told:
    if _MORE.fullmatch(text):
        return Told("more")
    if _BARE.fullmatch(text):
        name = text.removesuffix("()")
        return Told("bare", kept_frame(name, native="::" in name or name.startswith(_C_NAMES)))
    if text.startswith("0x") and text.isalnum() and len(text) <= 18:
        return Told("frame", kept_frame(text, native=True))
    if (cut := _CUT.fullmatch(text)) is not None:
        path = cut["path"].rpartition(":")[0] if ":" in cut["path"] else ""
        return Told("cut", kept_frame(cut["function"], path=path or None))
    if _PIECES.search(text) and sum(word.isalpha() for word in text.split()) < _SENTENCE:
        return Told("broken")
    return _OTHER
