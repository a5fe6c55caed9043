"""The env commands, as far as they need nothing outside."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.env import app
from sparkdiag.environment import cache
from sparkdiag.errors import UsageError


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(tmp_path / "config.toml"))


def half_built() -> Path:
    cache.make_root(cache.cache_root())
    folder = cache.environments_dir(cache.cache_root()) / "k"
    cache.mark(folder)
    (folder / "venv-1").write_bytes(b"x" * 100)
    return folder


@pytest.mark.parametrize("command", ["list", "build", "prune"])
def test_help_has_a_pasteable_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0 and f"Example: sparkdiag env {command}" in result.stdout


def test_list_tells_what_a_plain_repro_would_use(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('env = "existing:/x/python"\n')
    half_built()
    result = CliRunner().invoke(app, ["list", "--json"])
    document = json.loads(result.stdout)
    assert document["schema"] == 1 and document["default"]["env"] == "existing:/x/python"
    assert "config file" in document["default"]["because"]
    assert [(one["key"], one["complete"]) for one in document["environments"]] == [("k", False)]
    words = CliRunner().invoke(app, ["list"]).stdout
    assert "half-built" in words and "existing:/x/python" in words


def test_list_of_nothing_names_the_next_command() -> None:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0 and "sparkdiag env build" in result.stdout and "no such file" in result.stdout


def test_prune() -> None:
    folder = half_built()
    dry = json.loads(CliRunner().invoke(app, ["prune", "--all", "--dry-run", "--json"]).stdout)
    assert dry["dry_run"] and folder.exists() and dry["freed_bytes"] > 0
    assert "deleted k" in CliRunner().invoke(app, ["prune", "--max-gib", "5"]).stdout
    assert not folder.exists()


def test_prune_of_everything_is_never_a_default() -> None:
    result = CliRunner().invoke(app, ["prune"])
    assert isinstance(result.exception, UsageError)


def test_build_of_nonsense_is_a_usage_error() -> None:
    assert isinstance(CliRunner().invoke(app, ["build", "overlay:main"]).exception, UsageError)
