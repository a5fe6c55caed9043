"""Commits as points: which files are watched, and how the run of a commit is asked for."""

import pytest

from sparkdiag.bisecting.axes.axis import Axis, trial_request
from sparkdiag.bisecting.axes.commit_axis import only_present, watched_paths
from sparkdiag.bisecting.search.history import History
from sparkdiag.evidence.bisection import AxisKind, Commit
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.load import load_scenario
from tests.unit.bisecting.simulated import SimulatedRunner, chain, play, request_for, sha_of

OLD, NEW = "a" * 40, "b" * 40
TEMPLATE = ReproRequest(scenario=load_scenario("lab"), env_spec="lab", runs_dir="runs", probe=False)


def axis_of(*, kind: AxisKind = "commits", lab: bool = False, specs: dict[str, str] | None = None) -> Axis:
    history = History(commits=(Commit(sha=OLD), Commit(sha=NEW, parents=(OLD,))))
    repo = None if lab else "/clone"
    return Axis(kind=kind, history=history, old=OLD, new=NEW, repo=repo, lab=lab, env_specs=specs or {})


def test_a_commit_of_the_lab_is_a_revision() -> None:
    asked = trial_request(TEMPLATE, axis_of(lab=True), NEW)
    assert asked == TEMPLATE.model_copy(update={"revision": NEW})


def test_a_commit_of_a_clone_is_an_environment() -> None:
    axis = axis_of(specs={NEW: f"overlay:{NEW}@release:0.32.0"})
    asked = trial_request(TEMPLATE, axis, NEW)
    assert (asked.env_spec, asked.repo, asked.revision) == (f"overlay:{NEW}@release:0.32.0", "/clone", None)
    assert trial_request(TEMPLATE, axis, OLD).env_spec == TEMPLATE.env_spec


def test_a_release_is_an_environment_of_its_own() -> None:
    axis = axis_of(kind="releases", specs={OLD: "release:0.31.0", NEW: "release:0.32.0"})
    assert [trial_request(TEMPLATE, axis, sha).env_spec for sha in (OLD, NEW)] == ["release:0.31.0", "release:0.32.0"]


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_an_end_that_stands_for_others_is_no_culprit(confidence: float | None) -> None:
    history = chain(6)
    plain = request_for(history, confidence=confidence)
    request = plain.model_copy(update={"axis": plain.axis.model_copy(update={"stand_in": True})})
    answer, _ = play(request, SimulatedRunner(history, sha_of(5)))
    assert answer.outcome == "inconclusive" and answer.commits == ()
    assert answer.reason and "between" in answer.reason and "without --only-watched-paths" in answer.reason
    answer, _ = play(plain, SimulatedRunner(history, sha_of(5)))
    assert answer.outcome == "found"
    answer, _ = play(request, SimulatedRunner(history, sha_of(4)))
    assert [commit.sha for commit in answer.commits] == [sha_of(4)]


def test_every_name_of_a_watched_file_is_watched_once() -> None:
    paths = watched_paths(load_scenario("sm12x-mqa-prefill"))
    assert len(paths) == len(set(paths))
    for moved in (
        "vllm/models/deepseek_v4/nvidia/ops/sm12x_deep_gemm_fallbacks.py",
        "vllm/v1/attention/ops/deepseek_v4_ops/sm12x_deep_gemm_fallbacks.py",
        "vllm/models/deepseek_v4/nvidia/ops/sm12x_mqa.py",
        "vllm/utils/deep_gemm.py",
        "vllm/utils/deep_gemm/__init__.py",
    ):
        assert moved in paths


def test_paths_that_are_in_no_commit_are_left_out() -> None:
    commits = (
        Commit(sha=OLD, suspect_blobs=("-", "1", "-")),
        Commit(sha="c" * 40),  # could not be told: says nothing about what is there
        Commit(sha=NEW, suspect_blobs=("-", "-", "2")),
    )
    kept, present = only_present(commits, ("x", "y", "z"))
    assert present == ("y", "z")
    assert [commit.suspect_blobs for commit in kept] == [("1", "-"), (), ("-", "2")]
