"""A log as it comes: private keys and values over several lines, in pieces, beside what other processes say."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.harmless.secrets import REDACTED, LineRedactor, redact_text
from sparkdiag.serving.server_log import LONGEST_LINE, LineSplitter

BODY = tuple(f"MIIEow{number:02d}IBAAKCAQEA7bq0pWZk3xT9vN2hJ8sLmQ5rYcGfUe1oXaBdVt4+/" for number in range(26))
KEY = ("-----BEGIN RSA PRIVATE KEY-----", *BODY, "Zm9v==", "-----END RSA PRIVATE KEY-----")
ORDINARY = "INFO 11-30 04:02:14 [core.py:1] 12 requests, max_tokens=64, tokenizer_mode=auto"


def through(lines: "tuple[str, ...] | list[str]") -> list[str]:
    return list(map(LineRedactor(), lines))


def test_a_private_key_over_lines_goes_and_the_log_goes_on() -> None:
    kept = through([ORDINARY, *KEY, ORDINARY])
    assert kept[0] == kept[-1] == ORDINARY
    assert len(kept) == len(KEY) + 2
    assert not any(line in text for text in kept for line in (*BODY, "Zm9v"))


def test_what_another_process_says_within_a_key_stays() -> None:
    mixed = [KEY[0], BODY[0], ORDINARY, *BODY[1:], ORDINARY, KEY[-1]]
    kept = through(mixed)
    assert kept.count(ORDINARY) == 2
    assert not any(line in text for text in kept for line in BODY)


def test_a_prefix_before_every_line_of_a_key_hides_nothing() -> None:
    kept = through([f"(EngineCore pid=7) {line}" for line in KEY])
    assert kept[1] == f"(EngineCore pid=7) {REDACTED}"
    assert not any(line in text for text in kept for line in BODY)


@given(st.integers(min_value=300, max_value=600))
def test_a_key_without_an_end_does_not_swallow_the_log(count: int) -> None:
    lines = [f"line{number}oftheusualoutput" for number in range(count)]
    kept = through([KEY[0], *lines])
    assert kept[-1] == lines[-1]
    assert through([KEY[0], *[ORDINARY] * 3]) == [REDACTED, *[ORDINARY] * 3]


def test_two_keys_and_text_between_them() -> None:
    text = f"one {KEY[0]}{BODY[0]}{KEY[-1]} between {KEY[0]}{BODY[1]}"
    assert through([text, BODY[2], KEY[-1] + " after"]) == [f"one {REDACTED} between {REDACTED}", REDACTED, " after"]


@given(st.lists(st.integers(min_value=0, max_value=1900), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_a_key_goes_however_its_bytes_arrive(cuts: list[int], end: str) -> None:
    data = (end.join([ORDINARY, *KEY, ORDINARY]) + end).encode()
    splitter, kept = LineSplitter(LineRedactor()), []
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, stop in pairwise(places):
        kept += splitter.feed(data[start:stop])
    kept += splitter.feed(b"")
    assert kept[0] == kept[-1] == ORDINARY
    assert not any(line in text for text in kept for line in BODY)


@pytest.mark.parametrize("length", [3960, 3990, 65500, 65520, 65530])
def test_no_half_of_a_password_is_left_where_a_long_line_is_cut(length: int) -> None:
    splitter = LineSplitter(LineRedactor())
    line = b"x " * (length // 2) + b"https://me:Qx7wPz4Rm8KtQx7wPz4Rm8Kt@host.test/" + b" y" * 5000
    kept = splitter.feed(line[:40_000]) + splitter.feed(line[40_000:] + b"\nnext\n") + splitter.feed(b"")
    assert kept[-1] == "next" and len(kept) == 2
    assert len(kept[0]) <= LONGEST_LINE
    assert "Qx7" not in kept[0]


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (["api_keys:", "  - one1", "  - two2", "port: 1"], ["api_keys:", f"  {REDACTED}", f"  {REDACTED}", "port: 1"]),
        (["password:", "hunter2", "next"], ["password:", REDACTED, "next"]),
        (["serve --api-key \\", "  hunter2", "next"], [f"serve --api-key {REDACTED}", f"  {REDACTED}", "next"]),
        (["password:", ORDINARY], ["password:", ORDINARY]),
        (["password:", "", "next"], ["password:", "", "next"]),
        (["max_tokens:", "64"], ["max_tokens:", "64"]),
    ],
)  # fmt: skip
def test_a_value_on_the_next_line_goes(lines: list[str], kept: list[str]) -> None:
    assert through(lines) == kept


@given(
    st.lists(st.one_of(st.text(), st.sampled_from([*KEY[:3], KEY[-1], "password:", "  - x", "--api-key", ORDINARY])))
)
def test_line_for_line_never_raising_and_twice_is_once(lines: list[str]) -> None:
    kept = through(lines)
    assert len(kept) == len(lines)
    text = "\n".join(lines)
    assert redact_text(redact_text(text)) == redact_text(text)


@pytest.mark.parametrize(
    "piece", ["eyJ-", "--a.", "x://a", 'cookie:"', "key=(", "pass=a,", 'api_key=\\"x', "a:a@", "A"]
)
def test_a_megabyte_in_one_line_takes_seconds_not_hours(piece: str) -> None:
    line = "token=" + piece * (1_000_000 // len(piece))
    began = time.process_time()
    redact_text(line)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=64, num_tokens: 20000, prompt_tokens_total 3, tokenizer_mode=auto, stop_token_ids=[1, 2]",
        "k_cache_prefix=model.layers.5.self_attn.indexer.k_cache, num_key_value_heads=1, kv_key: 12",
        "vLLM 0.32.0+cpu at 3f2a9c41d07be85516f0c9e2ab73d4418c6d5e90, torch==2.13.0+cpu",
        "/usr/lib/python3.11/site-packages/vllm/v1/core/sched/scheduler.py:42 in schedule",
        "eos_token='</s>', bos_token_id=1, pad_token: None, token: 42, first_token_s=0.3, time_per_output_token=12",
        "sparkdiag repro --dcp 2 --prompt-tokens 20000 -- --max-num-batched-tokens 2048 --tokenizer /m/lab",
        "http://127.0.0.1:8000/v1/completions?stream=1 answered 200; see https://github.com/x/y/pull/12#issue",
        "key: 1024/6000, keys=[1, 2], monkey=banana1234567, passed=12, bypass: true, compass=north",
        "server.env.HF_TOKEN: found the name of a secret; allowed: no secrets: a scenario is copied",
        "export HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, then: sparkdiag env build",
    ],
)
def test_what_a_run_is_made_of_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("gap", ["\u200b", "\x1b[0m", "\x00", "\u202e", "\u3164"])
def test_nothing_unseen_saves_a_token(gap: str) -> None:
    kept = redact_text(f"using hf_abcdefgh1{gap}2ijklmnopqrst here")
    assert "abcdefgh" not in kept and "ijklmnop" not in kept
