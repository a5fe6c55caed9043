"""A stored run, or whatever else is reported, as strangers may see it. Pure.

What was recorded holds no secrets that could be known when it was. Here they are looked for once more (an older
sparkdiag may have written the folder), and with them goes what tells whose machine it was.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.redaction import Redactions, Unclassified
from sparkdiag.evidence.stacks import Frame, ThreadStack
from sparkdiag.harmless.documents import NOT_RECORDED, redact_argv, redact_env
from sparkdiag.harmless.doubtful import doubtful, fingerprint, masked
from sparkdiag.harmless.identities import Identities
from sparkdiag.harmless.names import is_telling, kind_of, looks_random
from sparkdiag.harmless.public_text import PublicText
from sparkdiag.harmless.secrets import REDACTED

V = TypeVar("V", bound=Value)

_SHARED = (Frame, ThreadStack)
"""Many samples show the same ones."""
_ENV_FIELDS = ("env", "server_env")
_NAMING = ("name", "key")
_HOST_OPTIONS = frozenset({"--host", "--master-addr", "--master_addr", "--data-parallel-address"})
_WHY = "long and random, of no known shape"
_PAGE = "page"


def public(value: V, *, identities: Identities, accepted: frozenset[str] = frozenset()) -> tuple[V, Redactions]:
    """``value`` without secrets and without the names of machines and people, and what was replaced.

    Twice is the same as once. ``accepted``: fingerprints of what a person has seen to be no secret.
    """
    (made,), redactions = public_values(value, identities=identities, accepted=accepted)
    return cast("V", made), redactions


def public_values(
    *values: Value, identities: Identities, accepted: frozenset[str] = frozenset()
) -> tuple[tuple[Value, ...], Redactions]:
    """Several values of one report: the same host is called the same in all of them."""
    walk = _Walk(identities, accepted)
    for value in values:
        for text in _texts(value, set()):
            walk.text.learn(text)
    made = tuple(walk.value(value) for value in values)
    return made, walk.redactions


def public_page(text: str, *, identities: Identities, accepted: frozenset[str] = frozenset()) -> tuple[str, Redactions]:
    """A rendered page by the same rules: the last look before it is posted."""
    walk = _Walk(identities, accepted)
    walk.text.learn(text)
    made = walk.text(text)
    for number, line in enumerate(made.splitlines(), start=1):
        walk.look(line, where=f"line {number}")
    return made, walk.redactions


class _Walk:
    """Goes through values of one report. ``path`` is where it is."""

    def __init__(self, identities: Identities, accepted: frozenset[str]) -> None:
        self.text = PublicText(identities)
        self._accepted = accepted
        self._done: dict[int, Value] = {}
        self._looked: set[str] = set()
        self._path: list[str] = []
        self._unclassified: dict[str, Unclassified] = {}

    @property
    def redactions(self) -> Redactions:
        return Redactions(counts=dict(self.text.found.counts), unclassified=tuple(self._unclassified.values()))

    def look(self, text: str, *, where: str | None = None) -> None:
        """Note what in ``text`` nobody but a person can classify."""
        if text in self._looked:
            return
        self._looked.add(text)
        for token in doubtful(text):
            mark = fingerprint(token)
            if mark not in self._accepted and mark not in self._unclassified:
                place = ".".join(self._path) if where is None else where
                self._unclassified[mark] = Unclassified(where=place, looks=masked(token), fingerprint=mark, why=_WHY)

    def value(self, value: V) -> V:
        shared = isinstance(value, _SHARED)
        if shared and (known := self._done.get(id(value))) is not None:
            return cast("V", known)
        changes: dict[str, object] = {}
        for name in _text_fields(type(value)):
            old = getattr(value, name)
            new = self._under(name, old, folder=type(value).__name__)
            if new is not old:
                changes[name] = new
        made = value.model_copy(update=changes) if changes else value
        if shared:
            self._done[id(value)] = made
        return made

    def _under(self, name: str, value: Any, *, folder: str = "") -> Any:
        if not value or isinstance(value, (bool, int, float)):
            return value
        self._path.append(name)
        try:
            if name == "run_dir" and isinstance(value, str) and folder:
                value = _folder(value, of=folder)
            return self._any(value, name)
        finally:
            self._path.pop()

    def _any(self, value: Any, field: str) -> Any:
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, Value):
            return self.value(value)
        if isinstance(value, Mapping):
            return self._mapping(value, field)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, field)
        return value if not is_telling(field) or value is None or isinstance(value, bool) else self._gone()

    def _string(self, text: str, field: str) -> str:
        kind = kind_of(field)
        if text and text != REDACTED and (kind == "telling" or (kind == "hinting" and looks_random(text))):
            return self._gone()
        made = self.text(text)
        self.look(made)
        return made

    def _gone(self) -> str:
        self.text.found.counts["secret"] += 1
        return REDACTED

    def _sequence(self, items: list[Any] | tuple[Any, ...], field: str) -> Any:
        if is_telling(field):
            made: list[Any] = [self._gone() if item not in (REDACTED, None) else item for item in items]
        elif items and all(isinstance(item, str) for item in items):
            made = self._argv(items, field)
        else:
            made = [self._any(item, field) for item in items]
        if all(new is old for new, old in zip(made, items, strict=True)):
            return items
        return made if isinstance(items, list) else tuple(made)

    def _argv(self, items: list[Any] | tuple[Any, ...], field: str) -> list[Any]:
        made: list[Any] = []
        before = ""
        for old, clean in zip(items, redact_argv(items), strict=True):
            self.text.secrets(old, clean)
            host = before in _HOST_OPTIONS
            new = self._string(f"host={clean}", field).removeprefix("host=") if host else self._string(clean, field)
            made.append(old if new == old else new)
            before = old
        return made

    def _mapping(self, document: Mapping[Any, Any], field: str) -> Mapping[Any, Any]:
        if field in _ENV_FIELDS:
            document = self._env({str(name): str(value) for name, value in document.items()}, field)
        named = next((str(document[key]) for key in _NAMING if "value" in document and key in document), "")
        made: dict[Any, Any] = {}
        changed = field in _ENV_FIELDS
        for key, value in document.items():
            new_key = self._string(key, "") if isinstance(key, str) else key
            under = named if key == "value" and named else str(key)
            new = self._gone() if is_telling(field) and value not in (REDACTED, None) else self._under(under, value)
            changed = changed or new is not value or new_key is not key
            made[new_key] = new
        return made if changed else document

    def _env(self, env: dict[str, str], field: str) -> dict[str, str]:
        kept = redact_env(env, keep_names=field == "env")
        gone = sum(1 for name, value in env.items() if value != NOT_RECORDED and kept.get(name) in (None, NOT_RECORDED))
        if gone:
            self.text.found.counts["environment variable"] += gone
        for name, value in kept.items():
            if value != NOT_RECORDED:
                self.text.secrets(env.get(name, ""), value)
        return kept


def _folder(path: str, *, of: str) -> str:
    """A folder's name alone; a trial's stays where it is told from the bisection's own folder."""
    parts = PurePath(path)
    return path if of == "TrialResult" and not parts.is_absolute() else parts.name or path


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Every different text below ``value``; what many samples share is gone through once."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Value):
        if isinstance(value, _SHARED):
            if id(value) in seen:
                return
            seen.add(id(value))
        for name in _text_fields(type(value)):
            yield from _texts(getattr(value, name), seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item, seen)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, seen)


@lru_cache(maxsize=256)
def _text_fields(model: type[Value]) -> tuple[str, ...]:
    """The fields in which text from outside can stand: not numbers, and not words from a fixed list."""
    return tuple(name for name, field in model.model_fields.items() if _holds_text(field.annotation))


def _holds_text(annotation: Any) -> bool:
    if get_origin(annotation) is Literal or annotation in (int, float, bool, None, type(None)):
        return False
    arguments = get_args(annotation)
    return not arguments or annotation is Any or any(_holds_text(one) for one in arguments if one is not Ellipsis)
