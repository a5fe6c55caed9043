"""What speaks for and against the verdict, and how DCP size and revision were proved: lists for the Markdown report."""

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.reporting.safe_text import code, prose
from sparkdiag.reporting.triage_markdown import diagnosis_evidence

_ITEM_CHARS = 300
_BECAUSE_CHARS = 1000


def evidence_for_and_against(stored: StoredRun, most: int) -> str:
    """Of the diagnosis of a server that was only watched, of the verdict where a prompt of ours was sent."""
    verdict, diagnosis = stored.record.verdict, stored.record.diagnosis
    blocks = [*diagnosis_evidence(diagnosis, most)] if diagnosis is not None and diagnosis.looks else []
    if verdict is not None and (diagnosis is None or stored.observation.client.sent is not None):
        of_prompt = " the verdict on our own prompt" if diagnosis is not None else ""
        blocks.append(_evidence(f"For{of_prompt}", verdict.evidence_for, most))
        blocks.append(_evidence(f"Against{of_prompt}", verdict.evidence_against, most))
    return "\n\n".join(blocks)


def _evidence(word: str, items: tuple[EvidenceItem, ...], most: int) -> str:
    if not items:
        return f"**{word}**: nothing."
    lines = [f"- *{prose(item.source, at_most=40)}*: {prose(item.text, at_most=_ITEM_CHARS)}" for item in items[:most]]
    if len(items) > most:
        lines.append(f"- … and {len(items) - most} more in the run folder")
    return f"**{word}**\n\n" + "\n".join(lines)


def how_proved(stored: StoredRun, most: int) -> str:
    """Every witness of the DCP size, and what of the revision was held against what."""
    dcp, revision = stored.record.dcp, stored.record.revision
    if dcp is None:
        return ""
    lines = [f"- *DCP size*: {prose(witness, at_most=_ITEM_CHARS)}" for witness in dcp.witnesses[:most]]
    if len(dcp.witnesses) > most:
        lines.append(f"- *DCP size*: … and {len(dcp.witnesses) - most} more witnesses")
    if revision.because:
        lines.append(f"- *revision*: {prose(revision.because, at_most=_BECAUSE_CHARS)}")
    lines += [f"- *file*: {code(one.module)} SHA-256 {code(one.sha256, at_most=64)}" for one in revision.files[:most]]
    return "\n".join(lines)
