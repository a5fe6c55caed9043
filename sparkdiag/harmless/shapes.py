"""Secrets that are known by their look, wherever they stand, and those that a fixed word announces. Pure.

Every pattern is linear in the length of a line.
"""

import re

from sparkdiag.harmless.names import is_basic, kind_of, looks_random

MARK = "[redacted]"

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
"""Where a token may begin: not inside a word, but right behind an escaped character."""
TELLTALES = (
    "key", "token", "secret", "pass", "pwd", "pat", "cred", "auth", "cookie", "bearer", "basic", "sig", "otp", "jwt",
    "login", "policy", "expires", "code", "amz", "goog", "@", "%40", "begin", "-u", "--user", "hf_", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "glpat", "gldt", "glrt", "glcbt", "glptt", "glft", "glsoat", "sk-", "sk_", "rk_",
    "api_org_", "nvapi", "xox", "xapp", "akia", "asia", "aiza", "ya29", "eyj", "pypi-", "npm_", "gsk_", "hvs.",
    "dop_", "sg.", "r8_", "dckr_", "gocspx", "pplx-", "xai-", "csk-", "tvly-", "lsv2_", "dapi", "whsec_", "tgp_v1_",
    "shpat_", "sntrys_", "lin_api", "pcsk_", "figd_", "sq0", "jina_", "ntn_", "pmak-", "hvb.", "atatt", "pk_", "hooks",
    "telegram", "digest", "negotiate", "ntlm", "headers", "sessid", "session", "pw", ":aa", "ls__", "dp.pt.",
    "--api", "--hf", "hrku-", "atbb", "tskey", "glsa_", "glc_", "nrak-", "ccipat", "rubygems_", "rpa_", "wandb_v1",
    "fm2_", "fo1_", "ltai", "akid", "sbp_", "azdo", "setenv", "密码", "密碼", "パスワード", "пароль",
    "contraseña", "mot de passe",
)  # fmt: skip
"""A line without any of these (in lower case) is left as it is: nearly all of them. Far cheaper than the patterns."""
_SHAPES = re.compile(
    r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{16,}|nvapi-[A-Za-z0-9_-]{16,}|" + _EDGE + r"(?:"
    r"hf_(?:[A-Za-z0-9]{16,}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{8,})|api_org_[A-Za-z0-9]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,}"
    r"|sk-(?:[A-Za-z0-9_-]{16,}|(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{8,})|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|nvapi-[A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{16,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|pypi-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|hv[sb]\.[A-Za-z0-9_-]{16,}"
    r"|dop_v1_[a-f0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}|r8_[A-Za-z0-9]{16,}"
    r"|dckr_[po]at_[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}|tvly-[A-Za-z0-9-]{16,}|(?:pplx|xai|csk)-[A-Za-z0-9]{20,}"
    r"|lsv2_(?:pt|sk)_[A-Za-z0-9]{16,}|dapi[0-9a-f]{32}|AGE-SECRET-KEY-[A-Z0-9]{16,}|whsec_[A-Za-z0-9+/]{16,}"
    r"|tgp_v1_[A-Za-z0-9_-]{16,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}|sntrys_[A-Za-z0-9+/=_-]{16,}|lin_api_[A-Za-z0-9]{16,}"
    r"|pcsk_[A-Za-z0-9_]{16,}|figd_[A-Za-z0-9_-]{16,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{16,}|(?:jina|ntn)_[A-Za-z0-9]{20,}"
    r"|key-[0-9a-f]{32}|secret_[A-Za-z0-9]{40,}|ls__[0-9a-f]{32}|dp\.pt\.[A-Za-z0-9]{32,}"
    r"|HRKU-[A-Za-z0-9_-]{20,}|ATBB[A-Za-z0-9]{28,}|tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}|gl(?:sa|c)_[A-Za-z0-9_]{24,}"
    r"|NRAK-[A-Z0-9]{20,}|CCIPAT_[A-Za-z0-9_]{20,}|rubygems_[0-9a-f]{40,}|rpa_[A-Z0-9]{30,}|hf_oauth_[A-Za-z0-9_-]{16,}"
    r"|wandb_v1_[A-Za-z0-9_-]{20,}|(?:fm2|fo1)_[A-Za-z0-9_-]{30,}|sk_[0-9a-f]{48}|LTAI[A-Za-z0-9]{16,24}(?![A-Za-z0-9])"
    r"|AKID[A-Za-z0-9]{28,36}(?![A-Za-z0-9])|sbp_[0-9a-f]{40}|[A-Za-z0-9]{32,72}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"
    r"|PMAK-[a-f0-9]{16,}|ATATT3x[A-Za-z0-9_=-]{16,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"
    r"))[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
)
"""With whatever hangs on to the token: a second one glued to it goes too."""
_DOTTED = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)+")
_JWT = re.compile(_EDGE + r"eyJ[A-Za-z0-9_-]{6,}\.")
_AWS_KEY = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])")
_AWS_ID = re.compile(_EDGE + r"(?:AKIA|ASIA)[0-9A-Z]{16}")


_USERINFO = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://|\b(?:https?|ssh|git(?:\+[a-z]+)?|ftp):/)(?!USER:PASSWORD@)(?:\[redacted\]|[^\s/?#\"'<>\[\]])+@"
)
_USERINFO_ODD = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?!USER:PASSWORD@)[^\s/?#:@\"'<>\[\]]{0,64}:(?!\d{1,5}(?:[/?#\s]|$))"
    r"[^\s@\"'<>\[\]]{1,256}@(?=[\w-])"
)
"""A password with ``/`` or ``#`` in it, which is no valid URL and is written all the same; a port is none."""
_USERINFO_ENCODED = re.compile(r"(?P<scheme>%3A%2F%2F)(?:[^%\s&\"'<>]|%(?!40|2F))+%40", re.IGNORECASE)
_USERINFO_BARE = re.compile(
    r"(?<![\w.+/:@-])(?!overlay:[\w.~^-]+@(?:existing|release):)"  # an environment as sparkdiag names it
    r"(?://)?[\w.+-]{1,64}:[^\s:@/\"'<>\[\](){},;=]{3,256}@(?=[\w-]+[.:])"
)
_QUERY = re.compile(
    r"(?P<name>(?:[?&;#]|%26|%3F)(?:amp;)?(?:x-(?:amz|goog|ms|oss)-[a-z0-9-]+|awsaccesskeyid|googleaccessid"
    r"|ossaccesskeyid|signature|sig|policy|key-pair-id|(?:[a-z]+[_-])?token|auth|jwt|session(?:_?id)?|(?:api[_-]?)?key|secret|password|credential"
    r"|expires|code)(?:=|%3D))[^&\s\"'<>]+",
    re.IGNORECASE,
)

_SCHEME = re.compile(r"\b(?P<word>bearer)\s+(?!\[redacted\])[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_BASIC = re.compile(r"\b(?P<word>basic)\s+(?P<value>[A-Za-z0-9+/_-]{4,}={0,2})", re.IGNORECASE)
_USER_OPTION = re.compile(
    r"(?<!\S)(?P<flag>-u|--user(?=[ =])|--proxy-user(?=[ =]))(?P<sep>[ =]?[\"']?)[^\s:\"']+:[^\s\"']+"
)
_NETRC = re.compile(
    r"(?P<login>\b(?:login\s+\S{1,256}|machine\s+\S{1,256}(?:\s+login\s+\S{1,256})?)\s+password\s+|^\s*+password\s+(?=\S+\s*$))"
    r"(?!\[redacted\])\S+",
    re.IGNORECASE,
)
"""``machine h login u password p``, in one line or each pair in its own."""
_LOGIN = re.compile(r"(?P<login>\blogin\s+(?:-\S{1,40}\s+){0,3})[A-Za-z0-9_-]{32,}", re.IGNORECASE)
"""``wandb login KEY``."""
_SSHPASS = re.compile(r"(?P<login>\bsshpass\s+-p[ ]*)(?!\[redacted\])[^\s\[]\S*")
_LOGIN_OPTION = re.compile(
    r"(?P<login>\blogin\s(?:[^\s\[]{1,80}\s{1,4}){0,6}?-p[ =]?)(?!\[redacted\])[^\s\[-]\S*", re.IGNORECASE
)
"""``docker login -u x -p PASSWORD``."""
_AUTH_PAIR = re.compile(
    r"(?P<login>\b(?:(?:basic_?)?auth[\"']?\s{0,2}[:=]\s{0,2}|HTTP(?:Basic|Digest)Auth|BasicAuth)\([\"'][^\"'\n]{0,100}[\"'],\s{0,4})"
    r"(?![\"']\[redacted\])(?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')",
    re.IGNORECASE,
)
"""``auth=('user', 'password')``, as HTTP clients are told."""
_SET = re.compile(
    r"(?P<login>(?:\bENV|\bsetenv|\bset -g?x)\s{1,4}(?P<name>[A-Za-z_]\w{1,99})\s{1,4})(?!\[redacted\])[^\s=]\S*"
)
"""A variable in a shell's or a container's own grammar."""
_ABROAD = re.compile(
    r"(?P<login>(?:密码|密碼|パスワード|пароль|contraseña|mot de passe)\s{0,4}[:=：＝]\s{0,4})(?!\[redacted\])\S+",
    re.IGNORECASE,
)
_DIGEST = re.compile(r"\b(?P<word>digest)\s+(?=[A-Za-z]{1,20}=)[^\n]+", re.IGNORECASE)
_TICKET = re.compile(r"\b(?P<word>negotiate|ntlm|kerberos)\s+[A-Za-z0-9+/._~-]{16,}={0,2}", re.IGNORECASE)
_HOOK = re.compile(
    r"(?P<where>\bhooks\.slack(?:-gov)?\.com/[a-z]{1,20}/|\bdiscord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/"
    r"|\bapi\.telegram\.org/(?:file/)?bot)(?!\[redacted\])[^\s\"'<>]+",
    re.IGNORECASE,
)
"""Whoever knows the address of a webhook may post to it."""

_TOLD = (
    ("password", _NETRC),
    ("login", _LOGIN),
    ("login", _LOGIN_OPTION),
    ("auth", _AUTH_PAIR),
    ("sshpass", _SSHPASS),
    ("mot de passe", _ABROAD),
)


def without_shapes(line: str) -> str:
    """``line`` without what is known by its look alone, wherever it stands: tokens, a URL's password and signature."""
    if "@" in line or "%40" in line:
        line = _USERINFO.sub(lambda match: f"{match['scheme']}{MARK}@", line)
        line = _USERINFO_ODD.sub(lambda match: f"{match['scheme']}{MARK}@", line)
        line = _USERINFO_ENCODED.sub(lambda match: f"{match['scheme']}{MARK}%40", line)
        line = _USERINFO_BARE.sub(f"{MARK}@", line)
    if _AWS_ID.search(line):
        line = _AWS_KEY.sub(MARK, line)
    line = _SHAPES.sub(MARK, line)
    if "eyJ" in line:
        line = _DOTTED.sub(_without_jwt, line)
    lower = line.lower()
    if "=" in line or "%3d" in lower:
        line = _QUERY.sub(lambda match: match["name"] + MARK, line)
    if "hooks" in lower or "telegram" in lower:
        line = _HOOK.sub(lambda match: match["where"] + MARK, line)
    return line


def without_spoken(line: str) -> str:
    """``line`` without what follows a word of HTTP's or of a program's own grammar (``Bearer``, netrc, ``curl -u``)."""
    lower = line.lower()
    if "bearer" in lower or "basic" in lower:
        line = _SCHEME.sub(lambda match: f"{match['word']} {MARK}", line)
        line = _BASIC.sub(_basic, line)
    if "digest" in lower:
        line = _DIGEST.sub(lambda match: f"{match['word']} {MARK}", line)
    if "negotiate" in lower or "ntlm" in lower or "kerberos" in lower:
        line = _TICKET.sub(lambda match: f"{match['word']} {MARK}", line)
    if "-u" in line or "-user" in line:
        line = _USER_OPTION.sub(lambda match: f"{match['flag']}{match['sep']}{MARK}", line)
    if "ENV" in line or "set" in lower:
        line = _SET.sub(lambda match: match["login"] + MARK if kind_of(match["name"]) == "telling" else match[0], line)
    if not line.isascii():
        line = _ABROAD.sub(lambda match: match["login"] + MARK, line)
    for told, pattern in _TOLD:
        if told in lower:
            line = pattern.sub(lambda match: match["login"] + MARK, line)
    return line


def _without_jwt(match: re.Match[str]) -> str:
    """JSON in base64 with a dot behind it, and all that hangs on to it."""
    found = _JWT.search(match[0])
    return match[0] if found is None else match[0][: found.start()] + MARK


def _basic(match: re.Match[str]) -> str:
    is_secret = is_basic(match["value"].rstrip("=")) or looks_random(match["value"])
    return f"{match['word']} {MARK}" if is_secret else match[0]
