from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.observing.thinning import thinned


@given(st.integers(min_value=0, max_value=600), st.integers(min_value=8, max_value=60), st.integers(1, 4))
def test_a_growing_series_stays_short_keeps_its_newest_and_its_first(count: int, most: int, series: int) -> None:
    kept: list[int] = []
    for item in range(count):
        kept.append(item)
        kept = thinned(kept, series=lambda one: one % series, most=most)
        assert len(kept) <= most
    assert kept == sorted(kept)
    newest = min(count, most // 2)
    assert kept[len(kept) - newest :] == list(range(count - newest, count))
    if most >= 4 * series:
        assert kept[: min(count, series)] == list(range(min(count, series)))


def test_no_series_is_thinned_away_by_another() -> None:
    kept = list(range(100))
    for _ in range(3):
        kept = thinned(kept, series=lambda one: one % 2, most=20)
    assert {one % 2 for one in kept[: len(kept) - 10]} == {0, 1}
