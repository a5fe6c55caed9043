"""Which healthy time a run is held against, and what may serve as its control."""

from pathlib import Path
from typing import Any

import pytest

from sparkdiag.environment.model import Environment
from sparkdiag.evidence.run import DcpProof, Host, RunRecord, Timings
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.reproducing import baseline as baselines
from sparkdiag.scenario.model import BaselineSettings, PromptSettings, Reference, Scenario, ServerSettings, Signature

HOST = Host(platform="Linux", cpu="c", cores=2, memory_gib=24, python="3.11", sparkdiag="0")
ENVIRONMENT = Environment(spec="lab", kind="lab", key="k", python="/py", serve_prefix=("/py",), revision_sha="a" * 40)


def scenario(*, dcp: int = 2, tokens: int = 1000, baseline: BaselineSettings | None = None) -> Scenario:
    return Scenario(
        name="x",
        title="x",
        server=ServerSettings(tp=2, dcp=dcp, env={"HOME": "/secret"}),
        prompt=PromptSettings(tokens=tokens),
        signatures=(Signature(function="f", kind="torch-fallback"),),
        baseline=baseline or BaselineSettings(),
    )


def control(**changes: Any) -> RunRecord:
    asked = changes.pop("scenario", scenario(dcp=1))
    stored = asked.model_dump(mode="json", by_alias=True)
    stored["server"]["env"] = {"HOME": "[not recorded]"}
    fields: dict[str, Any] = {
        "sparkdiag_version": "0",
        "started_at": "2026-01-01T00:00:00+00:00",
        "status": "finished",
        "scenario": stored,
        "command": (),
        "environment": {"key": "k", "revision_sha": "a" * 40},
        "dcp": DcpProof(asked=1, size=1),
        "host": HOST,
        "timings_s": Timings(prompt_to_first_token_s=7.5),
        "verdict": Verdict(outcome="completed", needle="retrieved"),
    }
    return RunRecord(**{**fields, **changes})


def fits(record: RunRecord) -> bool:
    return baselines.comparable(record, scenario=scenario(), environment=ENVIRONMENT, host=HOST)


def test_the_same_prompt_and_code_at_dcp_1_is_a_control() -> None:
    assert fits(control())


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": Verdict(outcome="completed", needle="wrong")},
        {"verdict": Verdict(outcome="stalled", mode="crawling")},
        {"verdict": None},
        {"dcp": DcpProof(asked=1, size=2, consistent=False)},
        {"dcp": DcpProof(asked=1, size=None)},
        {"timings_s": Timings()},
        {"environment": {"key": "other", "revision_sha": "a" * 40}},
        {"environment": {"key": "k", "revision_sha": "b" * 40}},
        {"scenario": scenario(dcp=1, tokens=999)},
        {"host": HOST.model_copy(update={"cpu": "another"})},
        {"host": None},
    ],
)
def test_anything_else_is_none(changes: dict[str, Any]) -> None:
    assert not fits(control(**changes))


def find(tmp_path: Path, asked: Scenario, *, given_s: float | None = None) -> tuple[Any, list[str]]:
    said: list[str] = []
    found = baselines.find_baseline(
        asked, environment=ENVIRONMENT, host=HOST, runs_dir=tmp_path, given_s=given_s, say=said.append
    )
    return found, said


def test_the_order_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Reference(prompt_tokens=900, seconds=3, hardware="h", source="s")
    settings = BaselineSettings(reference=(reference,), fast_kernel=True, fast_kernel_share=0.5)
    timing = baselines.KernelTiming(seconds=2, layers=3, chunks=64, timed_chunks=9)
    monkeypatch.setattr(baselines, "time_fast_kernel", lambda *_: timing)
    kernel_only = settings.model_copy(update={"references": ()})

    assert find(tmp_path, scenario(baseline=settings), given_s=9)[0].kind == "given"
    assert find(tmp_path, scenario(baseline=settings))[0].kind == "reference"
    found = find(tmp_path, scenario(baseline=kernel_only))[0]
    assert (found.kind, found.seconds) == ("fast-kernel", 4)
    assert find(tmp_path, scenario())[0] is None
    monkeypatch.setattr(baselines, "list_runs", lambda _: ((tmp_path / "run", control()),))
    assert find(tmp_path, scenario(baseline=settings))[0].kind == "control-run"
    assert find(tmp_path, scenario(dcp=1, baseline=settings))[0].kind == "reference"


def test_a_kernel_that_cannot_be_timed_is_said_and_no_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "time_fast_kernel", lambda *_: "no numba")
    found, said = find(tmp_path, scenario(baseline=BaselineSettings(fast_kernel=True)))
    assert found is None
    assert said == ["no numba"]


@pytest.mark.parametrize(
    ("others_share", "said", "unsaid"),
    [(0.6, "60% of the machine's CPU time meanwhile, so", "-"), (0.05, "5% of the machine", "so"), (None, "", "other")],
)
def test_a_kernel_timed_beside_others_says_so(others_share: float | None, said: str, unsaid: str) -> None:
    timing = baselines.KernelTiming(seconds=2, layers=3, chunks=64, timed_chunks=9, others_share=others_share)
    source = baselines.from_fast_kernel(scenario(), timing).source
    assert said in source
    assert unsaid not in source
