"""Two runs held beside each other: what differs, what that did to the time, and what cannot be told from it. Pure."""

from sparkdiag.evidence.comparison import ComparedRow, ComparedSide, Comparison, FunctionShare
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.shares import most_different, worker_samples
from sparkdiag.reporting.comparison import facts
from sparkdiag.reporting.comparison.times import first_token, ratio_of, sentence_of, total_s

MOST_SETTINGS = 12
_CAUSES = ("DCP size", "revision", "vLLM", "prompt", "chunk", "TP size", "scenario", "environment", "machine")
"""Rows that may be why two runs went differently. Where more than one differs, which it was cannot be told."""
_ABSENT = "not given"


def compare(a: StoredRun, b: StoredRun) -> Comparison:
    """``a`` beside ``b``: neither is taken for the good one. Both with ledger and agreement (``compared``)."""
    left, right = facts.table_of(a), facts.table_of(b)
    rows = [ComparedRow(what=what, a=left[what], b=right[what], differs=left[what] != right[what]) for what in left]
    sides = _side(a), _side(b)
    lengths = _tokens(a), _tokens(b)
    ratio = ratio_of(sides[0].first_token, sides[1].first_token) if lengths[0] == lengths[1] else None
    unlike = f": the prompts have {lengths[0]} and {lengths[1]} tokens" if None not in lengths and ratio is None else ""
    return Comparison(
        a=sides[0],
        b=sides[1],
        sentence=sentence_of(
            *sides,
            names=names_of(left, right),
            ratio=ratio,
            why_none=unlike if lengths[0] != lengths[1] else "",
        ),
        ratio=ratio,
        rows=(*rows, *_settings(a, b)),
        stack_difference=tuple(
            FunctionShare(function=name, a=one, b=other)
            for name, one, other in most_different(_samples(a.observation), _samples(b.observation))
        ),
        caveats=_caveats(a, b, rows),
    )


def names_of(left: dict[str, str], right: dict[str, str]) -> tuple[str, str]:
    """What to call the two: by the first thing of those that may be the cause in which they differ."""
    for what, name in (("DCP size", "DCP {}"), ("revision", "{}"), ("vLLM", "vLLM {}"), ("prompt", "{}")):
        one, other = (side[what].removesuffix(" (proved)").removesuffix(" (not proved)") for side in (left, right))
        if one != other and facts.UNKNOWN not in (one, other):
            return name.format(one), name.format(other)
    return "A", "B"


def _tokens(stored: StoredRun) -> int | None:
    sent = stored.observation.client.sent
    return sent.tokens if sent is not None else None


def _side(stored: StoredRun) -> ComparedSide:
    verdict = stored.record.verdict
    return ComparedSide(
        run_dir=stored.run_dir,
        headline=facts.title(stored),
        outcome=verdict.outcome if verdict is not None else None,
        first_token=first_token(stored),
        total_s=total_s(stored),
    )


def _samples(observation: Observation) -> tuple[StackSample, ...]:
    """Of the prefill, or of all the time that a server was watched without a prompt of ours."""
    if observation.client.sent is not None:
        return worker_samples(observation)
    pids = {process.pid for process in observation.workers}
    return tuple(sample for sample in observation.samples if sample.usable and sample.pid in pids)


def _settings(a: StoredRun, b: StoredRun) -> list[ComparedRow]:
    """Options and variables of the server that are not the same, where both runs know theirs."""
    left, right = facts.settings_of(a), facts.settings_of(b)
    if not left or not right or a.record.watched or b.record.watched:  # nobody gave those, or read them all
        return []
    differing = [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
    return [
        ComparedRow(what=name, a=_value(left.get(name)), b=_value(right.get(name)), differs=True, setting=True)
        for name in differing[:MOST_SETTINGS]
    ]


def _value(value: str | None) -> str:
    return _ABSENT if value is None else value or "given"


def _caveats(a: StoredRun, b: StoredRun, rows: list[ComparedRow]) -> tuple[str, ...]:
    differing = [row.what for row in rows if row.differs and row.what in _CAUSES]
    made = []
    if len(differing) > 1:
        made.append(f"more than one thing differs ({', '.join(differing)}): which of them made the difference is open")
    if not differing:
        made.append("nothing that this table knows differs: the two runs are repetitions, or the cause lies elsewhere")
    for name, stored in (("A", a), ("B", b)):
        if not stored.record.revision.proved:
            made.append(f"{name} did not prove which revision ran")
        if stored.record.verdict is None:
            made.append(f"{name} has no verdict")
        if not stored.observation.sampling.wanted:
            made.append(f"{name} was not sampled")
        made += [f"{name}: {problem}" for problem in stored.problems[:3]]
    return tuple(made)
