"""The parts of a run's page that tell of scope, kernels, environment and what to type."""

from functools import cache
from pathlib import Path

import pytest

from sparkdiag.evidence.run import PredictedRoute, Software
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.environment_form import NOT_COLLECTED, environment_form
from sparkdiag.reporting.kernel_numbers import kernel_numbers
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.repeat import pinned_command, server_command
from sparkdiag.reporting.run_scope import run_scope
from sparkdiag.reproducing.ending import compared
from tests.unit.reporting.sample_runs import CRAWLING, EVERY, FAILED, SHA

RECORDINGS = Path(__file__).parents[2] / "recordings"


@cache
def recorded(name: str) -> StoredRun:
    return compared(read_run(RECORDINGS / name))


def with_record(run: StoredRun, **changes: object) -> StoredRun:
    return run.model_copy(update={"record": run.record.model_copy(update=changes)})


def lines_of(form: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in form.splitlines())}


def predicted(**changes: object) -> PredictedRoute:
    found = recorded("h200-ledger/slow250").record.predicted
    assert found is not None
    return found.model_copy(update=changes)


def test_the_scope_is_what_the_source_said_when_the_run_began_and_what_the_ledger_saw() -> None:
    run = with_record(recorded("h200-ledger/slow250"), predicted=predicted(scope="f is reached only when DCP > 1"))
    said = run_scope(run)
    assert said is not None
    assert said.startswith("By its source at vLLM 0.26.0 f is reached only when DCP > 1")
    assert "**Scope.** By its source at vLLM 0.26.0 f is reached only when DCP > 1" in render_markdown(run)


def test_a_run_of_before_tells_its_own_route_and_that_no_other_was_asked() -> None:
    route = predicted().route
    assert route is not None
    exact = route.model_copy(update={"exact": True, "reached": route.reached[:1], "not_understood": ()})
    said = run_scope(with_record(recorded("h200-ledger/slow250"), predicted=predicted(route=exact)))
    assert said is not None
    assert "other configurations were not asked of the source" in said
    assert run_scope(recorded("h200-ledger/slow250")) is None  # its source was not understood
    assert run_scope(CRAWLING) is None


def test_a_ledger_that_saw_what_the_source_excludes_is_said_to_contradict() -> None:
    run = recorded("h200-ledger/slow250")
    route = predicted().route
    assert route is not None
    fast = route.model_copy(
        update={"reached": (route.reached[0].model_copy(update={"stall": None, "listed": True}),), "not_understood": ()}
    )
    said = run_scope(with_record(run, predicted=predicted(route=fast, scope="nothing is reached")))
    assert said is not None
    assert "but this run's ledger recorded mqa_logits_torch_loop" in said


def test_the_plan_stands_beside_what_the_ledger_measured() -> None:
    text = kernel_numbers(recorded("h200-ledger/slow250"))
    assert "250,000 tokens in chunks of 8,192, 1 token a key, DCP 2: 125,000 keys on a rank at the end" in text
    assert "| matmuls | 369,408 | 375,312 | 84,672, by the plan of the recorded calls |" in text
    assert "| `mqa_logits_torch_loop` | `TP0 DCP0` | 366 | 65.4 ms | 23.9 s | 283 µs | on the host;" in text
    assert "Least times of one rank on one H200 SXM" in text


def test_what_is_not_known_of_the_kernels_is_said_and_not_guessed() -> None:
    run = recorded("h200-ledger/slow250")
    without_gpu = run.record.host.model_copy(update={"gpus": ("Some GPU",)}) if run.record.host is not None else None
    assert "Least times: not known (no peaks of Some GPU are known)." in kernel_numbers(
        with_record(run, host=without_gpu)
    )
    work = run.record.scenario["work"] | {"budget_bytes": None}
    unplanned = kernel_numbers(with_record(run, scenario=run.record.scenario | {"work": work}))
    assert unplanned.startswith("No chunk plan: the scenario does not say `work.budget_bytes`.")
    assert "| `mqa_logits_torch_loop` |" in unplanned
    assert kernel_numbers(CRAWLING) == ""


def test_the_form_has_the_headings_of_vllms_own_and_says_what_is_not_known() -> None:
    form = environment_form(CRAWLING)
    for heading in ("System Info", "PyTorch Info", "CUDA / GPU Info", "Versions of relevant libraries", "vLLM Info"):
        assert heading in form
    known = lines_of(form)
    assert (known["vLLM Version"], known["PyTorch version"], known["OS"]) == ("0.32.0", NOT_COLLECTED, NOT_COLLECTED)
    assert known["GPU models and configuration"] == NOT_COLLECTED


def test_the_form_is_filled_with_what_the_run_collected() -> None:
    software = Software(
        os="Ubuntu 24.04", libc="glibc 2.39", python="3.12.4", torch_cuda="13.0", torch_rocm="none", torch_debug=False,
        packages={"nvidia-cudnn-cu13": "9.15", "torch": "2.9.1"}, vllm_commit="3f2a9c41d", gpus=("A, SM121", "B"),
        driver="580.95", driver_cuda="13.0", variables={"NCCL_DEBUG": "INFO", "VLLM_CPU_OMP_THREADS_BIND": "auto"},
    )  # fmt: skip
    form = environment_form(with_record(CRAWLING, software=software, server_env={"VLLM_CPU_OMP_THREADS_BIND": "0|1"}))
    known = lines_of(form)
    assert (known["PyTorch version"], known["CUDA used to build PyTorch"]) == ("2.9.1", "13.0")
    assert (known["Is debug build"], known["ROCM used to build PyTorch"]) == ("No", "None")
    assert known["cuDNN version"] == "9.15 (nvidia-cudnn-cu13)"
    assert (known["GPU 0"], known["GPU 1"]) == ("A, SM121", "B")
    assert "[pip] torch==2.9.1" in form
    assert "0.32.0 (git sha: 3f2a9c41d)" in form
    assert "NCCL_DEBUG=INFO\nVLLM_CPU_OMP_THREADS_BIND=0|1" in form


def test_a_platform_that_the_workers_told_answers_whether_cuda_is_there() -> None:
    assert lines_of(environment_form(recorded("h200-ledger/dcp1")))["Is CUDA available"].startswith("Yes (vLLM's")
    assert lines_of(environment_form(CRAWLING))["Is CUDA available"] == NOT_COLLECTED


def test_a_lab_run_can_be_had_at_its_very_revision() -> None:
    lab = {"kind": "lab", "revision_sha": SHA}
    assert pinned_command(with_record(CRAWLING, environment=lab)) == f"sparkdiag repro --dcp 2 --rev {SHA}"
    typed = ("sparkdiag", "repro", "--", "--seed", "1")
    assert pinned_command(with_record(CRAWLING, environment=lab, command=typed)) == (
        f"sparkdiag repro --rev {SHA} -- --seed 1"
    )
    for named in (("sparkdiag", "repro", "--rev=main"), ("sparkdiag", "repro", "--env", "lab")):
        assert pinned_command(with_record(CRAWLING, environment=lab, command=named)) is None


def test_the_servers_command_leaves_out_what_only_the_probe_reads() -> None:
    run = with_record(CRAWLING, server_env={"SPARKDIAG_PROBE_DIR": "/tmp/x", "A": "b c"})
    assert server_command(run) == "A='b c' \\\npython -m vllm.entrypoints.openai.api_server --port 8123"
    assert (
        server_command(FAILED.model_copy(update={"record": FAILED.record.model_copy(update={"server_argv": ()})})) == ""
    )


@pytest.mark.parametrize("name", [*EVERY, "h200-ledger/slow250", "h200-ledger/dcp1", "h200-watch/slow"])
def test_the_first_screen_is_one_screen(name: str) -> None:
    page = render_markdown(EVERY[name] if name in EVERY else recorded(name))
    first = page.split("<details")[0]
    assert len(first.splitlines()) <= 27
    assert first.index("decode_context_parallel_size") < first.index("**Verdict.**") < first.index("**Run it again**")


def test_the_samples_stand_as_a_tree_and_the_stack_with_its_locals() -> None:
    page = render_markdown(CRAWLING)
    tree = page.split("flame tree")[1].split("</details>")[0]
    assert " 100.0% 40  all 2 workers" in tree
    assert "> _fp8_mqa_logits_torch" in tree
