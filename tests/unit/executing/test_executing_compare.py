"""Executed beside static: only what can be compared is, and a difference is never smoothed over."""

from __future__ import annotations

from sparkdiag.evidence.route import ExecutedCall, Raises, Reached, Route, RouteConfig, TrailStep
from sparkdiag.executing.compare import compared, same


def step(function: str, depth: int, *, kind: str = "call") -> TrailStep:
    return TrailStep(kind=kind, depth=depth, function="any", path="vllm/a.py", line=depth + 1, source=function)


TRAIL = (step("tried(x)", 0), step("logits(clean_logits=False)", 0), step("family", 1, kind="guard"), step("slow", 1))


def route(*functions: str, exact: bool = True, trail: tuple[TrailStep, ...] = TRAIL) -> Route:
    return Route(
        schema=1,
        revision="0" * 40,
        scenario="truth",
        config=RouteConfig(),
        entry="entry",
        entry_path="vllm/a.py",
        entry_line=1,
        reached=tuple(Reached(function=name, path="vllm/a.py", line=9, trail=trail) for name in functions),
        raises=(Raises(error="RuntimeError('no kernel here')", path="vllm/a.py", line=7),),
        exact=exact,
    )


def call(function: str = "entry", *reached: str, clean: bool | None = None, **more: str) -> ExecutedCall:
    return ExecutedCall(function=function, clean_logits=clean, reached=reached, **more)


def agrees(found: ExecutedCall, told: Route | None) -> bool | None:
    return compared(found, told, entry="entry").agrees


def test_one_of_several_kernels_agrees_and_another_does_not() -> None:
    assert agrees(call("entry", "slow"), route("slow")) is True
    assert agrees(call("entry", "slow"), route("fast", "slow", exact=False)) is True
    assert agrees(call("entry", "other"), route("fast", "slow", exact=False)) is False
    assert agrees(call("entry", "slow", "other"), route("slow")) is False


def test_a_difference_names_both() -> None:
    said = compared(call("entry", "other"), route("slow"), entry="entry").because
    assert "executed: other" in said
    assert "source: slow" in said


def test_a_dispatch_call_is_compared_where_the_route_runs_its_kernel_within_it() -> None:
    assert agrees(call("logits", "slow", clean=False), route("slow")) is True
    assert agrees(call("logits", "fast", clean=False), route("slow")) is False
    assert agrees(call("logits", "fast", clean=True), route("slow")) is None
    assert agrees(call("tried"), route("slow")) is None
    assert agrees(call("elsewhere", "fast"), route("slow")) is None


def test_no_kernel_is_a_difference_only_where_nothing_excuses_it() -> None:
    assert agrees(call(), route("slow")) is False
    assert agrees(call(), route("slow", exact=False)) is None
    assert agrees(call(because="not known, because it hangs on x"), route("slow")) is None
    assert agrees(call(raised="it ran past 2 s and was killed"), route("slow")) is None


def test_an_error_agrees_only_from_the_line_that_the_source_tells() -> None:
    assert agrees(call(raised="RuntimeError: no kernel here (vllm/a.py:7)"), route("slow")) is True
    assert agrees(call(raised="RuntimeError: no kernel here (vllm/a.py:8)"), route("slow")) is None
    assert agrees(call(raised="ValueError: no kernel here (vllm/a.py:7)"), route("slow")) is None


def test_without_a_route_nothing_is_compared() -> None:
    assert agrees(call("entry", "slow"), None) is None


def test_names_of_operators_count_by_their_end() -> None:
    assert same("torch.ops._C.logits", "logits")
    assert not same("fp8_mqa_logits_triton", "_fp8_mqa_logits_torch")


def test_a_module_that_is_missing_is_an_import_that_fails() -> None:
    told = route("slow").model_copy(update={"raises": (Raises(error="ImportError: none", path="vllm/a.py", line=3),)})
    assert agrees(call(raised="ModuleNotFoundError: No module named 'vllm.b' (vllm/a.py:3)"), told) is True
