"""Why two routes differ, in words."""

from typing import Literal

from sparkdiag.evidence.route import NotUnderstood, Raises, Reached, Route, RouteConfig, TrailStep, Truth
from sparkdiag.routing.across.route_change import condition, why_changed


def guard(source: str, value: Truth, *, line: int = 3, because: str = "") -> TrailStep:
    return step("guard", source, line=line).model_copy(update={"value": value, "because": because})


def call(source: str, *, line: int = 9) -> TrailStep:
    return step("call", source, line=line)


def step(kind: Literal["guard", "call"], source: str, *, line: int) -> TrailStep:
    return TrailStep(kind=kind, depth=0, function="indexer", path="a.py", line=line, source=source)


def route(*trail: TrailStep, kernel: str = "slow", exact: bool = True, when: tuple[str, ...] = ()) -> Route:
    reached = Reached(function=kernel, path="k.py", line=1, trail=trail, when=when)
    return empty(exact=exact).model_copy(update={"reached": (reached,)})


def empty(*, exact: bool = False) -> Route:
    return Route(
        revision="0" * 40,
        scenario="s",
        config=RouteConfig(),
        entry="indexer",
        entry_path="a.py",
        entry_line=1,
        exact=exact,
    )


def test_a_guard_that_turned_is_named_whatever_else_moved() -> None:
    before = route(guard("cached", "true"), guard("clean_logits", "false"), call("slow()"))
    after = route(guard("clean_logits", "true", line=40, because="clean_logits=True"), call("fast()"), kernel="fast")
    assert why_changed(before, after) == (
        "the guard clean_logits of indexer was false, is now true (clean_logits=True)"
    )


def test_the_guard_in_front_of_the_new_call_is_named_before_those_that_only_came_along() -> None:
    before = route(guard("a", "true"), guard("clean_logits and q", "false"), call("slow()"))
    after = route(guard("new", "true"), guard("a", "true"), guard("q", "true", line=7), call("fast()"), kernel="fast")
    assert why_changed(before, after) == (
        "the guard q of indexer comes in (a.py:7), true, in place of the guard clean_logits and q of indexer"
    )


def test_calls_that_come_go_or_are_others() -> None:
    plain, other = route(call("slow()")), route(call("fast(x)", line=5), kernel="fast")
    assert why_changed(plain, other) == "indexer calls fast(x) in place of slow() (a.py:5)"
    longer = route(call("check()", line=2), call("slow()"), kernel="other")
    assert why_changed(plain, longer) == "indexer calls check() now (a.py:2)"
    assert why_changed(longer, plain) == "indexer no longer calls check()"
    gone = route(call("slow()"), kernel="other")
    assert why_changed(route(guard("a", "true"), call("slow()")), gone) == "the guard a of indexer is gone"


def test_an_entry_that_comes_or_goes_and_an_error() -> None:
    plain = route(call("slow()"))
    assert why_changed(None, plain) == "indexer comes in at a.py:1"
    assert why_changed(plain, None) == "indexer is gone"
    assert why_changed(None, None) == ""
    raising = empty().model_copy(update={"raises": (Raises(error="ImportError: no b", path="a.py", line=4),)})
    assert why_changed(plain, raising) == "it ends in ImportError: no b (a.py:4)"
    assert why_changed(raising, plain) == "slow is reached, where it ended in ImportError: no b before"
    assert why_changed(plain, empty(exact=True)) == "slow is reached no longer"


def test_exactness_and_conditions() -> None:
    sure, open_ = route(call("slow()")), route(call("slow()"), exact=False)
    line = NotUnderstood(path="a.py", line=8, source="match x:", reason="match is not followed")
    assert why_changed(open_, sure) == "nothing is left open any more"
    assert why_changed(sure, open_) == "several ways are open now"
    puzzled = open_.model_copy(update={"not_understood": (line,)})
    assert why_changed(sure, puzzled) == "not understood: match x: (a.py:8): match is not followed"
    sometimes = route(call("slow()"), when=("x is true (a.py:3)",))
    assert why_changed(sure, sometimes) == "slow is reached when x is true (a.py:3), before always"
    elsewhere = route(call("slow()"), kernel="fast")
    assert why_changed(sure, elsewhere) == "fast is reached now, always"


def test_a_condition_is_the_same_wherever_its_line_is() -> None:
    here, there = (
        Reached(function="f", path="a.py", line=1, when=(f"x is true ({place})",)) for place in ("a.py:3", "b/c.py:44")
    )
    assert condition(here) == condition(there) == ("f", ("x is true",))
