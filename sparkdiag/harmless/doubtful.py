"""Texts that may be a secret of a shape that nobody knows: long, of many kinds of characters, and no word. Pure.

Hashes, numbers, names of functions, of wheels and of models are none of these: they are made of words, of runs of one
kind of character, or of hexadecimal digits alone.
"""

import hashlib
import re
from collections.abc import Iterator

_SHORTEST = 20
_SHORTEST_WHOLE = 24
_CANDIDATE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[_+/=~-](?=[A-Za-z0-9])){19,}={0,2}")
_DATA = re.compile(r"\bdata:[\w/+.-]{0,60};base64,[A-Za-z0-9+/=]*")
_HEX = re.compile(r"[0-9a-f]{7,40}|[0-9a-f]{64}|[0-9A-F]{7,40}|[0-9A-F]{64}")
_CACHED = re.compile(r"(?:inductor|triton|torch_compile_cache|\.cache|hub)[^\s\"']*/\Z")
_TRITON = re.compile(r"(?:\d{1,2}(?:de|d|c|e)?)+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_STAMP = re.compile(r"\d{8}T\d{6}Z?|\d+")
_SPECIAL = re.compile(r"[^A-Za-z0-9]")
_PAIRS = """
th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro
ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so
rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl
ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ui fr oo ag if ap gr od bo sp rd do uc bu ei ov by rm ep tt
oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru ug ds lt pi rc rr eg au ck
ew mu br bi pt ak pu ui rg ib tl ny ki rk ys ob mm fu ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn nu af
hu nn eo vo rv nf xp gn sm fl iz ok nl my gl aw ju oa eq sy sl ps jo lf nv je nk kn gs dy hy ze ks xt bs ik dd
pt rp sk xi oe oy ws lv dl rf eu dg wr xa yi nm eb rb tm xc eh tc gy ja hn yp za gg ym sw bj lm cs ii ix xe oh
lk dv lp ax ox uf dm iu sf bt ka yt ek pm ya gt wl rh yl hs ah yc yb hl kv gp mq fp
"""
_COMMON_PAIRS = frozenset(_PAIRS.split())
"""Pairs of letters that words and the names of code are made of: half of all pairs, and nearly all in words."""
_LEAST_WORDLIKE = 0.62
_SHORT_RUNS = 2.75


def doubtful(text: str) -> Iterator[str]:
    """The parts of ``text`` of which nobody but a person can tell whether they are secrets."""
    if len(text) < _SHORTEST:
        return
    if "base64," in text:
        text = _DATA.sub("", text)
    for match in _CANDIDATE.finditer(text):
        whole = match[0]
        if _CACHED.search(text[max(0, match.start() - 200) : match.start()]) or whole.startswith("_Z"):
            continue
        if _is_random_whole(whole):
            yield whole
        else:
            yield from filter(_is_random, _SPECIAL.split(whole))


def fingerprint(token: str) -> str:
    """What a person names ``token`` by: eight hex digits of its SHA-256."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()[:8]


def masked(token: str) -> str:
    """Enough of ``token`` to find it again, too little to use it."""
    return f"{token[:4]}… ({len(token)} characters)"


def _is_random_whole(token: str) -> bool:
    """Base64 has few other characters than letters and digits; names of models, folders and wheels have many."""
    parts = [part for part in _SPECIAL.split(token) if part]
    unknown = [part for part in parts if not (_HEX.fullmatch(part) or _STAMP.fullmatch(part))]
    bare = "".join(unknown)
    return len(bare) >= _SHORTEST_WHOLE and len(unknown) <= 1 + len(bare) / 10 and _is_random(bare)


def _is_random(token: str) -> bool:
    if len(token) < _SHORTEST or token.isdecimal() or _HEX.fullmatch(token) or _TRITON.fullmatch(token):
        return False
    pairs = [token[at : at + 2].lower() for at in range(len(token) - 1) if token[at : at + 2].isalpha()]
    wordlike = sum(pair in _COMMON_PAIRS for pair in pairs) / len(pairs) if pairs else 0.0
    short_runs = len(token) / len(_WORD.findall(token)) < _SHORT_RUNS
    return wordlike < _LEAST_WORDLIKE and (short_runs or token.isalpha() or wordlike < 0.5)
