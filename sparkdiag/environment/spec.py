"""Environment specs as typed by people: ``lab``, ``existing:PYTHON``, ``release:VERSION``. Pure."""

import re

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value

LAB_RELEASE = "0.32.0"
"""The vLLM release the embedded lab is written for and tested on."""

KNOWN_LATER = frozenset({"overlay", "precompiled", "source"})
ALLOWED = "lab, existing:PYTHON (or a venv folder, or a vllm executable), release:VERSION"
RELEASE_PATTERN = re.compile(r"[0-9]+(\.[0-9]+){1,3}((a|b|rc)[0-9]+)?(\.post[0-9]+)?")


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


EnvironmentSpec = LabSpec | ExistingSpec | ReleaseSpec


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
        case _ if kind in KNOWN_LATER:
            raise UsageError(
                f"environment {text!r}: {kind} environments do not exist in this version of sparkdiag",
                remedy=f"use one of: {ALLOWED}",
            )
        case _:
            raise UsageError(f"environment {text!r} is not known", remedy=f"use one of: {ALLOWED}")
