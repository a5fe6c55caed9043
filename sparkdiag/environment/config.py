"""The user's config file: which environment, clone and model a command uses when none is named."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from sparkdiag.environment.spec import parse_spec
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value

VARIABLE = "SPARKDIAG_CONFIG"
KEYS = ("env", "repo", "model")
MAX_BYTES = 64 * 1024


class UserConfig(Value):
    """What the file says; all None when there is no file."""

    path: str
    exists: bool = False
    env: str | None = None
    repo: str | None = None
    model: str | None = None


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """``SPARKDIAG_CONFIG``, else ``config.toml`` in the platform's user config folder."""
    given = (os.environ if environ is None else environ).get(VARIABLE)
    return Path(given).expanduser() if given else platformdirs.user_config_path("sparkdiag") / "config.toml"


def parse_config(text: str, *, path: str) -> UserConfig:
    """Read the file's text; raises ``UsageError`` that lists every problem with its key. Pure."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"config file {path} is not TOML: {error}", remedy=f"edit {path}") from error
    problems = [f"{key}: unknown key (allowed: {', '.join(KEYS)})" for key in found if key not in KEYS]
    values: dict[str, str] = {}
    for key in KEYS:
        value = found.get(key)
        if value is None:
            continue
        if not isinstance(value, str) or not value.strip():
            problems.append(f"{key}: must be a text, not {value!r}")
            continue
        values[key] = value
    if "env" in values:
        try:
            parse_spec(values["env"])
        except UsageError as error:
            problems.append(f"env: {error.message}")
    if problems:
        raise UsageError(f"config file {path} is wrong", details=tuple(problems), remedy=f"edit {path}")
    return UserConfig(path=path, exists=True, **values)


def read_config(path: Path | None = None) -> UserConfig:
    """Read the user's config file; an absent one is an empty config. Raises ``UsageError``."""
    path = path or config_path()
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return UserConfig(path=str(path))
    except OSError as error:
        raise UsageError(f"config file {path} cannot be read: {error.strerror}", remedy=f"ls -l {path}") from error
    if len(content) > MAX_BYTES:
        raise UsageError(f"config file {path} is larger than {MAX_BYTES} bytes", remedy=f"edit {path}")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"config file {path} is not UTF-8: {error}", remedy=f"edit {path}") from error
    return parse_config(text, path=str(path))
