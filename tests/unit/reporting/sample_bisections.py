"""Bisections to show: found, candidates, the same at both ends; and one with a text wherever outside text can stand."""

from sparkdiag.evidence.bisection import (
    Bisection,
    Commit,
    Has,
    Mark,
    Purpose,
    Signature,
    StackShare,
    Trial,
    TrialResult,
)
from sparkdiag.evidence.verdict import EvidenceItem

SUSPECT = "_fp8_mqa_logits_torch"
SIGNATURE = Signature(kind="torch-fallback", function=SUSPECT, role="worker")
SHAS = tuple(f"{digit:x}" * 40 for digit in range(1, 7))
COMMITS = tuple(
    Commit(
        sha=sha,
        parents=SHAS[place - 1 : place] if place else (),
        subject=f"change number {place} (#{4000 + place})",
        committed_at=f"2026-05-{place + 10}T08:00:00+00:00",
    )
    for place, sha in enumerate(SHAS)
)


def trial(
    place: int, has: Has, *, purpose: Purpose = "search", mark: Mark | None = None, reused_from: str | None = None
) -> Trial:
    stalled = TrialResult(
        sha=SHAS[place],
        outcome="stalled",
        mode="crawling",
        signature=SIGNATURE,
        decided_s=21.5,
        minutes=2.1,
        evidence_for=(
            EvidenceItem(source="stacks", text=f"{SUSPECT} on the stack in 95% of 40 samples"),
            EvidenceItem(
                source="loop-variables", text="forecast 240 s to the first token: 29.3 times the healthy 8.2 s"
            ),
        ),
        run_dir=f"trials/20260601T000000Z-lab-{SHAS[place][:10]}-dcp2",
        reused_from=reused_from,
    )
    results = {
        "yes": stalled,
        "no": stalled.model_copy(
            update={
                "outcome": "completed",
                "mode": None,
                "signature": None,
                "needle": "retrieved",
                "first_token_s": 8.2,
            }
        ),
        "cannot-tell": stalled.model_copy(
            update={
                "outcome": "not-started",
                "mode": None,
                "signature": None,
                "reason": "ImportError: no topk",
                "evidence_for": (),
            }
        ),
    }
    because = {
        "yes": f"stalled (crawling): {SIGNATURE}",
        "no": "completed, needle retrieved",
        "cannot-tell": "ImportError: no topk",
    }
    return Trial(
        purpose=purpose,
        result=results[has],
        subject=COMMITS[place].subject,
        has=has,
        because=because[has],
        mark=mark,
    )


FOUND = Bisection(
    outcome="found",
    direction="regression",
    reference=SIGNATURE,
    old_end=SHAS[0],
    new_end=SHAS[5],
    commits=(COMMITS[3],),
    trials=(
        trial(0, "no", purpose="end", mark="old"),
        trial(5, "yes", purpose="end", mark="new"),
        trial(5, "yes", purpose="control"),
        trial(0, "no", purpose="control"),
        trial(2, "no", mark="old"),
        trial(3, "yes", mark="new"),
        trial(4, "yes", mark="new", reused_from=SHAS[3]),
        trial(1, "cannot-tell", mark="skip"),
    ),
    scenario="lab",
    dcp=2,
    searched=5,
    suspect_paths=("vllm/a.py",),
    suspect_diff="diff --git a/vllm/a.py b/vllm/a.py\n-    if not clean:\n+    if clean:\n",
    stack_difference=(StackShare(function=SUSPECT, share_with=0.95, share_without=0.0),),
    notes=("one prediction did not come true",),
    command=("sparkdiag", "bisect", "--dcp", "2"),
)
CANDIDATES = FOUND.model_copy(
    update={
        "outcome": "candidates",
        "reason": "2 commits between them could not be tried; next: --env with a base that builds them",
        "commits": COMMITS[2:4],
    }
)
SAME = Bisection(
    outcome="inconclusive",
    reason="both ends have it (stall); next: a wider range, or another --dcp",
    old_end=SHAS[0],
    new_end=SHAS[5],
    trials=(trial(0, "yes", purpose="end"), trial(5, "yes", purpose="end")),
    scenario="lab",
    dcp=1,
    searched=5,
    command=("sparkdiag", "bisect"),
)
SMALLEST = FOUND.model_copy(
    update={
        "axis": "dcp",
        "dcp": None,
        "commits": (Commit(sha="2", parents=("1",), subject="DCP size 2"),),
        "trials": (),
    }
)
EVERY = {
    "found": FOUND,
    "candidates": CANDIDATES,
    "same": SAME,
    "smallest": SMALLEST,
    "unfinished": Bisection(outcome="unfinished"),
}


def poisoned(text: str, *, times: int = 1) -> Bisection:
    """``CANDIDATES`` with ``text`` wherever something from outside can stand."""
    commit = COMMITS[2].model_copy(update={"subject": text, "committed_at": text})
    item = EvidenceItem(source="loop-variables", text=text)
    signature = Signature(kind=text, function=text, role=text)
    result = CANDIDATES.trials[1].result.model_copy(
        update={"reason": text, "signature": signature, "evidence_for": (item,), "run_dir": text}
    )
    yes = CANDIDATES.trials[1].model_copy(update={"result": result, "subject": text, "because": text})
    skip = CANDIDATES.trials[-1].model_copy(
        update={"subject": text, "because": text, "result": result.model_copy(update={"outcome": "crashed"})}
    )
    reused = yes.model_copy(update={"result": result.model_copy(update={"reused_from": text})})
    return CANDIDATES.model_copy(
        update={
            "reason": text,
            "reference": signature,
            "commits": (commit, commit) * times,
            "trials": (yes, skip, reused) * times,
            "scenario": text,
            "repo": text,
            "suspect_paths": (text,) * times,
            "suspect_diff": f"{text}\n{text}" * times,
            "stack_difference": (StackShare(function=text, share_with=1, share_without=0),) * times,
            "notes": (text,) * times,
            "command": ("sparkdiag", "bisect", text),
        }
    )
