import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.processes import ServerExit
from sparkdiag.serving.readiness import failed_start
from sparkdiag.serving.server_log import LONGEST_LINE, LineSplitter, cause_of, clean_line, phase_of


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("INFO [gpu_model_runner.py:1] Starting to load model /m...", "loading weights"),
        ("Loading safetensors checkpoint shards:  50% Completed | 1/2", "loading weights"),
        ("INFO [kv_cache_utils.py:1] GPU KV cache size: 68,800 tokens", "sizing the KV cache"),
        ("INFO [gpu_model_runner.py:1] Graph capturing finished in 3 secs", "capturing CUDA graphs"),
        ("INFO [backends.py:1] torch.compile takes 20 s in total", "compiling"),
        ("INFO:     Waiting for application startup.", "opening the API"),
        (
            "(APIServer pid=1) INFO 11-30 04:02:14 [model.py:1] Using max model len 24576",
            "reading the model's configuration",
        ),
        ("(Worker pid=1) INFO [parallel_state.py:1906] world_size=2 rank=1 local_rank=1", "starting workers"),
        (
            "(EngineCore pid=1) INFO [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config",
            "starting the engine",
        ),
        ("(Worker_TP0_DCP0 pid=1) INFO [base_loader.py:82] Initializing model took 9.4 seconds", "loading weights"),
        ("WARNING [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT", None),
        ("INFO: nothing known", None),
    ],
)
def test_phase_of_a_line(line: str, phase: str | None) -> None:
    assert phase_of(line) == phase


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("OSError: [Errno 98] Address already in use", "port"),
        (
            "AssertionError: ... but X does not. Try a different backend by setting --attention-backend",
            "attention backend",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "memory"),
        ("ValueError: No available memory for the cache blocks.", "memory"),
        ("OSError: /m does not appear to have a file named config.json", "model"),
        ("api_server.py: error: unrecognized arguments: --nope", "arguments"),
        ("AssertionError: tp_size 4 must be divisible by dcp_size 3", "divide"),
        ("ModuleNotFoundError: No module named 'vllm'", "module"),
    ],
)
def test_known_causes_name_a_next_step(line: str, part: str) -> None:
    error = failed_start(ServerExit(at_s=1, exit_code=1), ("before", line, "after"))
    assert part in error.message
    assert error.remedy
    assert error.details == ("before", line, "after")
    assert "exit code 1" in error.message


def test_an_unknown_failure_claims_no_cause_and_shows_the_last_twenty_lines() -> None:
    lines = tuple(f"line {n}" for n in range(50))
    error = failed_start(ServerExit(at_s=1, signal="SIGSEGV"), lines)
    assert cause_of(lines) is None
    assert error.message.endswith("(signal SIGSEGV)")
    assert error.details == lines[-20:]


def test_a_failure_names_the_exception_that_was_raised_for_a_reason_of_its_own() -> None:
    lines = (
        "(VllmWorker-0 pid=9) ERROR 11-30 13:06:29 [executor.py:9] ModuleNotFoundError: No module named 'x.y'",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    )
    error = failed_start(ServerExit(at_s=1, exit_code=1), lines)
    assert error.message.endswith("(ModuleNotFoundError: No module named 'x.y')")


@given(st.text())
def test_a_clean_line_cannot_steer_a_terminal(text: str) -> None:
    cleaned = clean_line(text)
    assert not any((letter < " " and letter != "\t") or "\x7f" <= letter <= "\x9f" for letter in cleaned)
    assert len(cleaned) <= LONGEST_LINE
    assert clean_line(cleaned) == cleaned


def test_colours_links_and_reordering_are_taken_out() -> None:
    assert clean_line("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \u202etxt") == "red link \\u202etxt"


@given(st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), max_size=8), st.data())
def test_lines_do_not_depend_on_how_the_bytes_arrive(lines: list[str], data: st.DataObject) -> None:
    whole = "\n".join(lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    splitter, found = LineSplitter(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        if end > start:
            found += splitter.feed(whole[start:end])
    assert found + splitter.feed(b"") == lines


def test_a_progress_bar_and_endless_text_still_come_out() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"10%\r20%\r") == ["10%", "20%"]
    assert splitter.feed(b"x" * 100_000) == ["x" * LONGEST_LINE]
