"""What a search is about to do, in words and for programs."""

import json

from sparkdiag.bisecting.asking.plan import PlannedEnvironment, forecast_line, plan_document, plan_lines
from sparkdiag.bisecting.asking.resolve import Question
from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.forecast import Forecast
from sparkdiag.evidence.bisection import Commit
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature

SHAS = tuple(digit * 40 for digit in "abcd")
COMMITS = tuple(
    Commit(
        sha=sha, parents=SHAS[place - 1 : place] if place else (), subject=f"change {place}", committed_at="2026-05-01T"
    )
    for place, sha in enumerate(SHAS)
)
EXPECTED = Forecast(
    ends=2,
    controls=2,
    confirm=0,
    search_least=1,
    search_most=2,
    exact=True,
    minutes_least=9.8,
    minutes_most=12.2,
    first=(SHAS[2],),
)


BECAUSE = {SHAS[1]: "route: a -> b"}


def question(**specs: str) -> Question:
    axis = Axis(kind="commits", history=History.of(COMMITS), old=SHAS[0], new=SHAS[3], repo="/clone", env_specs=specs)
    scenario = Scenario(
        name="fake",
        title="f",
        server=ServerSettings(dcp=2, tp=2),
        prompt=PromptSettings(tokens=64),
        signatures=(Signature(function="f", kind="unknown"),),
    )
    repro = ReproRequest(scenario=scenario, env_spec="release:0.32.0", runs_dir="runs")
    return Question(
        request=BisectRequest(repro=repro, axis=axis, predicted=(SHAS[1],), predicted_because=BECAUSE),
        because="why",
        notes=("note",),
    )


def test_the_forecast_is_one_line() -> None:
    assert forecast_line(EXPECTED) == "2 ends, 2 controls, about 1 to 2 trials between, about 10 to 12 minutes"
    one = {"search_least": 1, "search_most": 1, "controls": 0, "confirm": 1, "minutes_least": 5.9, "minutes_most": 6.1}
    assert (
        forecast_line(EXPECTED.model_copy(update=one))
        == "2 ends, about 1 trial between, 1 confirmation, about 6 minutes"
    )
    long = {"search_least": 0, "search_most": 0, "minutes_least": 60.0, "minutes_most": 150.0}
    assert forecast_line(EXPECTED.model_copy(update=long)) == "2 ends, 2 controls, about 1.0 to 2.5 hours"


def test_the_plan_names_ends_target_forecast_and_environments() -> None:
    specs = {sha: f"overlay:{sha}@release:0.32.0" for sha in SHAS}
    planned = [
        PlannedEnvironment(sha=SHAS[0], kind="overlay", because="Python files only"),
        PlannedEnvironment(sha=SHAS[3], kind="overlay", because="Python files only"),
        PlannedEnvironment(sha=SHAS[2], kind="source", because="csrc", not_run=True, commands=("pip install .",)),
    ]
    assert plan_lines(question(**specs), EXPECTED, planned) == [
        "would search: 3 commits after the older end",
        'older end:    aaaaaaaaaa "change 0" (2026-05-01)',
        'newer end:    dddddddddd "change 3" (2026-05-01)',
        "looking for:  stall, scenario fake at DCP 2",
        "forecast:     2 ends, 2 controls, about 1 to 2 trials between, about 10 to 12 minutes",
        'predicted:    bbbbbbbbbb "change 1" (2026-05-01): route: a -> b',
        'first:        cccccccccc "change 2" (2026-05-01)',
        "environment:  overlay over release:0.32.0, one for each of 4 points",
        "              aaaaaaaaaa, dddddddddd: overlay: Python files only",
        "              cccccccccc: source, not run: csrc",
        "                pip install .",
    ]


def test_the_document_says_the_same() -> None:
    made = json.loads(json.dumps(plan_document(question(), EXPECTED)))
    assert (made["schema"], made["dry_run"], made["points"], made["target"]) == (1, True, 3, "stall")
    point = {"sha": SHAS[1], "subject": "change 1", "committed_at": "2026-05-01T"}
    assert made["predicted"] == [point | {"because": "route: a -> b"}]
    assert (made["forecast"]["trials_least"], made["forecast"]["trials_most"]) == (5, 6)
    assert made["environments"] == ["release:0.32.0"]
