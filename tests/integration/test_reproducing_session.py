"""A whole reproduction over a fake vLLM tree: real processes, real py-spy, real HTTP; shapes the lab cannot show."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sparkdiag.environment.model import Environment
from sparkdiag.errors import ServerError
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.timeline import Phase
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.observing import observer
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.listing import list_runs
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reproducing import session
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import (
    LayerClock,
    LoopVariable,
    Patience,
    PromptSettings,
    Sampling,
    Scenario,
    ServerSettings,
    Signature,
    Work,
)
from tests.integration.serving_case import FAKES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


class Silent:
    """A view and a progress sink that keep what they hear."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.details: list[str] = []
        self.notes: list[str] = []

    def phase(self, name: Phase, detail: str = "") -> None:
        self.phases.append(name)
        self.details.append(detail)

    def update(self, observation: Observation, verdict: Verdict) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress_sink(self) -> "Silent":
        return self

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        pass

    def advance(self, to: float) -> None:
        pass

    def finish(self, note: str = "") -> None:
        pass

    def say(self, text: str) -> None:
        self.notes.append(text)


def scenario(*, tokens: int = 16384, dcp: int = 2, timeout_s: float = 90) -> Scenario:
    return Scenario(
        name="fake",
        title="a fake tree",
        server=ServerSettings(tp=2, dcp=dcp, chunk_tokens=512, max_model_len=65536, ready_timeout_s=60),
        prompt=PromptSettings(tokens=tokens, max_output_tokens=32),
        signatures=(
            Signature(
                function="_fp8_mqa_logits_torch",
                kind="torch-fallback",
                loop=(
                    LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
                    LoopVariable(index="k_start", step="k_chunk_size", stop="seq_len_kv"),
                ),
                call_identity=("seq_len", "seq_len_kv", "num_heads"),
                rows="seq_len",
                keys="seq_len_kv",
                heads="num_heads",
            ),
        ),
        layer_clock=LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix"),
        work=Work(layers=2, heads=8),
        patience=Patience(stuck_s=6, settle_s=2, min_samples=3, timeout_s=timeout_s),
        sampling=Sampling(cpu_share=0.2, min_period_s=0.3),
    )


def reproduce(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    *,
    baseline_s: float | None = 0.5,
    extra_env: dict[str, str] | None = None,
    view: Silent | None = None,
    control: bool = False,
    package_path: str | None = None,
    routed: Callable[[Scenario], Scenario] = lambda made: made,
    probe: bool = True,
    **changes: int,
) -> tuple[RunFolder, RunRecord]:
    environment = Environment(
        spec="existing:fake",
        kind="existing",
        key="fake",
        python=sys.executable,
        serve_prefix=(sys.executable, str(FAKES / "fake_vllm.py")),
        pythonpath=(str(FAKES / "site"),),
        env={"FAKE_VLLM_MODE": mode, **(extra_env or {})},
        vllm_version="0.0.fake",
        package_path=package_path,
        model_path="fake",
    )
    monkeypatch.setattr(session, "prepare", lambda *_args, **_kwargs: environment)
    request = ReproRequest(
        scenario=routed(scenario(**changes)),
        env_spec=f"existing:{sys.executable}",
        runs_dir=str(tmp_path / "runs"),
        baseline_s=baseline_s,
        control=control,
        probe=probe,
        command=("sparkdiag", "repro", "--api-key", "hunter2secret"),
    )
    return session.reproduce(request, view=view or Silent())


def children() -> list[str]:
    return [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]


def test_a_crawling_tree_is_found_stopped_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = Silent()
    folder, record = reproduce(tmp_path, monkeypatch, "crawling", view=view)
    assert record.verdict is not None
    assert (record.verdict.outcome, record.verdict.mode) == ("stalled", "crawling")
    assert record.verdict.function == "_fp8_mqa_logits_torch"
    assert record.dcp is not None and record.dcp.size == 2 and record.dcp.consistent
    assert record.status == "finished"
    assert children() == []
    stored = read_run(folder.path)
    assert stored.problems == ()
    assert '"how": "cancelled"' in (folder.path / "client.jsonl").read_text(encoding="utf-8").replace('":"', '": "')
    text = render_markdown(stored)
    assert "_fp8_mqa_logits_torch" in text and "stalled" in text
    everything = "".join(path.read_text(errors="replace") for path in folder.path.rglob("*") if path.is_file())
    assert "hunter2secret" not in everything
    assert view.phases[-2:] == ["stopping", "reporting"]
    building = view.details.index(f"building a prompt of {scenario().prompt.tokens} tokens")
    assert view.phases[building - 1 : building + 2] == ["ready", "prompting", "prompting"]


def test_a_healthy_tree_completes_with_the_needle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "healthy")
    assert record.verdict is not None
    assert (record.verdict.outcome, record.verdict.needle) == ("completed", "retrieved")
    assert record.timings_s.prompt_to_first_token_s is not None


def test_a_control_run_is_the_baseline_and_its_time_is_not_this_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "healthy", baseline_s=None, control=True)
    (path, _), (control_path, control) = list_runs(tmp_path / "runs")
    assert control.dcp is not None and control.dcp.size == 1
    assert record.verdict is not None and record.verdict.baseline is not None
    assert record.verdict.baseline.kind == "control-run"
    assert record.verdict.baseline.seconds == control.timings_s.prompt_to_first_token_s
    assert control_path.name in record.verdict.baseline.source and control_path != path
    assert record.timings_s.environment_s == control.timings_s.environment_s
    assert (record.timings_s.environment_s or 0) < (control.timings_s.total_s or 0)


def test_a_stuck_rank_is_called_stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "stuck")
    assert record.verdict is not None
    assert (record.verdict.outcome, record.verdict.mode) == ("stalled", "stuck")
    assert children() == []


def test_a_server_that_dies_under_the_request_is_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "crash-in-request")
    assert record.verdict is not None
    assert record.verdict.outcome == "crashed"
    assert children() == []


def test_a_server_that_dies_while_loading_leaves_a_run_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError):
        reproduce(tmp_path, monkeypatch, "crash-while-loading")
    ((path, record),) = list_runs(tmp_path / "runs")
    assert record.status == "failed" and record.error
    assert (path / "server.log").stat().st_size > 0
    assert children() == []


def test_without_a_baseline_a_crawl_is_never_a_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "crawling", baseline_s=None, timeout_s=12)
    assert record.verdict is not None
    assert record.verdict.outcome == "inconclusive"
    assert record.verdict.reason and "baseline" in record.verdict.reason


def test_wrong_and_degenerate_answers_complete_with_their_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _folder, record = reproduce(tmp_path, monkeypatch, "wrong")
    assert record.verdict is not None
    assert (record.verdict.outcome, record.verdict.needle) == ("completed", "wrong")


def test_shared_memory_and_private_folders_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = tmp_path / "events"
    reproduce(tmp_path, monkeypatch, "shm,healthy", extra_env={"FAKE_VLLM_EVENTS": str(events)})
    segments = [Path(line.split()[-1]) for line in events.read_text().splitlines() if " shm " in line]
    assert segments
    assert [segment for segment in segments if segment.exists()] == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root")
def test_where_the_kernel_refuses_pyspy_the_probes_own_sampler_finds_the_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "py-spy"
    script.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_ptrace {observer.find_pyspy()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(observer, "find_pyspy", lambda: script)
    folder, record = reproduce(tmp_path, monkeypatch, "crawling")
    assert record.verdict is not None
    assert (record.verdict.outcome, record.verdict.function) == ("stalled", "_fp8_mqa_logits_torch")
    stored = read_run(folder.path)
    assert stored.observation.sampling.mode == "in-process"
    assert {sample.source for sample in stored.observation.samples if sample.usable} == {"in-process"}
    assert "SYS_PTRACE" in render_markdown(stored)
