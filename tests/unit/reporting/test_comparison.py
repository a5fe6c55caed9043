"""Two runs side by side: no factor that was not seen, no cause that was not isolated, nothing that breaks the page."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.client import ResponseEnd
from sparkdiag.evidence.comparison import ComparedSide, ComparedTime, Comparison
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Forecast
from sparkdiag.reporting.comparison.compare import compare
from sparkdiag.reporting.comparison.document import comparison_json
from sparkdiag.reporting.comparison.facts import table_of
from sparkdiag.reporting.comparison.markdown import render_comparison
from sparkdiag.reporting.comparison.times import NOISE, first_token, ratio_of, sentence_of
from sparkdiag.reporting.fitted import MOST_BYTES
from tests.unit.reporting.page_case import outline
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY

TIMES = st.builds(
    ComparedTime,
    seconds=st.none() | st.floats(0.01, 1e5),
    source=st.sampled_from(["measured", "at least", "not known"]),
) | st.builds(
    lambda low, more, most: ComparedTime(seconds=low + more, low_s=low, high_s=low + more + most, source="forecast"),
    st.floats(0.01, 1e4),
    st.floats(0, 1e4),
    st.floats(0, 1e4),
)
HOSTILE = "`a` </details> | @team/x fixes #12 <img src=x> \x1b[31m\n# head"


def sentence(a: ComparedTime, b: ComparedTime) -> str:
    sides = [ComparedSide(run_dir="x", headline="h", first_token=time) for time in (a, b)]
    return sentence_of(*sides, names=("A", "B"), ratio=ratio_of(a, b), why_none="")


def with_argv(stored: StoredRun, *argv: str) -> StoredRun:
    return stored.model_copy(update={"record": stored.record.model_copy(update={"server_argv": ("vllm", *argv)})})


def test_the_bad_ones_forecast_stands_beside_the_good_ones_measured_time() -> None:
    found = compare(COMPLETED, CRAWLING)
    good, bad = found.a.first_token, found.b.first_token
    assert (good.source, bad.source) == ("measured", "forecast")
    assert good.seconds == COMPLETED.observation.client.time_to_first_token_s
    assert found.ratio is not None
    assert found.ratio == pytest.approx((bad.seconds or 0) / (good.seconds or 1))
    times = f"{found.ratio:.1f} times as long to the first token"
    assert found.sentence.startswith(f"DCP 2 takes {times} as DCP 1 (25.0 to 34.5 by the forecast's range): ")
    assert "(forecast, " in found.sentence
    assert "(measured)" in found.sentence
    assert [row.what for row in found.rows if row.differs][:1] == ["verdict"]


@pytest.mark.parametrize(("one", "other"), list(product(EVERY.values(), repeat=2)))
def test_which_is_named_first_changes_no_answer(one: StoredRun, other: StoredRun) -> None:
    there, back = compare(one, other), compare(other, one)
    assert there.ratio == back.ratio
    assert [(row.what, row.a, row.b) for row in there.rows] == [(row.what, row.b, row.a) for row in back.rows]
    assert {(one.function, one.a, one.b) for one in there.stack_difference} == {
        (one.function, one.b, one.a) for one in back.stack_difference
    }


@pytest.mark.parametrize("stored", EVERY.values())
def test_a_run_beside_itself_is_no_difference(stored: StoredRun) -> None:
    found = compare(stored, stored)
    assert not any(row.differs for row in found.rows)
    assert found.stack_difference == ()
    assert any("nothing that this table knows differs" in text for text in found.caveats)
    assert "times as long" not in found.sentence
    assert ("forecast" in found.sentence) == (found.a.first_token.source == "forecast")


def test_prompts_of_different_length_give_no_factor() -> None:
    sent = COMPLETED.observation.client.sent
    assert sent is not None
    client = COMPLETED.observation.client.model_copy(update={"sent": sent.model_copy(update={"tokens": 4321})})
    other = COMPLETED.model_copy(update={"observation": COMPLETED.observation.model_copy(update={"client": client})})
    found = compare(other, CRAWLING)
    assert found.ratio is None
    assert "the prompts have 4321 and" in found.sentence
    assert any(text.startswith("more than one thing differs (DCP size") for text in found.caveats)


@given(TIMES, TIMES)
def test_a_factor_is_claimed_only_where_the_ranges_leave_one(a: ComparedTime, b: ComparedTime) -> None:
    ratio, text = ratio_of(a, b), sentence(a, b)
    assert ratio is None or ratio >= 1
    if "times as long" not in text:
        return
    fast, slow = sorted((a, b), key=lambda time: time.seconds or 0)
    assert ratio is not None
    assert ratio >= NOISE
    assert fast.source != "at least"
    assert (slow.low_s or slow.seconds or 0) > (fast.high_s or fast.seconds or 0)
    assert ("by the forecast's range" in text) == ("forecast" in (fast.source, slow.source))
    assert ("at least" in text) == (slow.source == "at least")


def test_a_run_cut_short_took_at_least_so_long() -> None:
    verdict = CRAWLING.record.verdict
    assert verdict is not None
    blind = verdict.model_copy(update={"forecasts": ()})
    stored = CRAWLING.model_copy(update={"record": CRAWLING.record.model_copy(update={"verdict": blind})})
    time = first_token(stored)
    sent = CRAWLING.observation.client.sent
    assert sent is not None
    assert (time.source, time.seconds) == ("at least", pytest.approx(CRAWLING.observation.now_s - sent.t_s))
    end = ResponseEnd(t_s=sent.t_s + 3, how="cancelled")
    client = CRAWLING.observation.client.model_copy(update={"end": end})
    cancelled = stored.model_copy(
        update={"observation": stored.observation.model_copy(update={"client": client, "now_s": sent.t_s + 60})}
    )
    assert first_token(cancelled).seconds == pytest.approx(3.0), "nobody waited any longer"
    one = Forecast(low_s=1, best_s=2, high_s=3, fraction_done=0.1, source="loop-variables")
    told = blind.model_copy(update={"forecasts": (one,), "outcome": "crashed"})
    crashed = stored.model_copy(update={"record": stored.record.model_copy(update={"verdict": told})})
    assert first_token(crashed).source == "not known"


def test_options_of_the_server_that_differ_are_rows() -> None:
    one = with_argv(COMPLETED, "--port", "1", "--block-size", "16", "--enforce-eager", "--seed=1")
    other = with_argv(CRAWLING, "--port", "2", "--block-size", "64", "--seed", "1")
    rows = {row.what: (row.a, row.b) for row in compare(one, other).rows if row.setting and row.what.startswith("--")}
    assert rows == {"--block-size": ("16", "64"), "--enforce-eager": ("given", "not given")}


def test_every_pair_gives_a_page_and_a_document() -> None:
    for one, other in product(EVERY.values(), repeat=2):
        found = compare(one, other)
        assert len(render_comparison(found).encode()) <= MOST_BYTES
        assert Comparison.model_validate_json(comparison_json(found)).sentence == found.sentence


def test_nothing_that_was_read_adds_a_block_to_the_page() -> None:
    def plant(value: object) -> object:
        match value:
            case str():
                return HOSTILE
            case list():
                return [plant(one) for one in value]
            case dict():
                return {key: one if key in ("outcome", "source") else plant(one) for key, one in value.items()}
        return value

    found = compare(with_argv(COMPLETED, "--x", "1"), with_argv(CRAWLING, "--x", "2"))
    planted = Comparison.model_validate(plant(json.loads(comparison_json(found))))
    assert any(row.setting for row in planted.rows)
    assert outline(render_comparison(planted)) == outline(render_comparison(found))


def test_the_rows_are_known_by_their_order() -> None:
    assert list(table_of(COMPLETED))[:3] == ["verdict", "first token", "end to end"]
