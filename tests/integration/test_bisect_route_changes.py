"""What the source predicts of a search: in the lab's own history, in clones of every shape, and at what cost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.axis import NAMED, SUSPECTED, ChosenAxis
from sparkdiag.bisecting.axes.commit_axis import clone_axis, lab_axis
from sparkdiag.bisecting.axes.route_changes import looked_for, with_route_changes
from sparkdiag.environment.clone import open_clone
from sparkdiag.errors import EnvironmentFault, NoEntry, RouteError
from sparkdiag.evidence.bisection import Target
from sparkdiag.evidence.route import Reached, Route, RouteConfig
from sparkdiag.lab.history import FIX_COMMIT, SUSPECT_COMMIT, ensure_lab_repo
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario
from tests.integration.axis_case import Written, scenario_of, write

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

TORCH, TRITON, FUSED = "_fp8_mqa_logits_torch", "fp8_mqa_logits_triton", "fp8_mqa_topk_triton"
STALL = Target()


def route_to(tree: SourceTree, scenario: Scenario, config: RouteConfig, *kernels: str) -> Route:
    return Route(
        revision=tree.revision,
        scenario=scenario.name,
        config=config,
        entry="f",
        entry_path="f.py",
        entry_line=1,
        reached=tuple(Reached(function=name, path="f.py", line=1) for name in kernels),
        exact=True,
    )


def text_of(tree: SourceTree, path: str) -> str:
    blob = tree.read(path)
    if blob is None:
        raise NoEntry(f"{path} is not there", remedy="--rev REV")
    return blob.text


def read_lab(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """The lab's dispatch as its three shapes differ: read off by a few words, whatever interprets it really."""
    entry = text_of(tree, "sparklab/sparse_attn_indexer.py")
    gated = "clean_logits and" in text_of(tree, "sparklab/sm12x_deep_gemm_fallbacks.py")
    if "fp8_fp4_mqa_topk_indices(q_chunk" in entry and config.dcp == 1:
        return route_to(tree, scenario, config, FUSED)
    fallback_only = "fp8_mqa_logits_triton(" not in text_of(tree, "sparklab/sm12x_deep_gemm_fallbacks.py")
    return route_to(tree, scenario, config, TORCH if gated or fallback_only else TRITON)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_lab_repo(tmp_path_factory.mktemp("lab"))


def predicted_in_lab(lab: Path, dcp: int, *, target: Target = STALL, suspect: tuple[str, ...] = ()) -> ChosenAxis:
    scenario = load_scenario("lab")
    return with_route_changes(
        lab_axis(lab, scenario=scenario, suspect=suspect),
        scenario=scenario,
        config=RouteConfig(dcp=dcp, platform="cpu"),
        target=target,
        named=bool(suspect),
        find=read_lab,
    )


def test_with_sharded_keys_the_lab_predicts_the_commit_that_dropped_the_gate(lab: Path) -> None:
    chosen = predicted_in_lab(lab, 2)
    assert chosen.predicted == (FIX_COMMIT, SUSPECT_COMMIT)
    assert chosen.predicted_because == {FIX_COMMIT: f"route: {TORCH} -> {TRITON}", SUSPECT_COMMIT: SUSPECTED}


def test_without_them_it_predicts_the_fused_path(lab: Path) -> None:
    chosen = predicted_in_lab(lab, 1)
    assert chosen.predicted == (SUSPECT_COMMIT,)
    assert chosen.predicted_because == {SUSPECT_COMMIT: f"route: {TORCH} -> {FUSED}"}


def test_what_the_user_names_comes_first(lab: Path) -> None:
    chosen = predicted_in_lab(lab, 2, suspect=("does-not-start",))
    assert chosen.predicted[1:] == (FIX_COMMIT,)
    assert list(chosen.predicted_because.values()) == [NAMED, f"route: {TORCH} -> {TRITON}"]


def test_another_looked_for_function_has_other_changes(lab: Path) -> None:
    chosen = predicted_in_lab(lab, 2, target=Target(what="frame", frame=f"Kernels.{TRITON}"))
    assert chosen.predicted[0] == FIX_COMMIT
    assert predicted_in_lab(lab, 2, target=Target(what="frame", frame="elsewhere")).predicted == (SUSPECT_COMMIT,)


@pytest.mark.parametrize("what", ["wrong-needle", "crash"])
def test_what_is_no_kernels_doing_is_not_predicted(lab: Path, what: str) -> None:
    target = Target.model_validate({"what": what})
    assert looked_for(target, load_scenario("lab")) == frozenset()
    assert predicted_in_lab(lab, 2, target=target).predicted == (SUSPECT_COMMIT,)


# Clones


def read_line(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """A kernel a line of one file."""
    return route_to(tree, scenario, config, *text_of(tree, "vllm/indexer.py").split())


def predicted_in(
    folder: Path,
    find: Callable[..., Route] = read_line,
    *,
    first_parent: bool = False,
    patience_s: float = 20,
    clock: Callable[[], float] = lambda: 0.0,
) -> ChosenAxis:
    scenario = scenario_of()
    ids = open_clone(folder)
    axis = clone_axis(ids, scenario=scenario, good="oldest", bad="main", first_parent=first_parent, suspect=())
    return with_route_changes(
        axis,
        scenario=scenario,
        config=RouteConfig(dcp=2),
        target=STALL,
        named=False,
        find=find,
        patience_s=patience_s,
        clock=clock,
    )


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, list[str]]:
    """The fallback comes on a branch, goes again at its merge's child, and a kernel that nobody looks for changes."""
    folder = tmp_path / "clone.git"
    at = "vllm/indexer.py"
    ids = write(
        folder,
        [
            Written(files={at: TRITON}),
            Written([0], {"README": "1"}),
            Written([1], {"a": "1"}),
            Written([1], {at: TORCH}, subject="on the branch"),
            Written([2, 3], {at: TORCH, "a": "1"}, subject="merge"),
            Written([4], {"README": "2"}),
            Written([5], {at: f"{TRITON} {FUSED}"}),
            Written([6], {at: TRITON}),
            Written([7], {"README": "3"}),
        ],
    )
    (folder / "refs/tags/oldest").parent.mkdir(parents=True, exist_ok=True)
    (folder / "refs/tags/oldest").write_text(ids[0] + "\n")
    return folder, ids


def test_the_changes_of_a_clone_are_tried_as_they_halve(clone: tuple[Path, list[str]]) -> None:
    folder, ids = clone
    chosen = predicted_in(folder)
    assert set(chosen.predicted) == {ids[3], ids[6]}
    assert chosen.predicted_because[ids[6]] == f"route: {TORCH} -> {TRITON} or {FUSED}"


def test_a_merged_branch_that_counts_as_one_is_predicted_by_its_merge(clone: tuple[Path, list[str]]) -> None:
    folder, ids = clone
    chosen = predicted_in(folder, first_parent=True)
    assert set(chosen.predicted) == {ids[4], ids[6]}
    assert f"by {ids[3][:10]}" in chosen.predicted_because[ids[4]]


def test_a_revision_that_cannot_be_read_costs_only_itself(clone: tuple[Path, list[str]]) -> None:
    folder, ids = clone

    def torn(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        if FUSED in text_of(tree, "vllm/indexer.py"):
            raise RouteError("a syntax error", remedy="--rev REV")
        return read_line(tree, scenario=scenario, config=config)

    assert ids[3] in predicted_in(folder, torn).predicted


@pytest.mark.parametrize(
    "error", [EnvironmentFault("git failed", remedy="x"), ValueError("a defect"), RecursionError()]
)
def test_a_prediction_that_fails_is_one_note_and_the_search_is_as_before(
    clone: tuple[Path, list[str]], error: Exception
) -> None:
    def failing(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        raise error

    chosen = predicted_in(clone[0], failing)
    assert chosen.predicted == ()
    (note,) = [note for note in chosen.notes if "no commit is predicted from the source" in note]
    assert "\n" not in note


def test_a_prediction_that_takes_too_long_is_given_up(clone: tuple[Path, list[str]]) -> None:
    now_s = [0.0]

    def slow(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        now_s[0] += 30
        return read_line(tree, scenario=scenario, config=config)

    chosen = predicted_in(clone[0], slow, clock=lambda: now_s[0])
    assert chosen.predicted == ()
    assert any("took longer than 20 s" in note for note in chosen.notes)
    assert now_s[0] <= 60
