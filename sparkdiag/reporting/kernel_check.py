"""``kernel check`` as text: a line a kernel, what is wrong with it, and how to see it again. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.kernel_runs import (
    FALLBACK,
    TRITON,
    CheckedCall,
    DispatchContract,
    KernelCheck,
    KernelEnvironment,
    RevisionUnderTest,
)

_MOST_SHOWN = 6
"""Calls of one kernel whose problems are shown; the document has all."""


def check_text(found: KernelCheck, *, again: str) -> str:
    """The whole answer; ``again`` is the command that repeats it."""
    lines = [where_words(found.environment), *revision_lines(found.revision)]
    for subject in dict.fromkeys(call.subject for call in found.calls):
        lines += _subject_lines([call for call in found.calls if call.subject == subject])
    lines += _pair_lines(found)
    if found.dispatch is not None:
        lines.append(dispatch_line(found.dispatch))
    if found.ended_early is not None:
        lines.append(f"ended early: {found.ended_early}")
    lines += [_verdict(found), f"again, on the same inputs: {again}"]
    return "\n".join(lines)


def where_words(environment: KernelEnvironment) -> str:
    """Where the kernels ran."""
    versions = f"torch {environment.torch}, Triton {environment.triton}, Python {environment.python}"
    if environment.device == "cpu":
        return f"on the CPU, Triton in its interpreter ({versions})"
    return f"on {environment.gpu}, capability {environment.capability} ({versions}, CUDA {environment.cuda})"


def revision_lines(revision: RevisionUnderTest | None) -> list[str]:
    """Whose kernels these are."""
    if revision is None:
        return ["kernels: sparkdiag's own fallback and Triton kernel (no --repo)"]
    lines = [f"kernels of {revision.revision[:10]} ({revision.asked}), loaded over {revision.over or 'nothing yet'}"]
    lines += [f"  {function}: {path}" for function, path in revision.paths.items()]
    return [*lines, *(f"  note: {note}" for note in revision.notes)]


def _subject_lines(calls: Sequence[CheckedCall]) -> list[str]:
    first, bad = calls[0], [call for call in calls if call.problems]
    ran = [call for call in calls if call.skipped is None]
    differences = [call.difference for call in ran if call.difference is not None]
    worst = f"max relative difference {max(differences):.1e} to float64" if differences else "nothing to compare"
    state = "ok" if not bad else "FAILED" if first.judged else "differs"
    told = "" if first.judged else "; told only, not judged"
    lines = [
        f"{first.name}: {state}, {len(ran) - len(bad)} of {len(ran)} calls right, {worst} "
        f"(tolerance {first.tolerance:.0e}){told}"
    ]
    for call in bad[:_MOST_SHOWN]:
        lines += [f"    {_call_words(call)}: {problem}" for problem in call.problems]
    if len(bad) > _MOST_SHOWN:
        lines.append(f"    and {len(bad) - _MOST_SHOWN} more calls (--json has all)")
    skipped = [call for call in calls if call.skipped is not None]
    return [*lines, *(f"    {_call_words(call)}: not called, {call.skipped}" for call in skipped[:_MOST_SHOWN])]


def _call_words(call: CheckedCall) -> str:
    how = "" if call.clean else " clean_logits=False (compared inside the windows)"
    return f"[{call.case.shape}] {call.case.window}{how}"


def _pair_lines(found: KernelCheck) -> list[str]:
    both = [pair.difference for pair in found.pairs if pair.difference is not None]
    if not both:
        return []
    return [f"between the two kernels: max relative difference {max(both):.1e} over {len(both)} calls"]


def dispatch_line(contract: DispatchContract) -> str:
    """The contract by itself: both values of ``clean_logits`` must reach the Triton kernel."""
    if contract.holds:
        return f"dispatch contract: ok, clean_logits true and false both reach {TRITON}"
    if contract.unknown is not None:
        return f"dispatch contract: cannot be told, {contract.unknown}"
    wrong = [
        f"clean_logits={value} reaches {reached}"
        for value, reached in (("True", contract.cleaning), ("False", contract.not_cleaning))
        if reached != TRITON
    ]
    return f"dispatch contract: FAILED, _fp8_mqa_logits_sm12x with {' and with '.join(wrong)}, not {TRITON}"


def _verdict(found: KernelCheck) -> str:
    if found.passed:
        masks = "-inf exactly outside the windows, no NaN, nothing unwritten"
        return f"passed on these inputs, {_reach(found)}: {masks}, differences within tolerance{_not_checked(found)}"
    names = dict.fromkeys(call.name for call in found.calls if call.judged and call.problems)
    failed = [*names]
    if found.dispatch is not None and not found.dispatch.holds and found.dispatch.unknown is None:
        failed.append("the dispatch contract" if names else "the dispatch contract alone, both kernels are right")
    return f"failed: {', '.join(failed)}"


def _reach(found: KernelCheck) -> str:
    """How far it was tried: beyond the largest sizes nothing is said."""
    cases = [call.case for call in found.calls if call.judged and call.skipped is None]
    rows, keys = max(case.rows for case in cases), max(case.keys for case in cases)
    return f"up to {rows:,} rows and {keys:,} keys"


def _not_checked(found: KernelCheck) -> str:
    """What of the pair and its dispatch was not there, or could not be called."""
    if found.revision is None:
        return ""
    called = {call.name for call in found.calls if call.skipped is None}
    missing = [name for name in (FALLBACK, TRITON) if name not in called]
    if found.dispatch is None or found.dispatch.unknown is not None:
        missing.append("the dispatch contract")
    return f"; not checked: {', '.join(missing)}" if missing else ""
