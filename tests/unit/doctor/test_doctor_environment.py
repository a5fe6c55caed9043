"""Environments, sources, clones and sizes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.doctor import environment
from sparkdiag.doctor.environment import CloneLook, CodeLook, ExistingLook
from sparkdiag.doctor.need import Asked
from sparkdiag.environment.interrogate import Findings
from sparkdiag.environment.spec import LabSpec
from sparkdiag.errors import EnvironmentFault
from sparkdiag.scenario.load import load_scenario

LAB = load_scenario("lab")
INCIDENT = load_scenario("sm12x-mqa-prefill")
VLLM = Findings(python_version=(3, 12, 3), distribution="vllm", vllm_version="0.26.0", package_path="/v/vllm")
TORCH = VLLM.model_copy(update={"torch_version": "2.11.0"})


def clone(**look: Any) -> list[tuple[str, str]]:
    found = environment.judge_clone(CloneLook(folder="/c", **look), INCIDENT)
    return [(one.status, one.next_step or one.seen) for one in found]


@given(st.integers(1, 16), st.integers(1, 16))
def test_dcp_must_divide_tp(dcp: int, tp: int) -> None:
    found = environment.judge_sizes(Asked(scenario=LAB, spec=LabSpec(), dcp=dcp, tp=tp))
    assert found.status == ("ok" if tp % dcp == 0 else "fail")


def test_the_remedy_of_a_misfit_is_repros_own() -> None:
    found = environment.judge_sizes(Asked(scenario=LAB, spec=LabSpec(), dcp=3))
    assert found.status == "fail"
    assert "--dcp 3 --tp 3" in (found.next_step or "")


def test_an_existing_environment_tells_its_versions() -> None:
    look = ExistingLook(python="/v/bin/python", findings=TORCH, notes=("a note",))
    found = environment.judge_existing(look, lab=False)
    assert (found.status, found.seen) == ("ok", "vLLM 0.26.0, torch 2.11.0, Python 3.12.3; a note")
    assert environment.judge_existing(look, lab=True).status == "warn"


@pytest.mark.parametrize(
    ("findings", "status", "said"),
    [(Findings(python_version=(3, 11, 1)), "fail", "has no vllm"), (VLLM, "warn", "no torch that says its version")],
)
def test_an_existing_environment_that_lacks_something(findings: Findings, status: str, said: str) -> None:
    found = environment.judge_existing(ExistingLook(python="/p", findings=findings), lab=False)
    assert found.status == status
    assert said in found.seen


def test_a_model_is_named_or_asked_for() -> None:
    assert environment.judge_model("/models/v4", is_path=True).seen == "/models/v4 is there"
    assert "not tried here" in environment.judge_model("org/name", is_path=False).seen
    unnamed = environment.judge_model(None, is_path=False)
    assert unnamed.status == "fail", "repro refuses to start"
    assert "--model PATH" in (unnamed.next_step or "")


def test_what_is_not_built_is_no_fault_and_says_what_it_takes() -> None:
    found = environment.judge_unbuilt("release:0.31.0", None)
    assert found.status == "ok"
    assert "needs the network" in found.seen
    assert (found.next_step or "").startswith("sparkdiag env build release:0.31.0")


def test_the_source_must_define_a_function_of_the_scenario() -> None:
    there = CodeLook(defined={"f": "vllm/a.py", "g": "vllm/b.py"}, absent=("h",), suspect_files=("vllm/a.py",))
    found = environment.judge_code(there, INCIDENT, vllm_version="0.26.0")
    assert (found.status, found.seen) == ("ok", "f in vllm/a.py and 1 more; 1 of 4 suspect files")
    gone = environment.judge_code(CodeLook(absent=("f", "g")), INCIDENT, vllm_version="0.26.0")
    assert gone.status == "fail"
    assert "vLLM 0.26.0 defines none of f, g" in gone.seen
    assert environment.judge_code(CodeLook(), INCIDENT, vllm_version=None).status == "ok"


def test_a_whole_clone_with_the_commit_or_its_twin_is_well() -> None:
    assert clone(held="f6c6e54f4") == [("ok", "/c: whole, holds the suspect commit f6c6e54f4")]
    assert clone(held="f8f18ce66b", contained="x is an ancestor of y")[0][1].endswith("; x is an ancestor of y")


def test_every_fault_of_a_clone_has_its_own_step() -> None:
    assert clone(readable=False)[0][0] == "fail"
    assert clone() == [("warn", "git -C /c fetch --all")]
    assert clone(shallow=True, partial=True) == [
        ("warn", "git -C /c fetch --unshallow"),
        ("warn", "git -C /c fetch --refetch --no-filter; git -C /c config --unset remote.origin.promisor"),
        ("warn", "git -C /c fetch --all"),
    ]


def test_git_is_needed_by_the_lab_and_good_to_have_elsewhere() -> None:
    assert environment.judge_git("git version 2.39.5", lab=True).status == "ok"
    assert environment.judge_git(None, lab=True).status == "fail"
    assert environment.judge_git(None, lab=False).status == "warn"


def test_uv_says_that_no_index_was_asked() -> None:
    assert "not tried here" in environment.judge_uv("uv 0.9.1").seen
    assert environment.judge_uv(None, problem="uv's executable is missing").status == "fail"


def test_an_error_of_ours_always_becomes_a_finding_with_a_step() -> None:
    found = environment.from_error("environment", EnvironmentFault("it is gone"), why="it is needed")
    assert (found.status, found.seen, found.next_step) == ("fail", "it is gone", "sparkdiag repro --help")
