"""A model that is named by a path must be there: vLLM would find out a minute later, and take it for a hub name."""

import os
from pathlib import Path

from sparkdiag.errors import UsageError
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.shown import shown


def is_path(model: str) -> bool:
    """Whether ``model`` can only be a path: a hub's names have one slash at most, other stores' a scheme. Pure."""
    if "://" in model:
        return False
    return model.startswith(("/", "./", "../", "~")) or model in (".", "..") or model.count("/") > 1


def require_model(scenario: Scenario) -> None:
    """Raises ``UsageError`` where the server would be given no model, or a path as ``check_model`` refuses it."""
    if scenario.server.model is None and not scenario.lab:
        raise UsageError(
            f"scenario {scenario.name} names no model and the environment brings none",
            remedy="name one: --model PATH_OR_NAME",
        )
    check_model(scenario.server.model)


def check_model(model: str | None) -> None:
    """Raises ``UsageError`` for a path that is not there or cannot be read; hub names are left to the server."""
    if model is None or not is_path(model):
        return
    path = Path(model)
    remedy = "--model /path/to/the/model (or a hub name: ORGANISATION/NAME)"
    if model.startswith("~"):
        # The shell expands it only where it stands first and unquoted; neither vLLM nor we do.
        raise UsageError(f"the model {shown(model)} starts with a ~ that nobody expanded", remedy=remedy)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name cannot be a file's"
        raise UsageError(f"the model {shown(model)} cannot be looked at: {reason}", remedy=remedy) from None
    if not there:
        raise UsageError(f"the model {shown(model)} does not exist", remedy=remedy)
    if path.is_dir() and not (path / "config.json").exists() and not (path / "params.json").exists():
        raise UsageError(f"the model folder {shown(model)} holds no config.json (or params.json)", remedy=remedy)
    if not os.access(path, os.R_OK):
        raise UsageError(f"the model {shown(model)} may not be read by this user", remedy=remedy)
