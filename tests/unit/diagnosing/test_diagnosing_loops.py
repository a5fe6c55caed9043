"""Loops found in the locals of made-up looks: which, how fast, how far; and what is none."""

import random

import pytest
from diagnosing_cases import NestedLoop, in_function, look, random_times, series, thread
from diagnosing_cases import frame as a_frame
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.loop_names import bound_for, is_index, is_never, is_size, is_step, same_stem
from sparkdiag.diagnosing.loops import MOST_FINDINGS, loops_in
from sparkdiag.evidence.diagnosis import LoopFinding


def named(findings: tuple[LoopFinding, ...]) -> list[tuple[str, str]]:
    return [(one.variable, one.scope) for one in findings]


def test_of_nested_loops_the_outer_is_the_progress_and_the_inner_begins_anew() -> None:
    loop = NestedLoop()
    outer, inner = loops_in(series(loop.at, [1.0, 4.3, 8.1, 12.6, 20.2]))
    assert (outer.variable, outer.stop_variable, outer.stop, outer.scope) == ("head_start", "num_heads", 64, "call")
    assert (inner.variable, inner.stop_variable, inner.around) == ("k_start", "num_keys", "head_start")
    assert outer.inferred and inner.inferred
    assert outer.per_s == pytest.approx(7 / 4, rel=0.05)
    assert outer.left_s == pytest.approx(loop.seconds - 20.2, rel=0.05)
    assert inner.per_s is None and inner.left_s is None
    assert "head_start 1 -> 35 of num_heads 64 in logits" in outer.words
    assert "anew with each head_start" in inner.words


def test_within_one_pass_of_the_outer_the_inner_one_is_the_progress() -> None:
    loop = NestedLoop(heads=8, keys=60_000, k_chunk=512, passes_per_s=10)
    (only,) = loops_in(series(loop.at, [1.0, 3.0, 5.0, 8.0]))
    assert (only.variable, only.scope, only.stop) == ("k_start", "call", 60_000)
    assert only.per_s == pytest.approx(5120, rel=0.06)


@pytest.mark.parametrize("looks", [2, 3])
def test_two_looks_say_that_it_advances_and_three_how_fast(looks: int) -> None:
    loop = NestedLoop()
    outer = loops_in(series(loop.at, [2.0, 9.0, 15.0][:looks]))[0]
    assert (outer.variable, outer.looks) == ("head_start", looks)
    assert (outer.per_s is not None) == (looks == 3)
    assert (outer.left_s is not None) == (looks == 3)


def test_without_stamps_there_is_no_rate() -> None:
    loop = NestedLoop()
    outer = loops_in([in_function(loop.at(at_s)) for at_s in (1, 5, 9, 13)])[0]
    assert (outer.variable, outer.over_s, outer.per_s, outer.left_s) == ("head_start", None, None, None)


def test_another_call_is_told_by_its_callers_line_and_by_its_sizes() -> None:
    loop = NestedLoop()
    elsewhere = [in_function(loop.at(at_s) | {"num_keys": keys}, at_s=at_s) for at_s, keys in ((2, 8192), (9, 12288))]
    assert loops_in(elsewhere) == ()
    other_line = [
        look(thread(a_frame("forward", line), a_frame("logits", 40, **loop.at(at_s))), at_s=at_s)
        for at_s, line in ((2, 10), (9, 11))
    ]
    assert loops_in(other_line) == ()
    other_layer = [
        look(thread(a_frame("forward", 10, layer=layer), a_frame("logits", 40, **loop.at(at_s))), at_s=at_s)
        for at_s, layer in ((2, 3), (9, 1))
    ]
    assert loops_in(other_layer) == ()


def test_short_calls_are_taken_together_where_their_callers_tell_them_apart() -> None:
    """A layer's call lasts for two looks; the layer's index stands in the caller and is itself a loop of its call."""
    loop = NestedLoop(heads=32, passes_per_s=64)
    looks = []
    for layer in range(5):
        caller = a_frame("forward", 10, layer=layer, num_layers=6)
        for at_s in (0.4, 1.35):
            looks.append(look(thread(caller, a_frame("logits", 40, **loop.at(at_s))), at_s=2 * layer + at_s))
    findings = loops_in(looks)
    assert named(findings) == [("layer", "call"), ("head_start", "call"), ("k_start", "pass")]
    assert findings[0].stop == 6
    assert findings[1].per_s == pytest.approx(16, rel=0.02)
    assert findings[1].looks == 2


def test_a_size_that_grows_from_call_to_call_is_what_short_calls_show() -> None:
    dice = random.Random(5)
    loop = NestedLoop()
    looks = [
        in_function(
            loop.at(dice.uniform(0, loop.seconds)) | {"num_keys": 4096 * n, "k_chunk_size": 999 + n}, at_s=2.0 * n
        )
        for n in range(1, 12)
    ]
    (grown,) = loops_in(looks)
    assert (grown.variable, grown.scope, grown.first, grown.last) == ("num_keys", "calls", 4096, 11 * 4096)
    assert grown.per_s == pytest.approx(2048)
    assert "from call to call of logits" in grown.words


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("misread", [0, 3276, 462_281_264, -5])
def test_one_misread_value_neither_breaks_a_finding_nor_bends_its_rate(place: int, misread: int) -> None:
    loop = NestedLoop()
    values = [loop.at(at_s) for at_s in (1, 4, 8, 12, 17, 22, 29)]
    values[place] |= {"head_start": misread}
    looks = [in_function(each, at_s=at_s) for each, at_s in zip(values, (1, 4, 8, 12, 17, 22, 29), strict=True)]
    found = [one for one in loops_in(looks) if one.variable == "head_start"]
    assert found, loops_in(looks)
    assert found[0].per_s == pytest.approx(7 / 4, rel=0.15)


@pytest.mark.parametrize("name", ["k_start", "head_start", "i", "num_keys", "whatever"])
@pytest.mark.parametrize("place", range(6))
def test_one_misread_value_makes_no_finding(name: str, place: int) -> None:
    values = [
        {"k_start": 512, "head_start": 3, "i": 4, "num_keys": 6000, "num_heads": 64, "whatever": 9} for _ in range(6)
    ]
    values[place][name] += 700
    assert loops_in([in_function(each, at_s=float(at_s)) for at_s, each in enumerate(values)]) == ()


@pytest.mark.parametrize(
    "values",
    [
        {"now": lambda n: 17 * n, "deadline": lambda n: 100 + n},
        {"address": lambda n: 4096 * n},
        {"big": lambda n: 140_000_000_000_000 + 64 * n},
        {"n_warning": lambda n: n},
        {"retries": lambda n: n, "max_retries": lambda n: 500},
        {"strange": lambda n: 1000 + 5 * n},  # 1 a second: a clock
        {"constant": lambda n: 5},
        {"both_ways": lambda n: [5, 9, 2, 7, 1, 8, 3, 6, 0, 4, 2, 9][n]},
        {"step": lambda n: [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1][n], "num_steps": lambda n: 3},
    ],
    ids=lambda values: next(iter(values)),
)
def test_no_loops(values: dict[str, object]) -> None:
    looks = [in_function({name: at(n) for name, at in values.items()}, at_s=5.0 * n) for n in range(12)]  # type: ignore[operator]
    assert loops_in(looks) == ()


def test_a_counter_in_a_function_that_waits_is_its_spin() -> None:
    looks = [
        look(thread(a_frame("worker_busy_loop", 9), a_frame("acquire_read", 30, i=n, n=5000)), at_s=float(n))
        for n in range(12)
    ]
    assert loops_in(looks) == ()


def test_a_helper_thread_is_no_progress() -> None:
    looks = [
        look(
            thread(a_frame("worker_busy_loop", 9)),
            thread(a_frame("run", 3), a_frame("tick", 30, i=n, n=5000), name="metrics-exporter"),
            at_s=float(n),
        )
        for n in range(12)
    ]
    assert loops_in(looks) == ()


def test_an_end_is_claimed_only_where_one_local_can_be_it() -> None:
    def only(**sizes: int) -> LoopFinding:
        return loops_in([in_function({"i": 7 * n} | sizes, at_s=2.0 * n) for n in range(8)])[0]

    assert (only(n=500).stop_variable, only(n=500).left_s) == ("n", pytest.approx((500 - 49) / 3.5))
    assert only(num_rows=500, num_cols=700).stop is None
    assert only(num_rows=5).stop is None


@given(
    heads=st.integers(4, 200),
    per_head=st.integers(1, 12),
    k_chunk=st.integers(16, 4096),
    looks=st.integers(4, 30),
    seed=st.integers(0, 2**20),
)
def test_a_loop_sampled_at_random_is_found_with_its_rate(
    heads: int, per_head: int, k_chunk: int, looks: int, seed: int
) -> None:
    loop = NestedLoop(heads=heads, keys=per_head * k_chunk, k_chunk=k_chunk)
    times = random_times(random.Random(seed), looks=looks, until_s=loop.seconds * 0.999)
    values = [loop.at(at_s) for at_s in times]
    heads_seen = {each["head_start"] for each in values}
    findings = loops_in([in_function(each, at_s=at_s) for each, at_s in zip(values, times, strict=True)])
    if len(heads_seen) < 3:
        return
    assert findings[0].variable == "head_start"
    assert {one.variable for one in findings} <= {"head_start", "k_start"}
    assert (findings[0].first, findings[0].last) == (values[0]["head_start"], values[-1]["head_start"])
    if len(heads_seen) >= 5 and findings[0].per_s is not None:
        truth = loop.passes_per_s / per_head
        assert findings[0].per_s == pytest.approx(truth, rel=3 / (max(heads_seen) - min(heads_seen)) + 0.05)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["i", "k_start", "n", "num_keys", "x", "total"]), st.integers(-5, 2**70)),
        max_size=8,
    )
)
def test_nothing_breaks_it(values: list[dict[str, int]]) -> None:
    findings = loops_in([in_function(each, at_s=float(at_s)) for at_s, each in enumerate(values)])
    assert len(findings) <= MOST_FINDINGS
    for one in findings:
        assert one.last >= one.first or one.scope == "pass"
        assert one.words


def test_what_names_say() -> None:
    assert all(map(is_index, ("k_start", "i", "_", "layer_idx", "num_computed_tokens", "cur")))
    assert not any(map(is_index, ("num_heads", "matmuls", "seq_len_kv", "total")))
    assert all(map(is_size, ("num_heads", "seq_len", "seq_len_kv", "n", "k_chunk_size")))
    assert not any(map(is_size, ("k_start", "token_idx", "num_computed_tokens", "total")))
    assert all(map(is_step, ("k_chunk_size", "stride", "BLOCK_SIZE"))) and not is_step("step")
    assert all(map(is_never, ("now", "start_time", "n_warning", "request_id"))) and not is_never("k_start")
    assert same_stem("k_start", "k_chunk_size") and not same_stem("k_start", "head_chunk_size")
    sizes = {"seq_len": 8192, "num_heads": 64, "seq_len_kv": 112_640, "head_chunk_size": 1, "k_chunk_size": 2048}
    assert bound_for("k_start", 6000, sizes, ()) == ("seq_len_kv", True)
    assert bound_for("head_start", 12, sizes, ()) == ("num_heads", True)
    assert bound_for("matmuls", 12, sizes, ()) is None
    assert bound_for("layer", 12, {"n_layers": 61, "n": 5}, ()) == ("n_layers", True)
    assert bound_for("done", 12, {"total": 61, "n_rows": 500}, ()) == ("total", False)
