"""All looks together: what is wrong, with whom, how sure, and what to measure next. Pure."""

from collections.abc import Sequence

from sparkdiag.diagnosing.classes import odd_ones, rank_classes, set_remarks
from sparkdiag.diagnosing.comparing import differences
from sparkdiag.diagnosing.finding import confidence_of, decider, finding_of
from sparkdiag.diagnosing.grouping import by_process, names_of, over_time
from sparkdiag.diagnosing.lagging import waiting_for_peers, with_laggards
from sparkdiag.diagnosing.next_step import next_step
from sparkdiag.diagnosing.process import Read, read_process
from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, ProcessDiagnosis, Reason, Traffic
from sparkdiag.evidence.dump import Pasted, ProcessDump

MOST_CAVEATS = 12


def diagnose(looks: Sequence[ProcessDump], *, traffic: Traffic | None = None) -> Diagnosis:
    """The diagnosis over looks at one server: one or several processes, once or over time, in the order taken.

    ``traffic``: what the server itself said of its requests meanwhile, where it was asked.
    """
    return diagnose_processes(by_process(looks), traffic=traffic)


def diagnose_processes(groups: Sequence[Sequence[ProcessDump]], *, traffic: Traffic | None = None) -> Diagnosis:
    """The same where it is known which looks are at the same process: one group a process, looks in order."""
    if not groups:
        return Diagnosis(kind="not-an-engine", reason="there is no stack", next_step=next_step([], 0, "unknown"))
    looks = [look for group in groups for look in group]
    names = names_of(groups)
    reads = with_laggards([read_process(group, name=name) for group, name in zip(groups, names, strict=True)])
    found = [read.found for read in reads]
    waiting = frozenset(index for index, read in enumerate(reads) if read.waits) | waiting_for_peers(reads)
    odd = odd_ones(found, waiting=waiting)
    decides = decider(reads, odd)
    finding, why = finding_of(reads, decides, traffic)
    answer = found[decides]
    processes = tuple(one.model_copy(update={"differs": index in odd}) for index, one in enumerate(found))
    return Diagnosis(
        kind=answer.kind,
        finding=finding,
        confidence=confidence_of(reads, decides, odd, finding),
        process=answer.name,
        function=answer.function,
        processes=processes,
        classes=rank_classes(found, waiting=waiting),
        looks=len(looks),
        reasons_for=(
            Reason(source="looks", text=why),
            *(reason for reason in answer.reasons_for if reason.text != why),
            *_peers(processes, decides),
            *_told(traffic),
        ),
        reasons_against=answer.reasons_against,
        caveats=(*set_remarks(found, waiting=waiting), *_caveats(looks, reads))[:MOST_CAVEATS],
        next_step=next_step(reads, decides, finding),
        reference=answer.reference,
        reason=answer.reasons_for[0].text if answer.kind in CANNOT_TELL and answer.reasons_for else None,
    )


def diagnose_pasted(texts: Sequence[Pasted], *, later: bool = False) -> Diagnosis:
    """The same for texts that were read; a refused one is said, and where all are, it is the answer.

    ``later``: each text shows the same processes as the one before, at a later time.
    """
    looks = [look for text in texts for look in text.looks]
    refused = [text for text in texts if text.refused]
    notes = tuple(f"{text.source}: {note}" for text in texts for note in (*filter(None, [text.refused]), *text.notes))
    if not looks:
        kind = next((text.refused_kind for text in refused if text.refused_kind == "garbled"), None)
        reason = refused[0].refused if refused else "there is no stack"
        step = next_step([], 0, "unknown")
        notes = notes if len(texts) > 1 else texts[0].notes if texts else ()
        return Diagnosis(kind=kind or "not-an-engine", reason=reason, caveats=notes[:MOST_CAVEATS], next_step=step)
    groups = over_time([text.looks for text in texts]) if later else by_process(looks)
    found = diagnose_processes(groups)
    return found.model_copy(update={"caveats": (*notes, *found.caveats)[:MOST_CAVEATS]})


def compare(good: Sequence[Pasted], bad: Sequence[Pasted]) -> Diagnosis:
    """The diagnosis of ``bad`` with what differs from ``good``."""
    found = diagnose_pasted(bad)
    healthy = [look for text in good for look in text.looks]
    looks = [look for text in bad for look in text.looks]
    notes = tuple(f"{text.source}: {text.refused}" for text in good if text.refused)
    differ = differences(healthy, looks)
    if healthy and looks and not differ:
        notes = ("good and bad do not differ: the same processes stand in the same places in both", *notes)
    return found.model_copy(update={"differences": differ, "caveats": (*notes, *found.caveats)[:MOST_CAVEATS]})


def _peers(processes: Sequence[ProcessDiagnosis], decides: int) -> list[Reason]:
    """What the others do, in one line, where one process is the odd one out."""
    if not processes[decides].differs or len(processes) < 2:
        return []
    place = (processes[decides].kind, processes[decides].function)
    others = [one for one in processes if (one.kind, one.function) != place]
    if not others:
        return []
    waits = sorted({f"{one.kind} in {one.function}" if one.function else one.kind for one in others})
    return [Reason(source="process set", text=f"{processes[decides].name} differs; the others: {', '.join(waits[:4])}")]


def _told(traffic: Traffic | None) -> list[Reason]:
    if traffic is None or traffic.in_flight is None:
        return []
    count = ", ".join(
        f"{value:.0f} {name}" for name, value in (("running", traffic.running), ("waiting", traffic.waiting))
        if value is not None
    )  # fmt: skip
    if traffic.moved is None:
        return [Reason(source="metrics", text=f"requests: {count}")]
    over = "" if traffic.over_s is None else f" in {traffic.over_s:.0f} s"
    moved = "counters of work moved" if traffic.moved else "no counter of work moved"
    return [Reason(source="metrics", text=f"requests: {count}; {moved}{over}")]


def _caveats(looks: Sequence[ProcessDump], reads: Sequence[Read]) -> tuple[str, ...]:
    caveats = []
    if len(looks) == 1:
        caveats.append("one look at one process: whether it moves, and what the others do, is not known")
    elif all(len(read.looks) == 1 for read in reads):
        caveats.append("one look at each process: whether they move is not known")
    for read in reads:
        cut = sum(not thread.whole for look in read.looks for thread in look.threads)
        if cut:
            caveats.append(f"{read.found.name}: {cut} of its stacks {'is' if cut == 1 else 'are'} not whole")
        caveats += [
            f"{read.found.name}: {note}" for note in dict.fromkeys(n for look in read.looks for n in look.notes)
        ]
    return tuple(caveats[:MOST_CAVEATS])
