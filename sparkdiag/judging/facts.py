"""Evidence as plain sentences: numbers, units, and where each was seen."""

from sparkdiag.evidence.verdict import Baseline, EvidenceItem, Forecast
from sparkdiag.judging.meters import Gpus
from sparkdiag.judging.pace import Limit, Pace
from sparkdiag.judging.process_set import rank_findings, standing_of
from sparkdiag.judging.scene import Scene

_STATES = {
    "idle": "waiting for the next call",
    "reply-wait": "waiting for a worker's reply",
    "collective-wait": "waiting for other ranks in a collective",
    "gpu-wait": "waiting for the GPU",
    "jit-compile": "compiling a kernel",
    "forward": "in the model's forward",
    "unknown": "elsewhere",
    "suspect": "in the suspect function",
}


def stack_facts(scene: Scene) -> list[EvidenceItem]:
    """One sentence a worker."""
    facts = []
    for worker, seen in zip(scene.workers, scene.seen, strict=True):
        tally = seen.prefill
        if not tally.total:
            continue
        if tally.last_suspect is not None:
            text = (
                f"{worker.name}: {tally.last_suspect} on the stack in {tally.suspect_share:.0%} of {tally.total} "
                "samples since the prompt was sent"
            )
        else:
            standing = standing_of(worker, tally)
            text = (
                f"{worker.name}: {standing.function or 'no frame'} in {standing.share:.0%} of {tally.total} samples "
                f"({_STATES[standing.state]})"
            )
        facts.append(EvidenceItem(source="stacks", text=text))
    return facts


def odd_rank_facts(scene: Scene) -> list[EvidenceItem]:
    """Says which rank differs from its peers."""
    findings = rank_findings(scene.workers, [seen.prefill for seen in scene.seen], scene.positions)
    odd = [finding.name for finding in findings if finding.differs]
    if not odd:
        return []
    peers = ", ".join(finding.name for finding in findings if not finding.differs)
    return [EvidenceItem(source="process-tree", text=f"{', '.join(odd)} differs from its peers ({peers})")]


def loop_facts(scene: Scene, pace: Pace) -> list[EvidenceItem]:
    """Whether and where the loop variables advance."""
    if not scene.positions:
        return []
    first, last = scene.positions[0], scene.positions[-1]
    verb = "advanced" if pace.loop_advances else "did not advance"
    span = last.at_s - first.at_s
    text = (
        f"loop variables {verb} over {scene.positions_seen} samples in {span:.1f} s ({scene.calls_seen} calls seen): "
        f"from ({first.words}) to ({last.words})"
    )
    return [EvidenceItem(source="loop-variables", text=text)]


def forecast_fact(forecast: Forecast, limit: Limit | None) -> EvidenceItem:
    """A forecast beside the healthy time."""
    text = (
        f"forecast {forecast.best_s:.1f} s to the first token ({forecast.low_s:.1f} to {forecast.high_s:.1f} s, "
        f"{forecast.fraction_done:.0%} of the work done)"
    )
    if limit is not None:
        text += f": {forecast.best_s / limit.healthy_s:.1f} times the healthy {limit.healthy_s:.1f} s"
    return EvidenceItem(source=forecast.source, text=text)


def foresight_facts(pace: Pace, limit: Limit, *, elapsed_s: float) -> list[EvidenceItem]:
    """What would have to happen for a foreseen stall not to come true."""
    if not pace.forecasts or elapsed_s >= limit.seconds:
        return []
    first = pace.forecasts[0]
    faster = (first.best_s - elapsed_s) / (limit.seconds - elapsed_s)
    text = (
        f"foreseen from the pace of the first {elapsed_s:.0f} s: if the rest went more than {faster:.1f} times faster "
        "than that, it would be slow but no stall"
    )
    return [EvidenceItem(source=first.source, text=text)]


def kv_facts(pace: Pace) -> list[EvidenceItem]:
    """How KV use rose."""
    kv = pace.kv_pace
    if kv is None:
        return []
    if not kv.rises:
        return [EvidenceItem(source="kv-cache-usage", text=f"KV cache use has not risen in {kv.flat_s:.1f} s")]
    tokens = f" (blocks for {kv.rises[-1][1]:,.0f} tokens)" if kv.tokens_known else ""
    text = (
        f"KV cache use was seen to rise {len(kv.rises)} times{tokens}; its last level has stood for {kv.flat_s:.1f} s"
    )
    return [EvidenceItem(source="kv-cache-usage", text=text)]


def client_fact(scene: Scene) -> EvidenceItem:
    """What the client has seen."""
    if scene.first_token_s is None:
        text = f"no token {scene.moment.elapsed_s:.1f} s after the {scene.sent.tokens:,}-token prompt was sent"
    else:
        text = f"first token {scene.first_token_s - scene.moment.sent_s:.1f} s after sending"
    return EvidenceItem(source="client", text=text)


def baseline_fact(baseline: Baseline, limit: Limit) -> EvidenceItem:
    """What healthy means here."""
    text = f"healthy is {limit.healthy_s:.1f} s ({baseline.kind}: {baseline.source}); "
    return EvidenceItem(
        source="baseline", text=text + f"a stall begins at {limit.factor:g} times, {limit.seconds:.1f} s"
    )


def doubts(scene: Scene, baseline: Baseline | None) -> list[EvidenceItem]:
    """What speaks against any finding made from these observations."""
    facts = []
    if scene.meters.others:
        text = f"the server held up to {scene.meters.others} other requests meanwhile"
        facts.append(EvidenceItem(source="metrics", text=text))
    if scene.meters.health == 200:
        facts.append(EvidenceItem(source="metrics", text="/health answers 200 (it does through real wedges too)"))
    pairs = zip(scene.workers, scene.seen, strict=True)
    unseen = [worker.name for worker, seen in pairs if not seen.tally.total and not scene.unwatched]
    if unseen:
        facts.append(EvidenceItem(source="sampling", text=f"no usable sample of {', '.join(unseen)}"))
    if scene.unusable:
        facts.append(
            EvidenceItem(source="sampling", text=f"{scene.unusable} samples failed or came late and do not count")
        )
    if baseline is not None and baseline.scaled_from_tokens:
        ratio = scene.sent.tokens / baseline.scaled_from_tokens
        facts.append(
            EvidenceItem(
                source="baseline",
                text=f"the healthy time was measured at {baseline.scaled_from_tokens:,} tokens and scaled by length "
                f"({ratio:.2f} times)" + ("; that is a far stretch" if not 0.25 <= ratio <= 4 else ""),
            )
        )
    if scene.crowd.words:
        facts.append(EvidenceItem(source="cpu", text=scene.crowd.words))
    return facts + _gpu_facts(scene.gpus)


def _gpu_facts(gpus: Gpus) -> list[EvidenceItem]:
    use, power = gpus.use_percent, gpus.power_w
    if use is None:
        return []
    watts = f", {power.least:.0f} to {power.most:.0f} W" if power is not None else ""
    text = f"GPU utilisation {use.least:.0f} to {use.most:.0f} %{watts}: the same whether fast or crawling, so not used"
    return [EvidenceItem(source="gpu", text=text)]
