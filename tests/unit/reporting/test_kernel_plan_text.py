"""What the terminal shows of a plan: the incident's numbers, whole at 80 columns."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.kernels import Asked
from sparkdiag.kernels.gpus import known_gpus
from sparkdiag.kernels.planned import planned
from sparkdiag.reporting.kernel_plan import plan_text
from sparkdiag.reporting.kernel_plan_numbers import binary_size, decimal_size, least_time

CALL = Asked(rows=8192, keys=112_640, heads=64, head_dim=128, budget_bytes=64 << 20, matmul="fp32")
PROMPT = CALL.model_copy(
    update={
        "keys": 56_250,
        "prompt_tokens": 450_000,
        "chunk_tokens": 8192,
        "compress_ratio": 4,
        "dcp": 2,
        "layers": 61,
        "scenario": "sm12x-mqa-prefill",
    }
)


def shown(asked: Asked, *, gpus: int = 5, columns: int | None = 79) -> str:
    return plan_text(planned(asked, limits_mib=(None, 512), gpus=known_gpus()[:gpus]), columns=columns)


def cells(text: str, label: str) -> list[str]:
    """Of the first line that begins so: a table's head comes after."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return re.split(r"\s{2,}", line.strip())[1:]


def test_the_incident_s_call() -> None:
    text = shown(CALL)
    assert cells(text, "matmuls  ") == ["3,520", "3,584"]
    assert cells(text, "heads a pass") == ["1", "1"]
    assert cells(text, "keys a pass") == ["2,048", "14,086"]
    assert cells(text, "most rows a call") == ["8,192", "1,191"]
    assert "At 8,192 rows a pass takes one head beyond 1,024 keys" in text
    for gpu in known_gpus():
        assert gpu.title in text


def test_the_incident_s_prompt() -> None:
    text = shown(PROMPT)
    assert "all 55 chunks: 50,016 matmuls a layer" in text
    assert "the prompt, 61 layers" in text
    assert cells(text, "matmuls  ") == [f"{61 * 50_016:,}", f"{61 * 51_192:,}"]
    assert "So it does in 54 chunks, the first of which ends at token 16,384." in " ".join(text.split())
    assert re.search(r"^ +2 +8,192 +2,048 +1 +2,048 +64$", text, re.MULTILINE)


@pytest.mark.parametrize("asked", [CALL, PROMPT])
@pytest.mark.parametrize("gpus", [0, 1, 5])
def test_no_line_is_wider_than_the_terminal(asked: Asked, gpus: int) -> None:
    lines = shown(asked, gpus=gpus).splitlines()
    assert [line for line in lines if len(line) > 79 and "https://" not in line] == []
    assert not any(line.endswith(" ") for line in lines)


@settings(max_examples=30)
@given(
    tokens=st.integers(1, 2_000_000),
    chunk_tokens=st.integers(8_000, 131_072),
    dcp=st.sampled_from([1, 2, 1024]),
    layers=st.sampled_from([1, 61]),
    heads=st.sampled_from([1, 64, 128]),
    budget_bytes=st.sampled_from([1 << 20, 64 << 20, 1 << 40]),
)
def test_any_likely_prompt_fits_the_terminal(
    tokens: int, chunk_tokens: int, dcp: int, layers: int, heads: int, budget_bytes: int
) -> None:
    asked = PROMPT.model_copy(
        update={
            "prompt_tokens": tokens,
            "chunk_tokens": chunk_tokens,
            "rows": min(tokens, chunk_tokens),
            "keys": -(-tokens // dcp),
            "compress_ratio": 1,
            "dcp": dcp,
            "layers": layers,
            "heads": heads,
            "budget_bytes": budget_bytes,
        }
    )
    assert [line for line in shown(asked).splitlines() if len(line) > 79] == []


def test_a_gpu_alone_is_shown_with_its_sources() -> None:
    text, gpu = shown(CALL, gpus=1), known_gpus()[0]
    for name in ("fp32_tflops", "tf32_tflops", "fp8_tflops", "memory_gb_s", "cache_mib"):
        assert getattr(gpu, name).source in text
    assert text.count("not confirmed: ") == len(gpu.unconfirmed) > 0


def test_without_a_gpu_there_is_no_least_time() -> None:
    assert "Least time" not in shown(CALL, gpus=0)


def test_a_limit_that_splits_nothing_has_no_column() -> None:
    text = shown(CALL.model_copy(update={"rows": 1024, "keys": 1000}))
    assert "vLLM's limit of 512 MiB on a chunk's logits splits no rows here." in text
    assert cells(text, "calls") == ["1"]


def test_a_prompt_that_never_collapses_says_so() -> None:
    text = shown(PROMPT.model_copy(update={"prompt_tokens": 4096, "keys": 512, "rows": 4096}))
    assert "No chunk of this prompt comes to that." in " ".join(text.split())


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        ({"heads": 1}, "There is one head: each pass takes it."),
        ({"budget_bytes": 1024}, "takes one head at any number of keys: the scores of two exceed 1 KiB."),
    ],
)
def test_where_one_head_is_no_matter_of_length(update: dict[str, int], sentence: str) -> None:
    assert sentence in " ".join(shown(CALL.model_copy(update=update)).split())


def test_a_scenario_s_name_cannot_steer_a_terminal() -> None:
    text = shown(PROMPT.model_copy(update={"scenario": "\x1b[31mred\n\x07"}))
    assert text.isprintable() or set(text) - {"\n"} == {one for one in text if one.isprintable()}


def test_long_times_are_told_in_seconds() -> None:
    assert "Least time in s, the prompt, 61 layers" in shown(PROMPT)
    assert cells(shown(PROMPT), "GB10")[2] == "2,700"
    assert "Least time in ms, the call" in shown(CALL)


def test_numbers() -> None:
    assert [least_time(n) for n in (0, 0.001, 0.488, 7.63, 225.6, 92_700)] == [
        "0", "<0.01", "0.48", "7.6", "220", "92,000"
    ]  # fmt: skip
    assert [decimal_size(n, "B") for n in (999, 999_999, 1_912_685_649_920)] == ["999 B", "1 MB", "1.91 TB"]
    assert [binary_size(n) for n in (1, 1024, 64 << 20, 3 << 19)] == ["1 B", "1 KiB", "64 MiB", "1.5 MiB"]


@given(st.floats(0.01, 1e9))
def test_a_floor_is_never_shown_higher_than_it_is(number: float) -> None:
    assert number * 0.9 <= float(least_time(number).replace(",", "")) <= number


@given(st.integers(0, 10**24))
def test_a_size_is_shown_to_three_digits(number: int) -> None:
    value, unit = decimal_size(number, "B").split()
    power = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"].index(unit)
    assert float(value) * 1000**power == pytest.approx(number, rel=0.006)
