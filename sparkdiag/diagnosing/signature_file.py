"""``signatures.toml`` as values: read, checked, every problem told at once."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sparkdiag.diagnosing.patterns import FrameIndex, compile_sets
from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.diagnosis import CANNOT_TELL, DiagnosisKind
from sparkdiag.evidence.processes import Role

FILE = "signatures.toml"

Says = Literal["work", "step", "wait", "model", "aside", "rest"]
"""How much a signature says, most first; the file's head explains the words."""

SAYS: dict[Says, int] = {"work": 6, "step": 5, "wait": 4, "model": 3, "aside": 2, "rest": 1}

OWN_SETS = ("wrapper", "plumbing", "helper", "fork", "model", "side", "engine", "evidence")
"""Sets that the matching itself asks for."""


class SignatureFileError(SparkdiagError):
    """The signature file is wrong; ``details`` has one line a problem."""


class Signature(BaseModel):
    """One entry of the file, as written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    kind: DiagnosisKind
    says: Says
    meaning: str = Field(min_length=20)
    evidence: str = Field(min_length=10)
    next_step: str = Field(min_length=10)
    reference: str = Field(pattern=r"^https://\S+$")
    healthy: bool | None = None
    waits: bool = False
    leaf: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    stack: tuple[tuple[str, ...], ...] = ()
    absent: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    named: tuple[str, ...] = ()
    thread: Literal["main", "other", "any"] = "any"


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sets: dict[str, tuple[str, ...]] = Field(alias="set")
    signature: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A signature with its patterns as bits of the frame index. A mask of 0 asks for nothing."""

    signature: Signature
    order: int
    """Place in the file, the last thing that breaks a tie."""
    weight: int
    """From ``says``."""
    conditions: int
    leaf: int
    near: int
    stack: tuple[int, ...]
    absent: int
    decisive: int
    """The frames that the answer names: those of ``leaf``, else of ``near``, else of the first of ``stack``; 0: the
    innermost that says something."""


@dataclass(frozen=True, slots=True)
class Book:
    """All signatures, compiled."""

    rules: tuple[Rule, ...]
    index: FrameIndex
    wrapper: int
    plumbing: int
    helper: int
    fork: int
    model: int
    side: int
    engine: int
    evidence: int


@cache
def signature_book() -> Book:
    """The file that comes with sparkdiag, compiled once a process. Raises :class:`SignatureFileError`."""
    return read_book(files("sparkdiag.diagnosing").joinpath(FILE).read_text(encoding="utf-8"))


def read_book(text: str) -> Book:
    """A signature file's text, compiled. Raises :class:`SignatureFileError` with every problem in its ``details``."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong([f"no TOML: {error}"]) from None
    try:
        read = _File.model_validate(data)
    except ValidationError as error:
        raise _wrong(_from_pydantic(data, error)) from None
    problems = list(_contradictions(read))
    sets = dict(read.sets)
    for signature in read.signature:
        for place, patterns in _places(signature).items():
            sets[f"{signature.id}.{place}"] = patterns
    try:
        index = compile_sets(sets)
    except ValueError as error:
        raise _wrong([*problems, *str(error).splitlines()]) from None
    if problems:
        raise _wrong(problems)
    rules = tuple(_rule(signature, order, index) for order, signature in enumerate(read.signature))
    return Book(rules=rules, index=index, **{name: index.bit(name) for name in OWN_SETS})


def _places(signature: Signature) -> dict[str, tuple[str, ...]]:
    """The sets of patterns that one signature brings, by where they are asked for."""
    stack = {f"stack[{number}]": patterns for number, patterns in enumerate(signature.stack)}
    named = {
        "leaf": signature.leaf,
        "near": signature.near,
        "absent": signature.absent,
    }
    return {place: patterns for place, patterns in {**named, **stack}.items() if patterns}


def _rule(signature: Signature, order: int, index: FrameIndex) -> Rule:
    bits = {place: index.bit(f"{signature.id}.{place}") for place in _places(signature)}
    stack = tuple(bits[f"stack[{number}]"] for number in range(len(signature.stack)))
    leaf, near = bits.get("leaf", 0), bits.get("near", 0)
    return Rule(
        signature=signature,
        order=order,
        weight=SAYS[signature.says],
        conditions=len(bits) + bool(signature.roles) + bool(signature.named),
        leaf=leaf,
        near=near,
        stack=stack,
        absent=bits.get("absent", 0),
        decisive=leaf or near or (stack[0] if stack else 0),
    )


def _contradictions(read: _File) -> Iterable[str]:
    seen: set[str] = set()
    for name in OWN_SETS:
        if name not in read.sets:
            yield f"set.{name}: is missing"
    for signature in read.signature:
        if signature.id in seen:
            yield f"{signature.id}: the id is there twice"
        seen.add(signature.id)
        if not (signature.leaf or signature.near or signature.stack or signature.named):
            yield f"{signature.id}: says of no frame that it must be there (leaf, near or stack), and of no name"
        if signature.kind in CANNOT_TELL:
            yield f"{signature.id}: {signature.kind} is what is said where no signature fits"
        if signature.kind == "idle" and signature.says not in ("rest", "aside"):
            yield f"{signature.id}: idle must not outweigh what another thread does (says = 'rest' or 'aside')"
        for place, patterns in _places(signature).items():
            if all(pattern.startswith("!") for pattern in patterns):
                yield f"{signature.id}.{place}: only says what it is not"
    ids = {signature.id for signature in read.signature}
    for name in read.sets:
        if name in ids:
            yield f"set.{name}: a signature has this name"


def _from_pydantic(data: Mapping[str, object], error: ValidationError) -> list[str]:
    """One line a problem, with the signature's id in place of its number where it has one."""
    listed = data.get("signature")
    entries = listed if isinstance(listed, list) else []
    lines = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        place = list(each["loc"])
        if len(place) > 1 and place[0] == "signature" and isinstance(place[1], int) and place[1] < len(entries):
            entry = entries[place[1]]
            name = entry.get("id", f"signature {place[1] + 1}") if isinstance(entry, dict) else place[1]
            place = [name, *place[2:]]
        lines.append(f"{'.'.join(map(str, place))}: {each['msg']}")
    return lines


def _wrong(problems: list[str]) -> SignatureFileError:
    count = f"{len(problems)} problems" if len(problems) > 1 else "a problem"
    return SignatureFileError(
        f"{FILE} has {count}", remedy="install sparkdiag again: the file comes with it", details=tuple(problems)
    )
