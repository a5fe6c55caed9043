"""What is searched for, how often, and how what was found is put together."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.posting.github_values import Hit
from sparkdiag.posting.patience import Patience
from sparkdiag.posting.searching import MOST_FUNCTIONS, joined, queries, search, searched


def hit(number: int, *, repository: str = "o/r", updated: str = "2026-01-01") -> Hit:
    return Hit(
        repository=repository, number=number, title="t", is_pull_request=False, updated_at=updated, url="https://x"
    )


@given(names=st.lists(st.none() | st.text()))
def test_only_names_of_functions_are_searched_for(names: list[str | None]) -> None:
    found = searched(names)
    assert len(found) <= MOST_FUNCTIONS and len(set(found)) == len(found)
    assert all(name.isidentifier() and '"' not in name for name in found)


def test_a_method_is_searched_for_by_its_own_name() -> None:
    assert searched(["Worker.execute_model", None, "execute_model", "f", "a b"]) == ("execute_model",)


def test_each_kind_is_asked_for_by_itself_within_the_length_that_github_takes() -> None:
    made = queries(("one_function", "x" * 80), ("o/r", "o/" + "y" * 100))
    assert made[0].text == '"one_function" repo:o/r is:issue is:open'
    assert made[1].text == '"one_function" repo:o/r is:pull-request is:open'
    assert all(len(query.text) <= 256 for query in made)
    assert len(made) == 8


def test_each_conversation_is_named_once_and_our_own_not_at_all() -> None:
    found = joined(
        [("f", hit(1)), ("f", hit(2, updated="2026-03-01")), ("g", hit(1)), ("f", hit(5)), ("f", hit(1))],
        without="O/R#5",
    )
    assert [(one.hit.number, one.functions) for one in found] == [(1, ("f", "g")), (2, ("f",))]


class Hub:
    """Gives full pages for ever."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, *, page: int) -> tuple[Hit, ...]:
        self.asked.append((query, page))
        return tuple(hit(number + 100 * page) for number in range(100))


def test_a_search_asks_a_bounded_number_of_times_and_says_so() -> None:
    hub, patience = Hub(), Patience(left_s=0, say=print)
    asked = queries(("first_one", "other_one"), ("o/r",))
    found = search(hub, asked, patience=patience, most_requests=5, without=None)  # type: ignore[arg-type]
    assert len(hub.asked) == 5
    assert found.cut
    assert len(found.mentions) == 200
    assert {page for _, page in hub.asked} == {0, 1}
