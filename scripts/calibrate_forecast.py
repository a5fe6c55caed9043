"""Measure, over simulated runs, what the judge's forecast intervals and stall verdicts are worth.

    python scripts/calibrate_forecast.py --runs 1000

Prints, per clock and per share of the work done, how often the 90 % interval covers the truth and how far off the best
guess is; then how often a run below the factor (10) is called stalled at any moment of its life, and when one beyond
it is.

Measured with --runs 200 (healthy time 7 s, pace wandering by up to 20 %, late samples up to 15 %):

* loop variables: covers 90 % of 2,157 forecasts (88 to 95 % by share done); median error 24 % below 2 % of the work,
  8 % at 2 to 10 %, 6 % at 10 to 20 %, 2 % beyond 40 %;
* KV cache use: covers 93 % of 2,156; median error 9 % at 10 to 20 % of the work, 6 % beyond 40 %;
* called stalled, judged at 30 moments of each life: 0 of 200 at 1.5 to 3 times healthy, 0 of 200 at 3 to 8 times,
  1 of 200 at 8 to 9.5 times;
* runs at 11 to 100 times healthy: all called, after 18 to 21 s (median), 50 s (longest).
"""

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable

from sparkdiag.evidence.verdict import Baseline
from sparkdiag.judging.judge import judge
from sparkdiag.judging.simulation import PrefillModel, SimulatedRun, simulate
from sparkdiag.scenario.model import (
    LayerClock,
    LoopVariable,
    Patience,
    PromptSettings,
    Scenario,
    ServerSettings,
    Signature,
    Work,
)

HEALTHY_S = 7.0
BANDS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.01)

SIGNATURE = Signature(
    function="_fp8_mqa_logits_torch",
    kind="torch-fallback",
    loop=(
        LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
        LoopVariable(index="k_start", step="k_chunk_size", stop="seq_len_kv"),
    ),
    call_identity=("seq_len", "seq_len_kv", "num_heads"),
    rows="seq_len",
    keys="seq_len_kv",
)


def scenario_for(model: PrefillModel) -> Scenario:
    return Scenario(
        name="simulated",
        title="Simulated prefill",
        server=ServerSettings(dcp=model.dcp, tp=model.dcp, chunk_tokens=model.chunk_tokens),
        prompt=PromptSettings(tokens=model.tokens),
        signatures=(SIGNATURE,),
        layer_clock=LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix"),
        work=Work(layers=model.layers),
        patience=Patience(stuck_s=60, settle_s=5, min_samples=5),
    )


def random_model(seed: int, *, times: tuple[float, float]) -> PrefillModel:
    """A run somewhere in the space of labs and incidents, ``times`` the healthy time (log-uniform)."""
    rng = random.Random(seed)
    factor = times[0] * (times[1] / times[0]) ** rng.random()
    return PrefillModel(
        seconds=HEALTHY_S * factor,
        seed=seed,
        chunk_tokens=rng.choice((256, 512, 768, 1024)),
        layers=rng.choice((2, 3, 4, 6)),
        heads=rng.choice((4, 8, 64)),
        growth=rng.uniform(0.3, 1.0),
        inside=rng.uniform(0.8, 0.97),
        wander=rng.uniform(0.02, 0.2),
        period_s=rng.uniform(0.6, 3.0),
        late=rng.choice((0.0, 0.05, 0.15)),
        lookahead=rng.choice((0, 1, 2)),
    )


def moments(run: SimulatedRun, count: int) -> Iterable[float]:
    """Moments of a run to judge at: denser at the start, where mistakes are made."""
    last = min(run.truth_s, 900.0)
    first = min(5.0, last)
    return (first * (last / first) ** (step / count) for step in range(count))


def calibrate(runs: int) -> None:
    baseline = Baseline(kind="given", seconds=HEALTHY_S, source="simulated")
    covered: dict[tuple[str, float], list[bool]] = defaultdict(list)
    below: dict[tuple[str, float], list[bool]] = defaultdict(list)
    errors: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(runs):
        model = random_model(seed, times=(2.0, 100.0))
        run = simulate(model)
        for at in moments(run, 12):
            for forecast in judge(run.until(at), scenario_for(model), baseline).forecasts:
                where = forecast.source, next(band for band in BANDS if forecast.fraction_done < band)
                covered[where].append(forecast.low_s <= run.truth_s <= forecast.high_s)
                below[where].append(forecast.low_s > run.truth_s)
                errors[where].append(abs(forecast.best_s / run.truth_s - 1))
    for key in sorted(covered):
        print(
            f"{key[0]:15} < {key[1]:4.0%} done: {len(covered[key]):5} forecasts, covered "
            f"{statistics.mean(covered[key]):.1%}, lower bound too high {statistics.mean(below[key]):.1%}, "
            f"median error {statistics.median(errors[key]):.1%}"
        )
    for source in sorted({key[0] for key in covered}):
        all_ = [hit for key, hits in covered.items() if key[0] == source for hit in hits]
        print(f"{source:15} over all: covered {statistics.mean(all_):.1%} of {len(all_)}")


def false_stalls(runs: int) -> None:
    baseline = Baseline(kind="given", seconds=HEALTHY_S, source="simulated")
    for times in ((1.5, 3.0), (3.0, 8.0), (8.0, 9.5)):
        called = 0
        for seed in range(runs):
            model = random_model(10_000 + seed, times=times)
            run = simulate(model)
            if run.truth_s >= 10 * HEALTHY_S:
                continue
            called += any(
                judge(run.until(at), scenario_for(model), baseline).outcome == "stalled" for at in moments(run, 30)
            )
        print(f"{times[0]:g} to {times[1]:g} times healthy: {called} of {runs} called stalled at some moment")


def true_stalls(runs: int) -> None:
    baseline = Baseline(kind="given", seconds=HEALTHY_S, source="simulated")
    for times in ((11.0, 15.0), (15.0, 30.0), (30.0, 100.0)):
        when, missed = [], 0
        for seed in range(runs):
            model = random_model(20_000 + seed, times=times)
            run = simulate(model)
            found = next(
                (
                    at
                    for at in (*range(5, 60), *range(60, int(min(run.truth_s, 400)), 5))
                    if judge(run.until(at), scenario_for(model), baseline).outcome == "stalled"
                ),
                None,
            )
            if found is None:
                missed += 1
            else:
                when.append(found)
        quick = sum(at <= 60 for at in when) / runs
        print(
            f"{times[0]:g} to {times[1]:g} times healthy: called after {statistics.median(when):.0f} s (median), "
            f"{max(when):.0f} s (longest), within 60 s in {quick:.1%}; {missed} missed"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    arguments = parser.parse_args()
    calibrate(arguments.runs)
    false_stalls(arguments.runs)
    true_stalls(max(20, arguments.runs // 5))
