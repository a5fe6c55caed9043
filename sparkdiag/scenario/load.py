"""Scenario files: found by name or path, read within bounds, checked as a whole."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from sparkdiag.errors import ScenarioError, UsageError
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.scenario.check import check, did_you_mean
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.shown import shown

MAX_BYTES = 1024 * 1024
"""A scenario is a page of text; anything larger is not one and is not read further."""

_INSTALLED = Path(__file__).with_name("builtin")
"""Where the wheel carries the scenarios; a checkout has them in its own top folder."""
_CHECKOUT = Path(__file__).parents[2] / "scenarios"


def load_scenario(name_or_path: str) -> Scenario:
    """The scenario of that name, or of that file where the argument has a slash or ends in ``.toml``.

    Raises ``ScenarioError`` with every problem of the file in ``details``, and ``UsageError`` for an unknown name.
    """
    path = _locate(name_or_path)
    return _checked(_parsed(_read(path), path), path)


def builtin_names() -> tuple[str, ...]:
    """Names of the scenarios that come with sparkdiag, sorted."""
    return tuple(sorted(path.stem for path in _builtin_folder().glob("*.toml")))


def builtin_text(name: str) -> str:
    """The commented TOML of a built-in scenario, as written. Raises ``UsageError`` for an unknown name."""
    return _read(_builtin_path(name))


def scenario_text(name_or_path: str) -> str:
    """The TOML text behind a name or path, unchecked. Raises as ``load_scenario`` does for what cannot be read."""
    return _read(_locate(name_or_path))


def _locate(name_or_path: str) -> Path:
    if "/" in name_or_path or os.sep in name_or_path or name_or_path.endswith(".toml"):
        return Path(name_or_path)
    return _builtin_path(name_or_path)


def _builtin_folder() -> Path:
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def _builtin_path(name: str) -> Path:
    names = builtin_names()
    if name not in names:
        there = f"; built in: {', '.join(names)}" if names else ""
        raise UsageError(
            f"no scenario is called {shown(name)}{there}{did_you_mean(name, names)}",
            remedy="sparkdiag scenario list    (a file of your own is given with its path: ./mine.toml)",
        )
    return _builtin_folder() / f"{name}.toml"


def _fault(path: Path, message: str) -> ScenarioError:
    where = one_line(str(path))
    return ScenarioError(
        f"scenario file {where}: {message}",
        details=(f"{where}: {message}",),
        remedy="sparkdiag scenario list    (or start one of your own: sparkdiag scenario show lab > mine.toml)",
    )


def _read(path: Path) -> str:
    """The file's text. Opened without waiting, so that a FIFO cannot hang us, and read up to ``MAX_BYTES``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the name cannot be a file's"
        raise _fault(path, f"cannot be opened ({reason})") from None
    try:
        content = _content(descriptor, path)
    except OSError as error:
        raise _fault(path, f"cannot be read ({error.strerror})") from None
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise _fault(path, f"is larger than {MAX_BYTES // 1024} KiB, which no scenario is")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _fault(path, f"line {line} is not UTF-8 (byte {content[error.start]:#04x})") from None


def _content(descriptor: int, path: Path) -> bytes:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        raise _fault(path, f"is {kind}; a TOML file is needed")
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(MAX_BYTES + 1)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _fault(path, "is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and an integer with more digits than Python converts
        raise _fault(path, f"TOML syntax: {one_line(str(error))}") from None


def _checked(data: dict[str, Any], path: Path) -> Scenario:
    scenario, problems = check(data)
    if scenario is not None:
        return scenario
    where = one_line(str(path))
    count = f"{len(problems)} problems" if len(problems) > 1 else "a problem"
    raise ScenarioError(
        f"scenario file {where} has {count}",
        details=tuple(f"{where}: {problem}" for problem in problems),
        remedy=f"sparkdiag scenario check {where}",
    )
