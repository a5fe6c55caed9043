"""A value with a text in every field that may hold any: what frames, paths, prompts, logs and subjects could say."""

from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, JsonValue

M = TypeVar("M", bound=BaseModel)

HOSTILE = (
    "</details></summary><script>alert(1)</script>",
    "``` \n\n# heading\n\n```",
    "```mermaid\ngraph TD; A-->B\n```",
    "~~~~\n| a | b |\n|---|---|\n| c | d |",
    "@octocat and @org/team fixes #1, closes owner/repo#5 resolves GH-12",
    "deadbeefcafe 03c767c50c34951ecbff9d5a8e59c093931d43e9 owner/repo@03c767c50c34951ecbff9d5a8e59c093931d43e9",
    "https://evil.example/a www.evil.example mail@evil.example [x](javascript:y) ![x](http://y) <img src=x onerror=y>",
    "\x1b[2J\u202e\x00\u200b\u2066",
    "<!-- sparkdiag:comment --> -->",
    "||| | pipe \\| pipe",
    "`",
    "a``b```c````",
    "$x$ $$y$$ \\(z\\) :+1: :tada: [^1] [^1]: note",
    "- [ ] task\n- [x] task",
    "Setext\n======\n\nSetext\n------",
    "> quoted\n\n1. one\n2. two\n\n    code",
    "+ plus",
    "1. one",
    "- minus",
    "***bold*** __bold__ ~~gone~~ &lt;b&gt; &#64;octocat",
    "\\@octocat \\#1 \\`",
    "＠octocat ＃1",
    "\u2028@octocat\u2029#1",
    "VLLM-123 deadbeef-cafe (#1) (@octocat) 'GH-1'",
)


def planted(value: M, text: str, *, but: frozenset[str] = frozenset()) -> M:
    """``value`` with ``text`` in every string that is not one of a fixed few; fields named in ``but`` stay."""
    changes: dict[str, Any] = {
        name: _planted(getattr(value, name), field.annotation, text, but)
        for name, field in type(value).model_fields.items()
        if name not in but
    }
    return value.model_copy(update=changes)


def _planted(value: Any, kind: Any, text: str, but: frozenset[str]) -> Any:
    if isinstance(value, BaseModel):
        return planted(value, text, but=but)
    if isinstance(value, str):
        return value if _is_fixed(kind) else text
    if isinstance(value, tuple | list):
        inner = next((one for one in get_args(kind) if one is not Ellipsis), None)
        return type(value)(_planted(one, inner, text, but) for one in value)
    if isinstance(value, dict):
        return {
            key if key in _KEPT_KEYS else f"{text}{place}": _planted(one, None, text, but)
            if key not in _KEPT_KEYS
            else one
            for place, (key, one) in enumerate(value.items())
        }
    return value


_KEPT_KEYS = {"watched", "kind", "revision_sha"}
"""Of free documents: what the page asks for by name."""


def _is_fixed(kind: Any) -> bool:
    """``Literal`` alone, or with None."""
    if get_origin(kind) is Literal:
        return True
    options = [one for one in get_args(kind) if one is not NoneType]
    return bool(options) and kind is not JsonValue and all(get_origin(one) is Literal for one in options)
