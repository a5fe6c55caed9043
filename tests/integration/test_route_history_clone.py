"""Histories of routes over real repositories, by the real reader: the lab's, and small ones with what goes wrong."""

from pathlib import Path

import pytest

from sparkdiag.environment.blobs import open_blobs
from sparkdiag.environment.commit_range import read_range
from sparkdiag.evidence.route import RouteConfig, RouteHistory
from sparkdiag.lab.history import FIX_COMMIT, SUSPECT_COMMIT, ensure_lab_repo
from sparkdiag.routing.across.history import route_history
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.load import load_scenario
from tests.fakes.source_trees import KERNELS, scenario_with
from tests.integration.axis_case import Written, git, write

pytestmark = pytest.mark.integration

LAB = load_scenario("lab")
SMALL = scenario_with(modules=("vllm.dispatch", "vllm.old_dispatch"))


def history_of(folder: Path, text: str) -> RouteHistory:
    with open_blobs(folder) as reader:
        return route_history(read_range(reader, text), scenario=SMALL, config=RouteConfig(dcp=1))


def dispatch(kernel: str, *, above: str = "") -> str:
    return f"{above}from vllm.kernels import {kernel}\n\n\ndef entry(x):\n    return {kernel}(x)\n"


def test_the_labs_history_changes_where_its_tags_say(tmp_path: Path) -> None:
    folder = ensure_lab_repo(tmp_path)
    by_dcp = {}
    for dcp in (1, 2):
        with open_blobs(folder) as reader:
            span = read_range(reader, "main")
            config = RouteConfig(dcp=dcp, arch="sm121")
            by_dcp[dcp] = {change.sha for change in route_history(span, scenario=LAB, config=config).changes}
            assert by_dcp[dcp] <= set(span.parents)
    assert SUSPECT_COMMIT in by_dcp[1] and SUSPECT_COMMIT not in by_dcp[2]
    assert FIX_COMMIT in by_dcp[2]


def test_a_history_agrees_with_asking_at_every_commit_of_the_lab(tmp_path: Path) -> None:
    config = RouteConfig(dcp=2, arch="sm121")
    with open_blobs(ensure_lab_repo(tmp_path)) as reader:
        span = read_range(reader, "main")
        history = route_history(span, scenario=LAB, config=config)
        kernels = {}
        for sha, parents in span.parents.items():
            kernels[sha] = find_route(reader.tree(sha), scenario=LAB, config=config).kernels
            if parents and all(kernels[parent] != kernels[sha] for parent in parents):
                assert sha in {change.sha for change in history.changes}
        for change in history.changes:
            assert change.after == kernels[change.sha]
    assert history.commits == len(kernels) and history.evaluated < history.commits


def test_what_goes_wrong_on_the_way_is_told_and_the_rest_is_answered(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(
        folder,
        [
            Written(files={"README": "1"}, subject="nothing yet"),
            Written([0], {"vllm/__init__.py": "", "vllm/kernels.py": KERNELS}),
            Written([1], {"vllm/old_dispatch.py": dispatch("slow")}, subject="comes in"),
            Written([2], {"README": "2"}),
            Written([3], {"vllm/old_dispatch.py": None, "vllm/dispatch.py": dispatch("slow")}, subject="renamed"),
            Written([4], {"vllm/dispatch.py": dispatch("slow", above="x = (\n")}, subject="broken"),
            Written([5], {"vllm/dispatch.py": dispatch("slow", above="# repaired\n\n")}, subject="repaired"),
            Written([6], {"vllm/dispatch.py": dispatch("fast")}, subject="\x1b[31mfast"),
            Written([6], {"README": "3"}, subject="beside"),
            Written([7, 8], {"README": "3"}, subject="merge"),
            Written([9], {"vllm/dispatch.py": None, "vllm/elsewhere.py": dispatch("fast")}, subject="unheard of"),
            Written([10], {"vllm/elsewhere.py": "x = '" + "x" * 2**23 + "'"}, subject="huge"),
        ],
    )
    history = history_of(folder, "main")
    changes = [(change.sha, change.before, change.after) for change in history.changes]
    assert changes[:2] == [(ids[2], (), ("slow",)), (ids[7], ("slow",), ("fast",))]
    assert history.changes[1].subject == "\\x1b[31mfast" and history.changes[1].committed_at
    assert "fast" in history.changes[1].because
    assert [(change[0], change[2]) for change in changes[2:]] == [(ids[11], ())]
    problems = {problem.revision: problem.message for problem in history.problems}
    assert ids[5] in problems and "vllm/dispatch.py:" in problems[ids[5]]
    assert "entry" in problems[ids[11]]
    assert all("\n" not in message for message in problems.values())


def test_a_shallow_clone_answers_from_where_it_was_cut(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    base: dict[str, str | None] = {
        "vllm/__init__.py": "",
        "vllm/kernels.py": KERNELS,
        "vllm/dispatch.py": dispatch("slow"),
    }
    ids = write(
        source,
        [
            Written(files=base),
            Written([0], {"README": "1"}),
            Written([1], {"README": "2"}),
            Written([2], {"vllm/dispatch.py": dispatch("fast")}),
        ],
    )
    folder = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--no-local", "--depth=3", source.as_uri(), str(folder))
    history = history_of(folder, "HEAD")
    assert [change.sha for change in history.changes] == [ids[3]]
    assert [problem.revision for problem in history.problems] == [ids[1]]
    assert "shallow" in history.problems[0].message and "--unshallow" in str(history.problems[0].remedy)


def test_a_side_branch_that_began_before_the_range_is_compared_with_where_it_began(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    base: dict[str, str | None] = {
        "vllm/__init__.py": "",
        "vllm/kernels.py": KERNELS,
        "vllm/dispatch.py": dispatch("slow"),
    }
    ids = write(
        folder,
        [
            Written(files=base),
            Written([0], {"vllm/dispatch.py": dispatch("other")}, subject="the old end"),
            Written([0], {"README": "1"}, subject="a branch from before it"),
            Written([2], {"vllm/dispatch.py": dispatch("fast")}, subject="fast on the branch"),
            Written([1, 3], {"vllm/dispatch.py": dispatch("fast")}, subject="the merge takes the branch's"),
        ],
    )
    history = history_of(folder, f"{ids[1]}..{ids[4]}")
    assert history.commits == 3
    assert [change.sha for change in history.changes] == [ids[3]]
