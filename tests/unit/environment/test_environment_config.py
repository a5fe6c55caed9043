"""The user's config file."""

from pathlib import Path

import pytest

from sparkdiag.environment.config import config_path, parse_config, read_config
from sparkdiag.errors import UsageError


def test_all_keys() -> None:
    config = parse_config('env = "existing:/x/python"\nrepo = "/src/vllm"\nmodel = "m"', path="c.toml")
    assert (config.env, config.repo, config.model, config.exists) == ("existing:/x/python", "/src/vllm", "m", True)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_config('env = "nonsense"\nmodel = 3\nmodle = "x"', path="c.toml")
    told = "\n".join(caught.value.details)
    assert "modle: unknown key" in told and "model: must be a text" in told and "env: environment 'nonsense'" in told


def test_not_toml() -> None:
    with pytest.raises(UsageError, match="is not TOML"):
        parse_config("env = ", path="c.toml")


def test_an_absent_file_is_an_empty_config(tmp_path: Path) -> None:
    config = read_config(tmp_path / "none.toml")
    assert not config.exists and config.env is None


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_config(path)


def test_the_variable_wins() -> None:
    assert config_path({"SPARKDIAG_CONFIG": "/a/b.toml"}) == Path("/a/b.toml")
    assert config_path({}).name == "config.toml"
