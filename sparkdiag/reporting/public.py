"""A stored run, or whatever else is reported, as strangers may see it. Pure.

What was recorded holds no secrets that could be known when it was. Here they are looked for once more (an older
sparkdiag may have written the folder), and with them goes what tells whose machine it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_not
from pathlib import PurePath
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import TrialResult
from sparkdiag.evidence.redaction import Redactions, Unclassified
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.harmless.documents import ENV_FIELDS, NOT_RECORDED, redact_argv, redact_env
from sparkdiag.harmless.doubtful import doubtful, fingerprint, masked
from sparkdiag.harmless.identities import Identities
from sparkdiag.harmless.names import is_telling, kind_of, looks_random
from sparkdiag.harmless.public_text import PublicText
from sparkdiag.harmless.secrets import REDACTED, LineRedactor

V = TypeVar("V", bound=Value)

_SHARED = (Frame, ThreadStack)
"""Many samples show the same ones."""
_SHARED_KINDS = frozenset(_SHARED)
_PLACE = tuple(name for name in Frame.model_fields if name not in ("line", "locals"))
_NUMBERS = frozenset({int, float, bool, type(None)})
"""The kinds of what cannot hold a text. Nearly all that was kept of a frame's variables is of them."""
_NAMING = ("name", "key")
_LINES = ("last_log_lines",)
_HOST_OPTIONS = frozenset({"--host", "--master-addr", "--master_addr", "--data-parallel-address"})
_WHY = "long and random, of no known shape"
_PLAIN = "count"
"""A name that tells of no secret, whatever the keys below it say."""


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
        for text in _texts(value):
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
        self._places: dict[tuple[str | None, ...], dict[str, object]] = {}
        self._plain: set[tuple[object, ...]] = set()
        """A field and the keys below it, that stay as they are and tell of nothing secret."""
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
        """``value`` as strangers may see it; the same value where there is nothing to take out."""
        shared = isinstance(value, _SHARED)
        if shared and (known := self._done.get(id(value))) is not None:
            return cast("V", known)
        changes: dict[str, object] = {}
        if isinstance(value, Frame):
            self._frame(value, changes)
        else:
            for name in _text_fields(type(value)):
                self._field(value, name, changes)
        made = value.model_copy(update=changes) if changes else value
        if shared:
            self._done[id(value)] = made
        return made

    def _frame(self, frame: Frame, changes: dict[str, object]) -> None:
        """Where it is, many frames say; what its variables were, only this one."""
        place = tuple([getattr(frame, name) for name in _PLACE])
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = {}
            for name in _PLACE:
                self._field(frame, name, known)
        changes.update(known)
        if frame.locals:
            self._field(frame, "locals", changes)

    def _field(self, value: Value, name: str, changes: dict[str, object]) -> None:
        old = getattr(value, name)
        if old is None or old == ():
            return
        self._path.append(name)
        if name in _counts(type(value)):
            new: Any = self._mapping(old, _PLAIN)
        else:
            new = self._any(old, name)
            new = _folder(new, of=value) if name == "run_dir" else new
        self._path.pop()
        if new is not old:
            changes[name] = new

    def _samples(self, samples: Sequence[StackSample]) -> list[StackSample]:
        """The most numerous of all: tens of thousands, that show the same threads."""
        others = tuple(name for name in _text_fields(StackSample) if name != "threads")
        made: list[StackSample] = []
        self._path.append("threads")
        for sample in samples:
            changes: dict[str, object] = {}
            threads = tuple([self._done.get(id(thread)) or self.value(thread) for thread in sample.threads])
            if any(map(is_not, threads, sample.threads)):
                changes["threads"] = threads
            for name in others:
                if getattr(sample, name) is not None:
                    self._field(sample, name, changes)
            made.append(sample.model_copy(update=changes) if changes else sample)
        self._path.pop()
        return made

    def _any(self, value: Any, field: str) -> Any:
        if isinstance(value, str):
            return self._string(value, field)
        if isinstance(value, Value):
            return self.value(value)
        if isinstance(value, (dict, Mapping)):  # the abstract class is slow to ask
            return self._mapping(value, field)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, field)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return self._gone() if number and is_telling(field) else value

    def _string(self, text: str, field: str) -> str:
        kind = kind_of(field)
        if text not in ("", REDACTED, NOT_RECORDED) and (
            kind == "telling" or (kind == "hinting" and looks_random(text))
        ):
            return self._gone()
        made = self.text(text)
        self.look(made)
        return made

    def _gone(self) -> str:
        self.text.found.counts["secret"] += 1
        return REDACTED

    def _sequence(self, items: list[Any] | tuple[Any, ...], field: str) -> Any:
        made: Sequence[Any]
        kinds = frozenset(map(type, items))
        if not any(map(_may_hold_text, kinds)) and not (kinds <= _NUMBERS and is_telling(field)):
            return items
        if kinds == {StackSample}:
            made = self._samples(items)
        elif kinds <= _SHARED_KINDS:
            made = [self._done.get(id(item)) or self.value(item) for item in items]
        elif all(isinstance(item, str) for item in items):
            made = self._lines(items, field) if field in _LINES else self._argv(items, field)
        else:
            made = [self._any(item, field) for item in items]
        if not any(map(is_not, made, items)):
            return items
        return list(made) if isinstance(items, list) else tuple(made)

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

    def _lines(self, items: list[Any] | tuple[Any, ...], field: str) -> list[Any]:
        """Lines of a log: a key or a value may go on from one to the next, and none of them is an option."""
        redactor = LineRedactor()
        made: list[Any] = []
        for old in items:
            clean = "\n".join(map(redactor, old.split("\n")))
            self.text.secrets(old, clean)
            made.append(self._string(clean, field))
        return made

    def _mapping(self, document: Mapping[Any, Any], field: str) -> Mapping[Any, Any]:
        shape = (field, *document)
        if shape in self._plain:
            return self._below_plain_keys(document, field)
        if field in ENV_FIELDS:
            document = self._env({str(name): str(value) for name, value in document.items()}, field)
        named = next((str(document[key]) for key in _NAMING if "value" in document and key in document), "")
        made: dict[Any, Any] = {}
        for key, value in document.items():
            new_key = self._string(key, "") if isinstance(key, str) else key
            while new_key in made:
                new_key = f"{new_key} again"
            self._path.append("…" if any(doubtful(str(key))) else str(new_key))
            under = named if key == "value" and named else str(key)
            made[new_key] = self._any(value, field if field == _PLAIN or is_telling(field) else under)
            self._path.pop()
        if made != document:
            return made
        if not _tells(field, document):
            self._plain.add(shape)
        return document

    def _below_plain_keys(self, document: Mapping[str, Any], field: str) -> Mapping[str, Any]:
        """Tens of thousands of frames have the same variables, and a number below such a name is only a number."""
        if _NUMBERS.issuperset(map(type, document.values())):
            return document
        made: dict[str, Any] = {}
        for key, value in document.items():
            self._path.append(key)
            made[key] = self._any(value, field if field == _PLAIN else key)
            self._path.pop()
        return document if made == document else made

    def _env(self, env: dict[str, str], field: str) -> dict[str, str]:
        kept = redact_env(env, keep_names=field == "env")
        gone = sum(1 for name, value in env.items() if value != NOT_RECORDED and kept.get(name) in (None, NOT_RECORDED))
        if gone:
            self.text.found.counts["environment variable"] += gone
        for name, value in kept.items():
            if value != NOT_RECORDED:
                self.text.secrets(env.get(name, ""), value)
        return kept


def _folder(path: Any, *, of: Value) -> Any:
    """A folder's name alone; a trial's stays where it is told from the bisection's own folder."""
    if not isinstance(path, str):
        return path
    parts = PurePath(path)
    return path if isinstance(of, TrialResult) and not parts.is_absolute() else parts.name or path


def _texts(root: Value) -> set[str]:
    """Every different text below ``root``; what many samples share is gone through once."""
    found: set[str] = set()
    seen: set[int] = set()
    left: list[Any] = [root]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, (list, tuple)):
            left += _without_repeats(value, seen)
        elif isinstance(value, Value):
            if isinstance(value, _SHARED):
                if id(value) in seen:
                    continue
                seen.add(id(value))
            left += [getattr(value, name) for name in _text_fields(type(value))]
        elif isinstance(value, (dict, Mapping)):
            found.update(map(str, value))
            left += [below for below in value.values() if type(below) not in _NUMBERS]
    return found


def _without_repeats(values: Sequence[Any], seen: set[int]) -> Iterable[Any]:
    """``values`` but those that were ``seen``; where they are samples, in their place what they hold, each thread
    once."""
    kinds = frozenset(map(type, values))
    if not any(map(_may_hold_text, kinds)):
        return ()
    if kinds <= _SHARED_KINDS:
        return [value for value in values if id(value) not in seen]
    if kinds != {StackSample}:
        return values
    others = [name for name in _text_fields(StackSample) if name != "threads"]
    threads = {id(thread): thread for sample in values for thread in sample.threads}
    texts = {getattr(sample, name) for sample in values for name in others}
    return (*threads.values(), *texts)


def _tells(field: str, keys: Iterable[Any]) -> bool:
    """Whether what stands below ``keys`` has to be looked at one by one, whatever it is."""
    names = (field, *keys)
    return (
        field in ENV_FIELDS
        or "value" in names
        or any(not isinstance(name, str) or is_telling(name) or any(doubtful(name)) for name in names)
    )


@lru_cache(maxsize=256)
def _may_hold_text(kind: type) -> bool:
    return kind not in _NUMBERS and not (issubclass(kind, Value) and not _text_fields(kind))


@lru_cache(maxsize=256)
def _text_fields(model: type[Value]) -> tuple[str, ...]:
    """The fields in which text from outside can stand: not numbers, and not words from a fixed list."""
    return tuple(name for name, field in model.model_fields.items() if _holds_text(field.annotation))


@lru_cache(maxsize=256)
def _counts(model: type[Value]) -> frozenset[str]:
    """The fields of numbers by name: a number stays one."""
    fields = model.model_fields.items()
    return frozenset(name for name, field in fields if get_args(field.annotation)[1:] in ((int,), (float,)))


def _holds_text(annotation: Any) -> bool:
    if get_origin(annotation) is Literal or annotation in (int, float, bool, None, type(None)):
        return False
    arguments = get_args(annotation)
    return not arguments or annotation is Any or any(_holds_text(one) for one in arguments if one is not Ellipsis)
