"""A rank that writes its ledger as the probe does: numbers from 1, a call's line once it has returned."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import JsonValue

from sparkdiag.evidence.client import ClientOutcome, PromptSent
from sparkdiag.evidence.ledger import (
    DispatchCall,
    DispatchCount,
    DispatchLine,
    DispatchProcess,
    DispatchTotals,
    DispatchWrapped,
    LedgerSummary,
    RankLedger,
)
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.run import DcpProof, PredictedRoute, RunRecord
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.judging.ledger import summarised
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

LAB = load_scenario("lab")
ENTRY, FUSED, LOGITS = "sparse_attn_indexer", "fp8_fp4_mqa_topk_indices", "fp8_fp4_mqa_logits"
SM12X, TORCH, TRITON, TOPK = (
    "_fp8_mqa_logits_sm12x",
    "_fp8_mqa_logits_torch",
    "fp8_mqa_logits_triton",
    "fp8_mqa_topk_triton",
)
PAGED = "fp8_fp4_paged_mqa_logits"
WATCHED = (ENTRY, FUSED, LOGITS, PAGED, SM12X, TORCH, TRITON, TOPK)
SENT_S, LATE_S = 100.0, 10_000.0
Facts = dict[str, JsonValue]


@dataclass
class Rank:
    """One process; ``entry`` runs one layer's dispatch, ``body`` makes the calls below it."""

    pid: int = 7
    tp: int = 0
    dcp: int = 2
    facts: Facts | None = None
    lines: list[DispatchLine] = field(default_factory=list)
    now_s: float = SENT_S + 1
    step_s: float = 0.01
    number: int = 0
    stack: list[int] = field(default_factory=list)
    seen: Facts = field(default_factory=dict)
    platform: dict[str, JsonValue] = field(default_factory=dict)

    def begin(self, *, wrapped: tuple[str, ...] = WATCHED) -> None:
        self.lines.append(
            DispatchProcess(
                pid=self.pid,
                dcp_rank=self.tp % self.dcp,
                dcp_world_size=self.dcp,
                tp_rank=self.tp,
                tp_world_size=2,
                platform=self.platform,
            )
        )
        self.lines += [DispatchWrapped(pid=self.pid, function=name, module="m") for name in wrapped]

    def call(
        self,
        function: str,
        body: Callable[[], object] = lambda: None,
        *,
        returned: JsonValue = None,
        ends: bool = True,
        **arguments: JsonValue,
    ) -> None:
        """A call and, inside, what ``body`` calls. ``ends=False``: still under way, and told of."""
        self.number += 1
        number, began_s = self.number, self.now_s
        parent = self.stack[-1] if self.stack else None
        self.stack.append(number)
        self.now_s += self.step_s
        body()
        self.now_s += self.step_s
        self.stack.pop()
        self.lines.append(
            DispatchCall(
                pid=self.pid,
                number=number,
                parent=parent,
                function=function,
                module="m",
                began_s=began_s,
                took_s=self.now_s - began_s if ends else None,
                arguments=arguments,
                returned=returned if ends else None,
                seen={} if function == ENTRY else self.seen,
            )
        )

    def entry(self, layer: int, body: Callable[[], object], *, ends: bool = True, named: bool = True) -> None:
        name = f"model.layers.{layer}.self_attn.indexer.k_cache"
        self.seen = {"dcp_world_size": self.dcp, **({"k_cache_prefix": name} if named else {}), **(self.facts or {})}
        self.call(ENTRY, body, ends=ends, **({"k_cache_prefix": name} if named else {}))

    def fused(self, *, accepts: bool, rows: int = 256, keys: int = 512) -> None:
        def kernel() -> None:
            self.call(TOPK, q=f"float8_e4m3fn[{rows}, 4, 48]", kv=[f"float8_e4m3fn[{keys}, 48]", f"float32[{keys}]"])

        self.call(FUSED, kernel if accepts else lambda: None, returned=accepts, **tensors(rows, keys))

    def logits(self, *, kernel: str = TORCH, rows: int = 256, keys: int = 512, ends: bool = True) -> None:
        sizes = tensors(rows, keys)
        leaf = {**sizes, "q": f"float8_e4m3fn[{rows}, 4, 48]"}
        given = {**leaf, "clean_logits": False} if kernel == TORCH else leaf

        def inner() -> None:
            self.call(kernel, ends=ends, **given)

        def dispatch() -> None:
            self.call(SM12X, inner, ends=ends, **sizes, clean_logits=False)

        self.call(LOGITS, dispatch, ends=ends, **sizes, clean_logits=False)

    def decode(self, *, rows: int = 1, paged: bool = True) -> None:
        """All layers of one decode step."""
        for layer in range(3):
            sizes = tensors(rows, 512)

            def inner(sizes: Facts = sizes) -> None:
                self.call(SM12X, lambda: self.call(TRITON, **sizes), **sizes, clean_logits=True)

            body = (lambda inner=inner, sizes=sizes: self.call(PAGED, inner, **sizes)) if paged else inner
            self.entry(layer, body)

    def step(self, *, layers: int = 3, body: Callable[[], object] | None = None, named: bool = True) -> None:
        """One scheduler step of prefill."""
        for layer in range(layers):
            self.entry(layer, body or self.logits, named=named)

    def totals(self, *, dropped: int = 0, also: tuple[DispatchCount, ...] = ()) -> None:
        self.lines.append(DispatchTotals(pid=self.pid, counts=also, dropped=dropped))


def tensors(rows: int, keys: int) -> Any:
    """Arguments of the dispatch: q and its scale, keys and theirs."""
    return {"q": [f"float8_e4m3fn[{rows}, 4, 48]", None], "kv": [f"float8_e4m3fn[{keys}, 48]", f"float32[{keys}]"]}


def stored(
    *ranks: Rank,
    tokens: int = 16_384,
    first_token_s: float | None = None,
    now_s: float = LATE_S,
    samples: tuple[StackSample, ...] = (),
    proved: int | None = 2,
    predicted: PredictedRoute | None = None,
    lines: tuple[DispatchLine, ...] | None = None,
    sent: bool = True,
) -> StoredRun:
    prompt = PromptSent(
        t_s=SENT_S, kind="needle", tokens=tokens, depth=0.5, seed=0, nonce="", expected="", max_output_tokens=8
    )
    workers = tuple(
        ProcessInfo(
            pid=rank.pid,
            started_at_s=0,
            role="worker",
            title="w",
            ranks=Ranks(tp=rank.tp, dcp=rank.tp % rank.dcp if rank.dcp > 1 else None),
        )
        for rank in ranks
    )
    return StoredRun(
        run_dir="runs/one",
        record=RunRecord(
            sparkdiag_version="0",
            started_at="",
            status="finished",
            scenario=LAB.model_dump(mode="json", by_alias=True),
            command=(),
            server_env={"SPARKDIAG_PROBE_DIR": "probe"},
            dcp=DcpProof(asked=proved or 1, size=proved),
            predicted=predicted,
        ),
        observation=Observation(
            now_s=now_s,
            processes=workers,
            samples=samples,
            client=ClientOutcome(sent=prompt if sent else None, first_token_s=first_token_s),
            dispatch=tuple(line for rank in ranks for line in rank.lines) if lines is None else lines,
        ),
    )


def both(*made: Callable[[], None]) -> Callable[[], None]:
    """One after the other."""

    def run() -> None:
        for one in made:
            one()

    return run


def summary(*ranks: Rank, scenario: Scenario = LAB, **changes: Any) -> LedgerSummary:
    return summarised(stored(*ranks, **changes), scenario)


def only(found: LedgerSummary) -> RankLedger:
    (rank,) = found.ranks
    return rank


def incident(rank: Rank, chunks: int) -> Rank:
    """DCP 2: every layer of every chunk in the fallback."""
    rank.begin()
    for chunk in range(chunks):
        rank.step(body=partial(rank.logits, keys=128 * (chunk + 1)))
    return rank


def healthy(rank: Rank, chunks: int) -> Rank:
    rank.begin()
    for _ in range(chunks):
        rank.step(body=lambda: rank.fused(accepts=True))
    return rank
