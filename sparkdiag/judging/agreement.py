"""What the source says that a run reaches, held against the stacks of its workers. Pure; no verdict rests on it.

Only frames below the entry function count, and only while the predicted phase lasts. A kernel that is over quickly may
never be on a stack, so that it was not seen tells nothing; one that was seen and that the source excludes tells a lot.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import ValidationError

from sparkdiag.evidence.agreement import RouteAgreement, SeenKernel
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.route import Guard, Reached, Route, TrailStep
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import Frame, StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.scenario.model import Scenario

MOST_GUARDS, MOST_WAYS, LONGEST_CONDITION = 6, 3, 160
_OPTION = "--"
"""In what a route gives as a guard's reason: ``--dcp 2``."""


def agreement_of(stored: StoredRun) -> RouteAgreement | None:
    """None where no route was asked for, or where the run's scenario cannot be read any more."""
    try:
        scenario = Scenario.model_validate(stored.record.scenario)
    except ValidationError:
        return None
    return compare(stored.record, stored.observation, scenario)


def compare(record: RunRecord, observation: Observation, scenario: Scenario) -> RouteAgreement | None:
    """None where no route was asked for."""
    if record.predicted is None:
        return None
    route = record.predicted.route
    if route is None:
        return RouteAgreement(answer="not compared", because=record.predicted.problem or "no route is known")
    looks = _looks(route, observation, kernels=_known_kernels(route, scenario))
    found = RouteAgreement(
        answer="not compared",
        predicted=route.kernels,
        guards=_deciding(route.reached[0].trail) if len(route.kernels) == 1 else (),
        seen=tuple(SeenKernel(function=name, samples=times) for name, times in looks.kernels.most_common()),
        inside=looks.inside,
        samples=looks.samples,
    )
    other = _other_than_read(record, route)
    own = {bare(name) for name in route.kernels}
    foreign = next((one.function for one in found.seen if one.function not in own), None)
    if other is not None:
        return found.model_copy(update={"because": other})
    doubt = "" if record.revision.proved else "that the running code is this source is not proved"
    if foreign is not None and not route.not_understood:
        way, proved = looks.ways[foreign], record.revision.proved
        doubted = _doubted(route, way, same_lines=proved) or _doubted(route, way, same_lines=False)
        return found.model_copy(update={"answer": "disagree", "doubted": doubted, "because": doubt})
    why = _why_not(route, observation, looks)
    if why is not None:
        return found.model_copy(update={"because": why})
    return found.model_copy(update={"answer": "agree", "because": doubt})


def _other_than_read(record: RunRecord, route: Route) -> str | None:
    """What the running server turned out to be, where that is not what the route was read for."""
    size, sha = record.dcp.size if record.dcp is not None else None, record.revision.sha
    if size is not None and route.config.dcp not in (None, size):
        return f"the server runs DCP {size}, the route is that of DCP {route.config.dcp}"
    if sha is not None and is_commit(route.revision) and sha != route.revision:
        return f"the server runs {sha[:10]}, the route is that of {route.revision[:10]}"
    return None


def is_commit(revision: str) -> bool:
    """Whether a route was read at a commit, not from installed files."""
    return len(revision) == 40 and all(digit in "0123456789abcdef" for digit in revision)


def _known_kernels(route: Route, scenario: Scenario) -> frozenset[str]:
    """Functions that are a kernel, or whose kernel they are, wherever they are seen."""
    leaves = (watched.function for watched in scenario.watch if watched.role == "leaf")
    suspects = (signature.function for signature in scenario.signatures)
    return frozenset(map(bare, (*route.kernels, *scenario.route.kernels, *suspects, *leaves))) - {route.entry}


def bare(name: str) -> str:
    """A function's name as a frame has it: ``torch.ops.vllm.xpu_fp8_mqa_logits`` -> ``xpu_fp8_mqa_logits``."""
    return name.rsplit(".", 1)[-1]


@dataclass(slots=True)
class _Looks:
    samples: int = 0
    inside: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    ways: dict[str, list[Frame]] = field(default_factory=dict)
    """Of each kernel seen, the frames from the entry down to it, as last seen."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Of samples inside that show no kernel, the innermost function."""


def _looks(route: Route, observation: Observation, *, kernels: frozenset[str]) -> _Looks:
    looks = _Looks()
    for sample in _of_the_phase(route, observation):
        looks.samples += 1
        way = _from_entry(sample, route.entry)
        if way is None:
            continue
        looks.inside += 1
        place = next((place for place, frame in enumerate(way) if place and frame.name in kernels), None)
        if place is None:
            looks.elsewhere[way[-1].name] += 1
            continue
        kernel = way[place].name
        looks.kernels[kernel] += 1
        looks.ways[kernel] = way[: place + 1]
    return looks


def _of_the_phase(route: Route, observation: Observation) -> Iterator[StackSample]:
    """Usable samples of workers before the first token (a prefill), or after it (a decode)."""
    client = observation.client
    if client.sent is None:
        return
    pids = {worker.pid for worker in observation.workers}
    first_s, end_s = client.first_token_s, client.end.t_s if client.end is not None else None
    for sample in observation.samples:
        if sample.pid not in pids or not sample.usable or sample.started_s < client.sent.t_s:
            continue
        if end_s is not None and sample.ended_s > end_s:
            continue
        before = first_s is None or sample.ended_s <= first_s
        after = first_s is not None and sample.started_s >= first_s
        if before if route.config.phase == "prefill" else after:
            yield sample


def _from_entry(sample: StackSample, entry: str) -> list[Frame] | None:
    """The entry function's frame and what it called, outermost first; None where no thread is inside it."""
    for thread in sample.threads:
        place = next((place for place, frame in enumerate(thread.frames) if frame.name == entry), None)
        if place is not None:
            return list(thread.frames[place::-1])
    return None


def _why_not(route: Route, observation: Observation, looks: _Looks) -> str | None:
    """Why nothing can be said; None where every kernel that was seen is the one that the source names."""
    if not route.exact:
        return _inexact(route)
    if not observation.sampling.wanted:
        return "this run was not sampled, by request"
    phase = "prefill" if route.config.phase == "prefill" else "decode"
    if not looks.samples:
        return f"no usable sample of a worker fell into the {phase}"
    over = ", which was over quickly" if observation.client.first_token_s is not None else ""
    if not looks.inside:
        return f"none of {looks.samples} worker samples of the {phase}{over} lies inside {route.entry}"
    if not looks.kernels:
        where = ", ".join(f"{name} in {times}" for name, times in looks.elsewhere.most_common(3))
        inside = f"{looks.inside} of {looks.samples} worker samples lie inside {route.entry}"
        return f"{inside}, none in a known kernel: {where}"
    return None


def _inexact(route: Route) -> str:
    if route.not_understood:
        line = route.not_understood[0]
        return f"the source was not understood: {line.path}:{line.line} {line.source} ({line.reason})"
    if not route.reached:
        errors = ", ".join(dict.fromkeys(one.error for one in route.raises))
        return f"by the source no kernel is reached{f', but {errors} raised' if errors else ''}"
    ways = "; ".join(f"{one.function} {_condition(one.when)}" for one in route.reached[:MOST_WAYS])
    more = len(route.reached) - MOST_WAYS
    return f"the source leaves it open: {ways}" + (f"; and {more} more ways" if more > 0 else "")


def _condition(when: tuple[str, ...]) -> str:
    text = " and ".join(when)
    return f"if {text[:LONGEST_CONDITION]}{' …' if len(text) > LONGEST_CONDITION else ''}" if text else "in any case"


def _guards(trail: tuple[TrailStep, ...]) -> Iterator[Guard]:
    for step in trail:
        if step.kind == "guard" and not step.assumed:
            yield Guard(
                function=step.function,
                path=step.path,
                line=step.line,
                source=step.source,
                value=step.value,
                because=step.because,
            )


def _deciding(trail: tuple[TrailStep, ...]) -> tuple[Guard, ...]:
    """The guards that an option of the configuration decides, and those that keep a way out of reach; where there are
    none, all that were passed."""
    guards = tuple(_guards(trail))
    telling = tuple(guard for guard in guards if guard.value == "false" or _OPTION in guard.because)
    return (telling or guards)[:MOST_GUARDS]


def _doubted(route: Route, way: list[Frame], *, same_lines: bool) -> tuple[Guard, ...]:
    """Guards of the predicted trails, one of which must be otherwise if ``way`` was taken: those of the function in
    which the ways part, the last first, and of what it called there; its callers behaved as they were thought to.

    ``same_lines``: what runs is proved to be what was read. Then nothing behind the line that ``way`` left from counts.
    """
    found: dict[Guard, None] = {}
    lines = {frame.name: frame.line for frame in way}
    for reached in route.reached:
        chain = call_chain(reached)
        parting = next((name for name in reversed(chain) if name in lines), route.entry)
        own = [guard for guard in _guards(reached.trail) if guard.function == parting]
        called = [guard for guard in _guards(reached.trail) if guard.function not in chain[: chain.index(parting) + 1]]
        if same_lines:
            own = [guard for guard in own if guard.line <= lines[parting]]
            called = called if _call_line(reached, parting) < lines[parting] else []
        found |= dict.fromkeys((*reversed(own), *called))
    return tuple(found)[:MOST_GUARDS]


def _call_line(reached: Reached, function: str) -> int:
    """The line from which ``function`` leaves on the trail; 0 where it is not on it."""
    steps = (step for step in reversed(reached.trail) if step.function == function and step.kind == "call")
    return next((step.line for step in steps), 0)


def call_chain(reached: Reached) -> tuple[str, ...]:
    """The functions that are on the stack where the kernel is reached, the entry first, the kernel last."""
    stack: list[str] = []
    for step in reached.trail:
        stack[step.depth :] = [step.function]
    return tuple(dict.fromkeys((*stack, reached.function)))
