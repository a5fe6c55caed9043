"""Many routes at once, and the sentence that narrows a claim: never more than the cells say."""

import re
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import EnvironmentFault, RouteError
from sparkdiag.evidence.blob import Blob
from sparkdiag.evidence.route import (
    MatrixCell,
    MatrixRevision,
    Raises,
    Reached,
    Route,
    RouteConfig,
    RouteProblem,
    Truth,
)
from sparkdiag.routing.across.matrix import MatrixAxes, find_matrix
from sparkdiag.routing.across.narrowing import AXES, narrowed, separating
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

OLD, NEW, BAD = "a" * 40, "b" * 40, "c" * 40
NAMES = (MatrixRevision(name="old", revision=OLD), MatrixRevision(name="new", revision=NEW))
LAB = load_scenario("lab")
TORCH = Reached(function="_fp8_mqa_logits_torch", path="x.py", line=1, stall="torch-fallback")
TRITON = Reached(function="fp8_mqa_logits_triton", path="x.py", line=2)


class Tree:
    """A revision of which only the id counts."""

    def __init__(self, revision: str) -> None:
        self.revision = revision

    def read(self, path: str) -> Blob | None:
        raise AssertionError(path)

    def holding(self, text: str) -> tuple[str, ...]:
        raise AssertionError(text)


def fake_route(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """Stalls at DCP 2 on SM121 from ``new`` on; before, on any; without an architecture nobody knows."""
    if tree.revision == BAD:
        raise RouteError("there is no function sparse_attn_indexer")
    if config.arch == "sm75":
        raise RouteError("x.py:3 cannot be parsed")
    stalls = (config.dcp or 0) > 1 and (config.arch != "sm90" or tree.revision == OLD)
    conditional = TORCH.model_copy(update={"when": ("the architecture is SM12x",)})
    reached = (conditional, TRITON) if stalls and config.arch is None else (TORCH if stalls else TRITON,)
    return Route(
        revision=tree.revision,
        scenario=scenario.name,
        config=config,
        entry="f",
        entry_path="x.py",
        entry_line=1,
        reached=reached,
        exact=len(reached) == 1,
    )


def matrix(*revisions: str, **axes: tuple[object, ...]) -> tuple[tuple[MatrixCell, ...], tuple[str, ...]]:
    named = [MatrixRevision(name={OLD: "old", NEW: "new", BAD: "bad"}[sha], revision=sha) for sha in revisions]
    found = find_matrix(
        [(one, Tree(one.revision)) for one in named],
        scenario=LAB,
        base=RouteConfig(),
        axes=MatrixAxes.model_validate({"dcp": (1,), "arch": ("sm121",), "cache": ("fp8",)} | axes),
        find=fake_route,
    )
    return found.cells, found.narrowed


def test_there_is_a_cell_for_each_revision_and_configuration_in_the_order_asked() -> None:
    cells, _ = matrix(OLD, NEW, dcp=(2, 1), arch=("sm90", "sm121"))
    assert [(cell.revision, cell.dcp, cell.arch, cell.cache) for cell in cells] == list(
        product((OLD, NEW), (2, 1), ("sm90", "sm121"), ("fp8",))
    )
    assert [cell.stall for cell in cells] == ["true", "true", "false", "false", "false", "true", "false", "false"]
    assert cells[0].kernels == ("_fp8_mqa_logits_torch",)
    assert all(cell.exact for cell in cells)


def test_the_claim_is_narrowed_to_the_axes_that_tell() -> None:
    _, said = matrix(NEW, dcp=(1, 2), arch=("sm90", "sm120", "sm121"), cache=("fp8", "fp4"))
    assert said == (
        "In the 12 cells asked the stall path is reached only when: dcp > 1, arch sm120 or sm121 "
        "(in all 4 of these cells).",
    )
    _, said = matrix(OLD, dcp=(1, 2, 4), arch=("sm90", "sm121"))
    assert said == ("In the 6 cells asked the stall path is reached only when: dcp > 1 (in all 4 of these cells).",)


def test_where_no_condition_tells_each_revision_is_told_by_itself() -> None:
    _, said = matrix(OLD, NEW, dcp=(1, 2), arch=("sm90", "sm121"))
    assert said == (
        "In the 8 cells asked no condition on dcp, arch and rev tells the cells on the stall path from the rest: "
        "3 reach it, 5 do not.",
        "old: the stall path is reached only when: dcp > 1 (in all 2 of these cells).",
        "new: the stall path is reached only when: dcp > 1, arch sm121 (in this one cell).",
    )


def test_an_unknown_cell_is_never_counted_as_safe() -> None:
    cells, said = matrix(NEW, dcp=(1, 2), arch=(None,))
    assert [cell.stall for cell in cells] == ["false", "unknown"]
    assert said == (
        "In the 2 cells asked the stall path may be reached only when: dcp > 1 (unknown in this one cell).",
    )
    _, said = matrix(NEW, dcp=(1, 2), arch=("sm90", "sm121", None))
    assert said == (
        "In the 6 cells asked the stall path is reached only when: dcp > 1, arch sm121 or unknown "
        "(1 of these cells for certain, 1 unknown).",
    )


def test_none_and_every_cell() -> None:
    assert matrix(NEW)[1] == ("In the 1 cell asked the stall path is reached in no cell.",)
    assert matrix(NEW, dcp=(2, 4))[1] == ("In the 2 cells asked the stall path is reached in every cell.",)


def test_a_revision_without_an_answer_is_a_row_with_its_reason_and_the_others_are_answered() -> None:
    found = find_matrix(
        [(MatrixRevision(name="bad", revision=BAD), Tree(BAD)), (NAMES[1], Tree(NEW))],
        scenario=LAB,
        base=RouteConfig(),
        axes=MatrixAxes(dcp=(1, 2), arch=("sm121",), cache=("fp8",)),
        problems=(RouteProblem(revision="gone", message="no such commit"),),
        find=fake_route,
    )
    assert [(one.revision, one.message) for one in found.problems] == [
        ("gone", "no such commit"),
        ("bad", "there is no function sparse_attn_indexer"),
    ]
    assert {cell.revision for cell in found.cells} == {NEW}
    assert found.narrowed[0].endswith("dcp > 1 (in this one cell). 2 revisions asked have no answer.")
    assert (found.config.dcp, found.config.arch, found.config.cache) == (None, "sm121", "fp8")


def test_a_cell_that_alone_has_no_answer_is_unknown() -> None:
    cells, said = matrix(NEW, dcp=(2,), arch=("sm75", "sm90"))
    assert [(cell.stall, cell.problem) for cell in cells] == [("unknown", "x.py:3 cannot be parsed"), ("false", None)]
    assert "may be reached only when: arch sm75" in said[0]


def test_no_answer_at_all() -> None:
    cells, said = matrix(BAD)
    assert (cells, said) == ((), ("No cell has an answer. 1 revision asked has no answer.",))


def test_what_git_failed_at_is_no_answer_of_a_cell() -> None:
    def failing(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        raise EnvironmentFault("git failed")

    with pytest.raises(EnvironmentFault):
        find_matrix(
            [(NAMES[0], Tree(OLD))],
            scenario=LAB,
            base=RouteConfig(),
            axes=MatrixAxes(dcp=(1,), arch=("sm90",), cache=("fp8",)),
            find=failing,
        )


TRUTHS: tuple[Truth, ...] = ("true", "false", "unknown")


@st.composite
def tables(draw: st.DrawFn) -> list[MatrixCell]:
    dcp = draw(st.sampled_from([(1,), (1, 2), (2, 1, None), (1, 2, 4)]))
    arch = draw(st.sampled_from([("sm90",), ("sm90", "sm121"), ("sm90", "sm120", None)]))
    revisions = draw(st.sampled_from([(OLD,), (OLD, NEW)]))
    places = list(product(revisions, dcp, arch, ("fp8", "fp4")))
    truths = draw(st.lists(st.sampled_from(TRUTHS), min_size=len(places), max_size=len(places)))
    return [
        MatrixCell.model_validate({"revision": sha, "dcp": size, "arch": one, "cache": cache, "stall": truth})
        for (sha, size, one, cache), truth in zip(places, truths, strict=True)
    ]


def boxed(cells: list[MatrixCell], axes: tuple[str, ...]) -> list[MatrixCell]:
    """The cells that share each axis' value with some cell that may stall."""
    perhaps = [cell for cell in cells if cell.stall != "false"]
    values = {axis: {getattr(cell, axis) for cell in perhaps} for axis in axes}
    return [cell for cell in cells if all(getattr(cell, axis) in values[axis] for axis in axes)]


@given(tables())
def test_conditions_hold_all_that_may_stall_and_nothing_else_and_are_the_fewest(cells: list[MatrixCell]) -> None:
    found = separating(cells)
    perhaps = [cell for cell in cells if cell.stall != "false"]
    separable = [
        axes
        for number in range(len(AXES) + 1)
        for axes in combinations(AXES, number)
        if not any(cell.stall == "false" for cell in boxed(cells, axes))
    ]
    if found is None:
        assert perhaps and not separable
        return
    inside = [cell for cell in cells if all(getattr(cell, axis) in values for axis, values in found.items())]
    if perhaps:
        assert inside == perhaps
        assert len(found) == min(len(axes) for axes in separable)


@given(tables())
def test_the_sentence_says_no_more_than_the_cells(cells: list[MatrixCell]) -> None:
    said = narrowed(cells, NAMES)
    stalls = {cell.stall for cell in cells}
    if "unknown" in stalls:
        assert "unknown" in said[0] and "reached in no cell" not in said[0]
    if " is reached in no cell" in said[0]:
        assert stalls == {"false"}
    if " is reached in every cell." in said[0]:
        assert stalls == {"true"}
    if match := re.search(r"\(in all (\d+) of these cells\)", said[0]):
        assert int(match[1]) == sum(cell.stall == "true" for cell in cells)
    assert all(line.endswith(".") for line in said)


def reached(*found: Reached, **more: object) -> Truth:
    made = {"revision": OLD, "scenario": "lab", "config": RouteConfig(), "entry": "f", "entry_path": "x.py"}
    return Route.model_validate(made | {"entry_line": 1, "reached": found} | more).stall_path


def test_when_the_stall_path_counts_as_reached() -> None:
    perhaps = TORCH.model_copy(update={"when": ("x",)})
    error = Raises(error="TypeError", path="x.py", line=1)
    lost = {"path": "x.py", "line": 1, "source": "y", "reason": "z"}
    assert reached(TORCH) == "true"
    assert reached(TORCH, TRITON) == "true", "one after the other"
    assert reached(perhaps, perhaps) == "true", "whichever way it goes"
    assert reached(perhaps, raises=(error,)) == "unknown"
    assert reached(perhaps, TRITON) == "unknown"
    assert reached(TRITON) == "false"
    assert reached(raises=(error,)) == "unknown", "what cannot run is no proof that it does not stall"
    assert reached() == "unknown"
    assert reached(TRITON, not_understood=(lost,)) == "unknown"
