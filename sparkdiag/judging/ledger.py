"""What the dispatch ledger of a run comes to. Pure; no verdict rests on it."""

import math

from pydantic import ValidationError

from sparkdiag.evidence.ledger import DispatchNotWrapped, LedgerSummary
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.ledger_calls import ProcessLedger, Window, by_process
from sparkdiag.judging.ledger_findings import Sources, findings_of, with_heads_seen
from sparkdiag.judging.ledger_ranks import Prefill, prefill_of, rank_ledger
from sparkdiag.judging.ledger_sentence import sentence_of
from sparkdiag.scenario.model import Scenario

PROBE_VARIABLE = "SPARKDIAG_PROBE_DIR"
MOST_NOT_WRAPPED = 40


def ledger_of(stored: StoredRun) -> LedgerSummary | None:
    """None where no ledger was to be had: a server that was only watched or never ready, a run from before ledgers, a
    scenario that cannot be read any more."""
    record, observation = stored.record, stored.observation
    if record.watched or record.dcp is None:
        return None
    if not observation.dispatch and "ledger" not in record.scenario:
        return None
    try:
        scenario = Scenario.model_validate(record.scenario)
    except ValidationError:
        return None
    return summarised(stored, scenario)


def summarised(stored: StoredRun, scenario: Scenario) -> LedgerSummary:
    """The summary, whatever there is of a ledger."""
    record, observation = stored.record, stored.observation
    window = window_of(observation)
    processes = _of_ranks(observation)
    prefills = [prefill_of(process, window, scenario) for process in processes] if window is not None else []
    ranks = tuple(
        rank_ledger(one, window, scenario, rank=_rank(one.process, observation))
        for one in prefills
        if window is not None
    )
    summary = LedgerSummary(
        sentence="",
        nothing_because=_nothing_because(record, observation, prefills, scenario),
        expected_chunks=_expected(observation, scenario),
        ranks=tuple(sorted(ranks, key=lambda rank: (rank.rank, rank.pid))),
        without=_without(observation, processes) if processes else (),
        not_wrapped=_not_wrapped(processes),
        never_called=_never_called(processes),
        dropped=sum(rank.missing for rank in ranks),
    )
    if window is not None and summary.nothing_because is None:
        sources = Sources(stored=stored, scenario=scenario, prefills=tuple(prefills), ranks=summary.ranks)
        update = {"findings": findings_of(sources), "ranks": with_heads_seen(sources)}
        summary = summary.model_copy(update=update)
    return summary.model_copy(update={"sentence": sentence_of(summary)})


def window_of(observation: Observation) -> Window | None:
    """None where no prompt was sent."""
    client = observation.client
    if client.sent is None:
        return None
    ends = [observation.now_s, client.first_token_s, client.end.t_s if client.end is not None else None]
    return Window(
        sent_s=client.sent.t_s,
        end_s=min(end for end in ends if end is not None),
        first_token_s=client.first_token_s,
    )


def _of_ranks(observation: Observation) -> tuple[ProcessLedger, ...]:
    """Those processes in which the model runs, or that called anything that is watched."""
    workers = {worker.pid for worker in observation.workers}
    return tuple(one for one in by_process(observation.dispatch) if one.pid in workers or one.calls)


def _without(observation: Observation, processes: tuple[ProcessLedger, ...]) -> tuple[str, ...]:
    """The model's processes that wrote nothing."""
    told = {process.pid for process in processes}
    return tuple(f"{worker.name} (pid {worker.pid})" for worker in observation.workers if worker.pid not in told)


def _rank(process: ProcessLedger, observation: Observation) -> str:
    told = process.told
    if told is not None:
        named = [f"{name}{rank}" for name, rank in (("TP", told.tp_rank), ("DCP", told.dcp_rank)) if rank is not None]
        if named:
            return " ".join(named)
    title = next((_label(one) for one in observation.processes if one.pid == process.pid), "")
    return title or f"pid {process.pid}"


def _label(process: ProcessInfo) -> str:
    return process.ranks.label.replace("_", " ")


def _expected(observation: Observation, scenario: Scenario) -> int | None:
    sent = observation.client.sent
    return math.ceil(sent.tokens / scenario.server.chunk_tokens) if sent is not None else None


def _nothing_because(
    record: RunRecord, observation: Observation, prefills: list[Prefill], scenario: Scenario
) -> str | None:
    """Why there is no prefill call; None where there is one."""
    if any(prefill.calls for prefill in prefills):
        return None
    if not observation.dispatch:
        off = record.server_argv and PROBE_VARIABLE not in record.server_env
        return "the server was started without the probe" if off else "the probe wrote no ledger"
    if observation.client.sent is None:
        return "no prompt was sent"
    found = {name for prefill in prefills for name in prefill.process.wrapped}
    if not found:
        reasons = dict.fromkeys(one.reason for prefill in prefills for one in prefill.process.not_wrapped)
        why = f": {'; '.join(list(reasons)[:2])}" if reasons else ""
        return f"none of the watched functions could be recorded in a process of the model{why}"
    entries = {watched.function for watched in scenario.watch if watched.role == "entry"}
    called = [call for prefill in prefills for call in prefill.process.calls.values()]
    window = window_of(observation)
    in_time = [call for call in called if window is not None and window.holds(call)]
    if any(call.function in entries for call in in_time):
        name = next(call.function for call in in_time if call.function in entries)
        return f"{name} was called, and below it none of the watched functions but a decode's"
    never = "never reached, or reached inside a compiled graph, where calls are not seen"
    return f"{len(found)} watched functions were recorded, and none was called in the prefill: {never}"


def _not_wrapped(processes: tuple[ProcessLedger, ...]) -> tuple[DispatchNotWrapped, ...]:
    """Each once, whatever the process; only of functions that the process records nowhere else."""
    found: dict[tuple[str, str | None, str], DispatchNotWrapped] = {}
    for process in processes:
        for line in process.not_wrapped:
            if line.function not in process.wrapped:
                found.setdefault((line.function, line.module, line.reason), line)
    return tuple(found.values())[:MOST_NOT_WRAPPED]


def _never_called(processes: tuple[ProcessLedger, ...]) -> tuple[str, ...]:
    wrapped = {name for process in processes for name in process.wrapped}
    called = {call.function for process in processes for call in process.calls.values()}
    called |= {count.function for process in processes if process.totals is not None for count in process.totals.counts}
    return tuple(sorted(wrapped - called))
