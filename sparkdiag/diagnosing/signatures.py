"""The signatures of ``signatures.toml``: what a stack with certain functions in certain places means."""

from sparkdiag.diagnosing.matching import Found, Seen, decide, is_titled
from sparkdiag.diagnosing.signature_file import SAYS, signature_book
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.diagnosis import DiagnosisKind
from sparkdiag.evidence.dump import ProcessDump

_OTHERS = 3
"""Reasons against that are told: more of them say no more."""


class Match(Value):
    """What one look at one process is found to be, before time and peers are asked."""

    kind: DiagnosisKind
    function: str | None = None
    path: str | None = None
    line: int | None = None
    thread: str | None = None
    signature: str | None = None
    """Id of the signature; None for ``forward``, ``helper-threads-only``, ... which need none."""
    meaning: str = ""
    next_step: str = ""
    reference: str | None = None
    healthy: bool | None = None
    """What this state means by itself; None: seen in healthy and in stalled servers."""
    waits: bool = False
    """For somebody else: another process, a peer, a client."""
    names_work: bool = False
    """The signature names the very work that takes the time, not a wait or a place."""
    because: str = ""
    """What in the stack decided it: ``all_gather in torch/distributed below execute_model``."""
    others: tuple[str, ...] = ()
    """What else in the process speaks of something else: reasons against."""


def match_look(look: ProcessDump) -> Match:
    """What this one look shows. Never raises."""
    best, rest, telling = decide(look)
    if best is None:
        return _cannot_tell(look, telling)
    frame = best.frame
    signature = best.rule.signature if best.rule else None
    return Match(
        kind=signature.kind if signature else "forward",
        function=frame.function,
        path=frame.path,
        line=frame.line,
        thread=best.seen.thread.name,
        signature=signature.id if signature else None,
        meaning=signature.meaning if signature else "Inside model execution, at a function that no signature knows.",
        next_step=signature.next_step if signature else "",
        reference=signature.reference if signature else None,
        healthy=signature.healthy if signature else None,
        waits=signature.waits if signature else False,
        names_work=best.weight == SAYS["work"],
        because=_because(best),
        others=_others(best, rest),
    )


def _because(found: Found) -> str:
    """``all_gather in torch/distributed/distributed_c10d.py, 2 frames in, below execute_model``."""
    frames, book = found.seen.thread.frames, signature_book()
    where = f" in {found.frame.path}" if found.frame.path else ""
    depth = "innermost" if found.at == 0 else f"{found.at} frame{'s' * (found.at > 1)} out"
    outer = next(
        (
            frames[index].name
            for index in range(found.at + 1, len(found.seen.sets))
            if found.seen.sets[index] & book.model
        ),
        None,
    )
    below = f", below {outer}" if outer and outer != found.frame.name else ""
    return f"{found.frame.name}{where}, {depth}{below}"


def _others(best: Found, rest: tuple[Found, ...]) -> tuple[str, ...]:
    """What speaks of another kind, strongest first; what rests or is done aside says nothing against."""
    kind = best.rule.signature.kind if best.rule else "forward"
    told: dict[str, str] = {}
    for each in rest:
        other = each.rule.signature.kind if each.rule else "forward"
        said = each.rule is None and each.seen is best.seen
        if said or other == kind or other in told or each.weight <= SAYS["aside"]:
            continue
        thread = each.seen.thread.name
        told[other] = f"{other}: {_because(each)}" + (f" ({thread})" if thread and each.seen is not best.seen else "")
    return tuple(told.values())[:_OTHERS]


def _cannot_tell(look: ProcessDump, telling: tuple[Seen, ...]) -> Match:
    """No signature fits and nothing runs in the model: an answer all the same."""
    book = signature_book()
    if not any(thread.frames for thread in look.threads):
        return Match(
            kind="helper-threads-only", next_step=_DUMP_ALL, because="no thread of this process shows a single frame"
        )
    if not telling:
        return Match(
            kind="helper-threads-only",
            meaning="Only threads that run in every server, sick or well: the thread that works is not in the paste.",
            next_step=_DUMP_ALL,
            because=f"all {len(look.threads)} threads are helpers",
        )
    known = [seen for seen in telling if seen.every & book.engine]
    if not known and not is_titled(look) and any(seen.telling is not None for seen in telling):
        return _of_no_engine(telling)
    mains = [seen for seen in known if seen.main and seen.telling is not None]
    if not mains:
        return Match(
            kind="helper-threads-only",
            meaning="No thread in it shows what the process works at or waits for.",
            next_step=_DUMP_ALL,
            because="the threads of the engine that are shown wait for work of their own",
        )
    main = min(mains, key=_any_order)
    frame = main.thread.frames[main.telling or 0]
    return Match(
        kind="forward",
        function=frame.function,
        path=frame.path,
        line=frame.line,
        thread=main.thread.name,
        meaning="Inside the engine, at a function that no signature knows.",
        because=f"{frame.name}{f' in {frame.path}' if frame.path else ''}, and no signature fits",
    )


def _any_order(seen: Seen) -> tuple[list[tuple[str, str, int]], str]:
    """By what a thread shows, so that no order of threads changes the answer."""
    frames = [(frame.function, frame.path or "", frame.line or 0) for frame in seen.thread.frames]
    return frames, seen.thread.name or ""


def _of_no_engine(telling: tuple[Seen, ...]) -> Match:
    """Names the function where the main thread runs code of its own; none where it waits for something."""
    shown = [seen for seen in telling if seen.telling is not None]
    chosen = min(shown, key=lambda seen: (not seen.main, _any_order(seen)))
    frame = chosen.thread.frames[chosen.telling or 0]
    runs = chosen.main and not any(
        sets & signature_book().plumbing and not native
        for sets, native in zip(chosen.sets[: chosen.telling], chosen.native[: chosen.telling], strict=True)
    )
    return Match(
        kind="not-an-engine",
        function=frame.function if runs else None,
        path=frame.path if runs else None,
        line=frame.line if runs else None,
        thread=chosen.thread.name if runs else None,
        meaning="No frame of an inference engine, a collective or a device wait is in it.",
        next_step="py-spy dump --pid PID of the engine's own process (pgrep -f 'EngineCore|sglang|vllm')",
        because=f"{frame.name} and the frames around it belong to no engine that is known",
    )


_DUMP_ALL = "py-spy dump --pid PID, whole: the main thread of every process of the server"
