"""From readings to the answer: kernels with their conditions, the guards on the way, what was not understood. Pure."""

from collections.abc import Iterable, Sequence

from sparkdiag.evidence.route import Guard, Raises, Reached, RouteConfig, TrailStep
from sparkdiag.routing.reading.bodies import MATTERS_ALWAYS
from sparkdiag.routing.reading.context import Context, Event
from sparkdiag.routing.reading.pass_through import Reading
from sparkdiag.routing.values.given import keys_at
from sparkdiag.routing.values.state import SEVERAL, State, Step
from sparkdiag.scenario.model import Scenario

MOST_REDUCED = 32
"""Sets of conditions that are made simpler, which takes the cube of their number; more are told as so many sets."""
MOST_ALTERNATIVES = 4
"""Ways to a kernel that are all told."""
Assumptions = frozenset[tuple[str, bool]]


def reached_in(reading: Reading, scenario: Scenario) -> tuple[Reached, ...]:
    """The kernels of one reading, each once, with the conditions under which it is reached."""
    context = reading.context
    kinds = {signature.function: signature.kind for signature in scenario.signatures}
    grouped: dict[tuple[str, str], list[Event]] = {}
    for event in context.events:
        grouped.setdefault((event.function, event.path), []).append(event)
    found = []
    for events in grouped.values():
        simplest = min(events, key=lambda event: len(event.state.assumed))
        found.append(
            Reached(
                function=simplest.function,
                path=simplest.path,
                line=simplest.line,
                external=simplest.external,
                listed=simplest.external or simplest.function in scenario.route.kernels,
                when=conditions(context, [event.state for event in events]),
                trail=trail_of(context, simplest),
                stall=kinds.get(simplest.function),
            )
        )
    return tuple(found)


def raised_in(reading: Reading) -> tuple[Raises, ...]:
    """Errors that the entry function may end in, each place once."""
    grouped: dict[tuple[str, str, int], list[State]] = {}
    for raised in reading.raised:
        grouped.setdefault((raised.error, raised.path, raised.line), []).append(raised.state)
    return tuple(
        Raises(error=error, path=path, line=line, when=conditions(reading.context, states))
        for (error, path, line), states in grouped.items()
    )


def conditions(context: Context, states: Iterable[State]) -> tuple[str, ...]:
    """The conditions under which one of these ways is gone, one line each; empty: always."""
    order = {symbol: place for place, symbol in enumerate(context.conditions)}
    sets = {frozenset(state.assumed.items()) for state in states}
    left = reduced(sets) if len(sets) <= MOST_REDUCED else sorted(sets, key=lambda one: (len(one), sorted(one)))
    if frozenset() in left:
        return ()
    told = [tuple(_told(context, pair) for pair in sorted(one, key=lambda pair: order.get(pair[0], 0))) for one in left]
    if len(told) == 1:
        return told[0]
    if len(told) > MOST_ALTERNATIVES:
        told = told[:MOST_ALTERNATIVES]
        return (f"one of {len(left):,} sets of conditions, such as: {' and '.join(told[0])}",)
    shared = [line for line in told[0] if all(line in one for one in told[1:])]
    rest = {" and ".join(line for line in one if line not in shared) for one in told}
    return (*shared, *([" or ".join(f"({text})" for text in sorted(rest))] if "" not in rest else []))


def reduced(sets: set[Assumptions]) -> list[Assumptions]:
    """As few sets as say the same: ``a and b`` with ``a and not b`` is ``a``; what another implies is left out."""
    work = set(sets)
    while True:
        work = {one for one in work if not any(other < one for other in work)}
        pair = next(
            (
                (one, other, symbol)
                for one in work
                for symbol, value in one
                for other in work
                if other != one
                and (one - {(symbol, value)}) == (other - {(symbol, not value)})
                and (symbol, not value) in other
            ),
            None,
        )
        if pair is None:
            return sorted(work, key=lambda one: (len(one), sorted(one)))
        one, other, symbol = pair
        work = (work - {one, other}) | {frozenset(item for item in one if item[0] != symbol)}


def _told(context: Context, pair: tuple[str, bool]) -> str:
    symbol, value = pair
    condition = context.conditions.get(symbol)
    if symbol == SEVERAL or condition is None:
        return symbol if value else f"not {symbol}"
    return f"{_as_said(condition.source, value is not condition.negated)} ({condition.place})"


def _as_said(source: str, truth: bool) -> str:
    """A guard that is true, or false, as one would say it."""
    if truth:
        return source
    for ending, opposite in ((" is not None", " is None"), (" is None", " is not None")):
        if source.endswith(ending) and " " not in source.removesuffix(ending):
            return source.removesuffix(ending) + opposite
    if source.startswith("not ") and " " not in source.removeprefix("not "):
        return source.removeprefix("not ")
    return f"not {source}" if " " not in source else f"not ({source})"


def trail_of(context: Context, event: Event) -> tuple[TrailStep, ...]:
    """The way to a kernel: calls that lead there or answer a guard, and guards that decide how it goes on."""
    leading = {symbol for other in context.events for symbol in other.chain}
    tails = {symbol.rpartition(".")[2] for symbol in leading | context.returned} | context.dispatch
    kept: list[TrailStep] = []
    skipped_below: int | None = None
    for step in event.state.trail:
        if skipped_below is not None:
            if step.depth > skipped_below:
                continue
            skipped_below = None
        if step.kind == "call" and step.about not in leading and step.about not in context.returned:
            skipped_below = step.depth
        elif step.kind == "call" or _matters(step, tails, event.state):
            kept.append(_shown(step))
    return tuple(dict.fromkeys(kept))


def _matters(step: Step, tails: set[str], state: State) -> bool:
    if step.assumed:
        return step.about in state.assumed
    return MATTERS_ALWAYS in step.matters or not tails.isdisjoint(step.matters)


def _shown(step: Step) -> TrailStep:
    return TrailStep(
        kind=step.kind,
        depth=step.depth,
        function=step.function,
        path=step.path,
        line=step.line,
        source=step.source,
        value=step.value,
        because=step.because,
        assumed=step.assumed,
    )


def guards_of(reached: Sequence[Reached], contexts: Sequence[Context]) -> tuple[Guard, ...]:
    """Every guard of the trails once; one that is true on one way and false on another is unknown, for both reasons."""
    found: dict[tuple[str, int, str], Guard] = {}
    for step in (step for one in reached for step in one.trail if step.kind == "guard"):
        key = (step.path, step.line, step.source)
        told = {truth: why for context in contexts for truth, why in context.passed.get(key, {}).items()}
        reasons = dict.fromkeys(why for why in told.values() if why)
        both = len(told) > 1 or step.assumed
        found[key] = Guard(
            function=step.function,
            path=step.path,
            line=step.line,
            source=step.source,
            value="unknown" if both else step.value,
            because="; ".join(reasons) if both else step.because,
        )
    return tuple(found.values())


def over_prompt(config: RouteConfig, parts: Sequence[tuple[Reading, tuple[Reached, ...]]]) -> tuple[Reached, ...]:
    """The kernels over the whole prompt: where parts of it differ, each with the part it is reached in."""
    runs: list[tuple[int, int, tuple[Reached, ...]]] = []
    for reading, reached in parts:
        if runs and _same(runs[-1][2], reached):
            runs[-1] = (runs[-1][0], reading.last, _with_earlier(runs[-1], reached, reading))
        else:
            runs.append((reading.first, reading.last, reached))
    if len(runs) == 1:
        return runs[0][2]  # with the trails of the last part, where the prompt is longest
    whole: list[Reached] = []
    everywhere = [one for one in runs[0][2] if all(any(_alike(one, other) for other in run[2]) for run in runs)]
    whole += everywhere
    for first, last, reached in runs:
        low, high = keys_at(config, first), keys_at(config, last)
        part = f"the prompt's indexer keys so far are {low:,} to {high:,} (chunks {first + 1} to {last + 1})"
        if first == last:
            part = f"the prompt's indexer keys so far are {low:,} (chunk {first + 1})"
        whole += [
            one.model_copy(update={"when": (part, *one.when)})
            for one in reached
            if not any(_alike(one, other) for other in everywhere)
        ]
    return tuple(whole)


def _chunks(first: int, last: int) -> str:
    return f"chunk {first + 1}" if first == last else f"chunks {first + 1} to {last + 1}"


def _with_earlier(
    run: tuple[int, int, tuple[Reached, ...]], reached: tuple[Reached, ...], reading: Reading
) -> tuple[Reached, ...]:
    """The trails of the last part; where its sizes are the reason, the parts before it are told of too."""
    first, last, before = run
    told = {(one.function, step.path, step.line, step.source): step for one in before for step in one.trail}

    def shown(one: Reached, step: TrailStep) -> TrailStep:
        other = told.get((one.function, step.path, step.line, step.source))
        if other is None or other.because == step.because or other.value != step.value:
            return step
        here, earlier = _chunks(reading.first, reading.last), _chunks(first, last)
        return step.model_copy(update={"because": f"{step.because} ({here}; the same in {earlier})"})

    return tuple(one.model_copy(update={"trail": tuple(shown(one, step) for step in one.trail)}) for one in reached)


def _alike(first: Reached, second: Reached) -> bool:
    return (first.function, first.path, first.when) == (second.function, second.path, second.when)


def _same(first: tuple[Reached, ...], second: tuple[Reached, ...]) -> bool:
    return len(first) == len(second) and all(_alike(a, b) for a, b in zip(first, second, strict=True))
