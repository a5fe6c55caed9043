"""Stored runs as the folder of a trial would tell them."""

from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.run import DcpProof, RevisionProof, RunRecord, Timings
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import EvidenceItem, Verdict

SHA = "a" * 40
WORKER, ENGINE, API = 201, 202, 203
STALLED = Verdict(
    outcome="stalled",
    mode="crawling",
    kind="torch-fallback",
    function="_fp8_mqa_logits_torch",
    role="worker",
    evidence_for=(EvidenceItem(source="stacks", text="in the fallback"),),
    evidence_against=(EvidenceItem(source="metrics", text="/health answers 200"),),
)
COMPLETED = Verdict(outcome="completed", needle="retrieved")


def record(verdict: Verdict | None = STALLED, **changes: object) -> RunRecord:
    blank = RunRecord(
        sparkdiag_version="0",
        started_at="now",
        status="finished",
        scenario={},
        command=(),
        server_argv=("python",),
        revision=RevisionProof(asked=SHA, sha=SHA, proved=True, because="all match"),
        dcp=DcpProof(asked=2, size=2, witnesses=("probe: 2",)),
        timings_s=Timings(
            environment_s=1.0, ready_s=50.0, prompt_to_first_token_s=None, prompt_to_verdict_s=28.0, total_s=90.0
        ),
        verdict=verdict,
    )
    return blank.model_copy(update=changes)


def failed(error: str, *, ready_s: float | None = None, **changes: object) -> RunRecord:
    """A run that raised."""
    base = record(None, status="failed", error=error, dcp=None, revision=RevisionProof(), **changes)
    return base.model_copy(update={"timings_s": Timings(environment_s=1.0, ready_s=ready_s)})


def sample(pid: int, *functions: str, at_s: float = 110.0, **changes: object) -> StackSample:
    """Innermost first."""
    frames = tuple(Frame(function=function, filename="x.py", line=1) for function in functions)
    thread = ThreadStack(thread_name="MainThread", frames=frames)
    return StackSample(pid=pid, started_s=at_s, ended_s=at_s + 0.05, threads=(thread,)).model_copy(update=changes)


def observation(*samples: StackSample, first_token_s: float | None = None, sent: bool = True) -> Observation:
    processes = (
        ProcessInfo(pid=WORKER, parent_pid=1, started_at_s=1.0, title="", role="worker", ranks=Ranks(tp=0, dcp=0)),
        ProcessInfo(pid=ENGINE, parent_pid=1, started_at_s=1.0, title="", role="engine_core"),
        ProcessInfo(pid=API, parent_pid=1, started_at_s=1.0, title="", role="api_server"),
    )
    prompt = PromptSent(
        t_s=100.0, kind="needle", tokens=16384, depth=0.3, seed=0, nonce="n", expected="x", max_output_tokens=9
    )
    end = ResponseEnd(t_s=150.0, how="finished") if first_token_s is not None else None
    client = ClientOutcome(sent=prompt if sent else None, first_token_s=first_token_s, end=end)
    return Observation(now_s=160.0, processes=processes, samples=samples, client=client)


def stored(run: RunRecord | None = None, seen: Observation | None = None) -> StoredRun:
    return StoredRun(run_dir="/runs/one", record=run or record(), observation=seen or observation())
