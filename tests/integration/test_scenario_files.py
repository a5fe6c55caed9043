"""Files as they lie on a disk: folders, pipes, huge, not text, and how they are found."""

import json
import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.scenario import app
from sparkdiag.errors import ExitCode, ScenarioError, UsageError
from sparkdiag.scenario import load
from sparkdiag.scenario.load import builtin_names, builtin_text, load_scenario

pytestmark = pytest.mark.integration


def fault_of(path: Path | str) -> ScenarioError:
    """The error of loading it, which must come at once whatever lies there."""
    caught: list[BaseException] = []

    def attempt() -> None:
        try:
            load_scenario(str(path))
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "reading the file hangs"
    (error,) = caught
    assert isinstance(error, ScenarioError)
    assert error.details
    assert all(line.isprintable() for line in (error.message, *error.details))
    return error


def written(folder: Path, content: bytes, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_path_is_a_file_and_a_name_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = builtin_text("sm12x-mqa-prefill").replace('name = "sm12x-mqa-prefill"', 'name = "mine"')
    path = written(tmp_path, text.encode())
    assert load_scenario(str(path)).name == "mine"
    monkeypatch.chdir(tmp_path)
    assert load_scenario("mine.toml").name == "mine"
    assert load_scenario("./mine.toml").name == "mine"
    with pytest.raises(UsageError, match="no scenario is called 'mine'"):
        load_scenario("mine")


def test_an_installed_package_carries_its_scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, builtin_text("sm12x-mqa-prefill").encode(), "sm12x-mqa-prefill.toml")
    monkeypatch.setattr(load, "_INSTALLED", tmp_path)
    monkeypatch.setattr(load, "_CHECKOUT", tmp_path / "none")
    assert builtin_names() == ("sm12x-mqa-prefill",)
    assert load_scenario("sm12x-mqa-prefill").name == "sm12x-mqa-prefill"


def test_an_unknown_name_lists_what_there_is_and_guesses() -> None:
    with pytest.raises(UsageError, match=r"built in: .*sm12x-mqa-prefill.* did you mean sm12x-mqa-prefill\?"):
        load_scenario("sm12-mqa-prefil")
    with pytest.raises(UsageError, match=r"'\\x1b\[31m'"):
        load_scenario("\x1b[31m")


def test_what_is_no_file_is_said_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    assert "a pipe, socket or device" in fault_of(tmp_path / "pipe.toml").message
    assert "a folder" in fault_of(tmp_path).message
    assert "a pipe, socket or device" in fault_of("/dev/zero").message
    assert "No such file" in fault_of(tmp_path / "none.toml").message
    assert "cannot be opened" in fault_of(f"{tmp_path}/a\0b.toml").message
    assert "cannot be opened" in fault_of(f"{tmp_path}/{'x' * 5000}.toml").message


def test_a_huge_file_is_read_to_the_limit_only(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert "larger than 1024 KiB" in fault_of(path).message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"title = \xff", "line 1 is not UTF-8"),
        (b"a = 1\nb = 2\n\nc = \n", "line 4"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"a = " + b"[" * 50_000, "too deep"),
        (b"a = " + b"9" * 10_000, "TOML syntax"),
        (b"a = \x1b[31m", "TOML syntax"),
        (b"\0" * 100, "TOML syntax"),
        (b"", "problems"),
    ],
)
def test_what_is_no_scenario_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in fault_of(written(tmp_path, content)).message


def test_every_problem_comes_with_the_file_and_the_way_to_check_it(tmp_path: Path) -> None:
    text = builtin_text("sm12x-mqa-prefill").replace("dcp = 2", "dpc = 2").replace("depth = 0.35", "depth = 35")
    error = fault_of(written(tmp_path, text.encode(), "odd\x1b[31m.toml"))
    assert len(error.details) == 2
    assert all(str(tmp_path) in line and "\\x1b" in line for line in error.details)
    assert "did you mean dcp?" in error.details[0]
    assert error.exit_code == ExitCode.USAGE


def test_check_as_json_lists_the_problems_and_exits_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(written(tmp_path, b"lab = 3")), "--json"])
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert len(document["problems"]) >= 4
