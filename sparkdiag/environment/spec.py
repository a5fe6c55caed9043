"""Environment specs as typed by people: ``lab``, ``existing:PYTHON``, ``release:VERSION``, ``overlay:REV[@BASE]``,
``precompiled:REV[@WHEEL_COMMIT]``, ``source:REV``. Pure."""

import re

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value

LAB_RELEASE = "0.32.0"
"""The vLLM release the embedded lab is written for and tested on."""

ALLOWED = (
    "lab, existing:PYTHON (or a venv folder, or a vllm executable), release:VERSION, "
    "overlay:REV[@BASE] with BASE existing:PYTHON or release:VERSION"
)
RELEASE_PATTERN = re.compile(r"[0-9]+(\.[0-9]+){1,3}((a|b|rc)[0-9]+)?(\.post[0-9]+)?")
REVISION = re.compile(r"(?!-)[^\s\x00-\x1f\x7f:]+")
BASE_AT = re.compile(r"@((?:existing|release):.*)", re.DOTALL)
COMMIT_AT = re.compile(r"@([0-9a-f]{40})$")


class LabSpec(Value):
    """The published CPU wheel of ``LAB_RELEASE`` with the embedded lab source on its path."""

    @property
    def text(self) -> str:
        return "lab"


class ExistingSpec(Value):
    """An environment somebody else made: an interpreter, a venv folder, or a ``vllm`` executable."""

    target: str

    @property
    def text(self) -> str:
        return f"existing:{self.target}"


class ReleaseSpec(Value):
    """A published CPU wheel of vLLM."""

    version: str

    @property
    def text(self) -> str:
        return f"release:{self.version}"


class OverlaySpec(Value):
    """A revision's Python tree over the compiled extensions of a base environment."""

    revision: str
    base: ExistingSpec | ReleaseSpec | None = None
    """None: the release that the revision's nearest version tag names."""

    @property
    def text(self) -> str:
        return f"overlay:{self.revision}" + (f"@{self.base.text}" if self.base else "")


class PrecompiledSpec(Value):
    """An editable install of a revision with the binaries of vLLM's wheel of a commit. Planned, never run here."""

    revision: str
    wheel_commit: str | None = None
    """40 hex digits; None: the one that the clone can name."""

    @property
    def text(self) -> str:
        return f"precompiled:{self.revision}" + (f"@{self.wheel_commit}" if self.wheel_commit else "")


class SourceSpec(Value):
    """A revision compiled from source. Planned, never run here."""

    revision: str

    @property
    def text(self) -> str:
        return f"source:{self.revision}"


EnvironmentSpec = LabSpec | ExistingSpec | ReleaseSpec | OverlaySpec | PrecompiledSpec | SourceSpec


def stands_on(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The environment whose interpreter runs: an overlay's base where it names one, else ``spec`` itself."""
    return spec.base if isinstance(spec, OverlaySpec) and spec.base is not None else spec


def parse_spec(text: str) -> EnvironmentSpec:
    """Read ``text``; raises ``UsageError`` that names what is allowed."""
    kind, colon, value = text.strip().partition(":")
    value = value.strip()
    match kind:
        case "lab" if not colon:
            return LabSpec()
        case "existing" if value and value.isprintable():
            return ExistingSpec(target=value)
        case "release" if RELEASE_PATTERN.fullmatch(value):
            return ReleaseSpec(version=value)
        case "existing":
            raise UsageError(
                f"environment {text!r} names no interpreter", remedy="sparkdiag repro --env existing:/path/to/python"
            )
        case "release":
            raise UsageError(
                f"environment {text!r}: {value!r} is no release number",
                remedy=f"sparkdiag repro --env release:{LAB_RELEASE}",
            )
        case "overlay":
            return _overlay(value, text=text)
        case "precompiled":
            revision, commit = _parted(value, COMMIT_AT)
            return PrecompiledSpec(revision=_revision(revision, text=text), wheel_commit=commit)
        case "source":
            return SourceSpec(revision=_revision(value, text=text))
        case _:
            raise UsageError(f"environment {text!r} is not known", remedy=f"use one of: {ALLOWED}")


def _overlay(value: str, *, text: str) -> OverlaySpec:
    revision, base = _parted(value, BASE_AT)
    found = parse_spec(base) if base else None
    if found is not None and not isinstance(found, ExistingSpec | ReleaseSpec):
        raise AssertionError(base)  # the pattern lets nothing else through
    return OverlaySpec(revision=_revision(revision, text=text), base=found)


def _parted(value: str, pattern: re.Pattern[str]) -> tuple[str, str | None]:
    """What stands before and after the ``@`` of ``pattern``: a revision may hold one too (``main@{1}``)."""
    found = pattern.search(value)
    return (value[: found.start()], found.group(1)) if found else (value, None)


def _revision(revision: str, *, text: str) -> str:
    """``revision`` where git could be asked for it; a remote branch's name may hold anything but these."""
    if REVISION.fullmatch(revision) and "@existing" not in revision and "@release" not in revision:
        return revision
    raise UsageError(
        f"environment {text!r} names no revision that git could know",
        remedy="sparkdiag repro --env overlay:REV@release:VERSION --repo path/to/vllm (or REV@existing:PYTHON)",
    )
