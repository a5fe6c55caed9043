"""Measure, over simulated runs, what the judge's forecast intervals and stall verdicts are worth.

    python scripts/calibrate_forecast.py --runs 1000
    python scripts/calibrate_forecast.py --runs 1000 --period-s 4.5 --only true-stalls

Prints, per clock and per share of the work done, how often the 90 % interval covers the truth and how far off the best
guess is; how often a run that is no stall is called one at any of 30 moments of its life, and how often that would
have been announced (it still stands two seconds later), with the 95 % interval of the rate; when a run beyond the
factor (10) is called; and what becomes of runs that stop for good, or whose single passes last minutes.

Measured (healthy time 7 s, pace wandering by up to 20 %, late samples up to 15 %):

* below the factor: 0 of 1,000 at 1.5 to 3 times healthy and 0 of 999 at 3 to 8 called stalled; of the 946 at 8 to 9.5
  those of seeds 10,028, 10,527 and 10,562, which end at 9.6 to 9.95 times;
* 12 to 25 times for the first 8 to 20 s and 5 to 9.5 in the end: 0 of 195; for the first 20 to 30 s: 92 of 196, for
  nothing but the end of the slow start tells it from a stall;
* beyond the factor, within 60 s: 189 of 200 at 11 to 15 times, all at 15 to 100; half of them after 25 s. With 4.5 s
  between two looks at a worker: 89 of 100 and all, half of them after 36 and 25 s;
* stopped for good: 100 of 100 stuck; single passes of 60 to 170 s: 100 of 100 crawling;
* that nobody samples, looked at every second: of 981 below the factor, the recovering ones among them, none called, nor
  of the same with the cache's size told as a half or a quarter of what it is; at 30 to 100 times half are called after
  37 s and 187 of 200 before 10 times the healthy time, at 15 to 30 times 57 of 200, at 11 to 15 none; 200 of 200 that
  stopped for good are stuck.
"""

import argparse
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.seen import seen_after
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
BASELINE = Baseline(kind="given", seconds=HEALTHY_S, source="simulated")
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


def random_model(seed: int, *, times: tuple[float, float], period_s: float | None = None) -> PrefillModel:
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
        period_s=period_s or rng.uniform(0.6, 3.0),
        late=rng.choice((0.0, 0.05, 0.15)),
        lookahead=rng.choice((0, 1, 2)),
    )


def recovering_model(
    seed: int, *, first_s: tuple[float, float] = (8, 30), period_s: float | None = None
) -> PrefillModel:
    """At first, for ``first_s``, it goes at 12 to 25 times the healthy time; it ends at 5 to 9.5 times."""
    rng = random.Random(seed)
    slow_s, slow, end = rng.uniform(*first_s), rng.uniform(12, 25), rng.uniform(5, 9.5)
    left = 1 - slow_s / (slow * HEALTHY_S)
    later = (end * HEALTHY_S - slow_s) / (left * HEALTHY_S)
    steady = random_model(seed, times=(later, later), period_s=period_s)
    return replace(steady, slow_start=(slow_s, max(1.0, slow / later)))


def stopping_model(seed: int, *, period_s: float | None = None) -> PrefillModel:
    """Slow, below the factor, until it stops for good."""
    steady = random_model(seed, times=(2.0, 8.0), period_s=period_s)
    return replace(steady, freeze_at=random.Random(seed).uniform(0.1, 0.95))


def long_pass_model(seed: int, *, period_s: float | None = None) -> PrefillModel:
    """A slow device: few calls of few passes, and each pass lasts 60 to 170 s."""
    rng = random.Random(seed)
    chunks, layers, passes = rng.choice((4, 6)), rng.choice((1, 2)), rng.choice((1, 2, 4))
    return PrefillModel(
        seconds=chunks * layers * passes * rng.uniform(60, 170),
        seed=seed,
        chunk_tokens=20_000 // chunks,
        layers=layers,
        heads=passes,
        keys_per_pass=1 << 20,
        growth=rng.uniform(0, 0.3),
        wander=0.05,
        period_s=period_s or rng.uniform(0.6, 3.0),
    )


def moments(run: SimulatedRun, count: int) -> Iterable[float]:
    """Moments of a run to judge at: denser at the start, where mistakes are made."""
    last = min(run.truth_s, 900.0)
    first = min(5.0, last)
    return (first * (last / first) ** (step / count) for step in range(count))


def verdicts(run: SimulatedRun, times_s: Iterable[float]) -> Iterator[tuple[float, Verdict]]:
    """The run judged at rising moments, as ``watch`` does it."""
    scenario, seen = scenario_for(run.model), None
    for at in times_s:
        observation = run.until(at)
        seen = seen_after(seen, observation, scenario)
        yield at, judge(observation, scenario, BASELINE, seen=seen)


def first_stall(run: SimulatedRun, times_s: Iterable[float]) -> tuple[float, Verdict] | None:
    return next(((at, verdict) for at, verdict in verdicts(run, times_s) if verdict.outcome == "stalled"), None)


def rate(hits: int, of: int) -> str:
    """A share with its 95 % interval (Wilson)."""
    share, z = hits / of, 1.96
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{hits} of {of} ({max(0.0, middle - half):.2%} to {middle + half:.2%})"


def calibrate(runs: int, period_s: float | None) -> None:
    covered: dict[tuple[str, float], list[bool]] = defaultdict(list)
    below: dict[tuple[str, float], list[bool]] = defaultdict(list)
    errors: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(runs):
        run = simulate(random_model(seed, times=(2.0, 100.0), period_s=period_s))
        for _, verdict in verdicts(run, moments(run, 12)):
            for forecast in verdict.forecasts:
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


def false_stalls(runs: int, period_s: float | None) -> None:
    for times in ((1.5, 3.0), (3.0, 8.0), (8.0, 9.5)):
        models = (random_model(10_000 + seed, times=times, period_s=period_s) for seed in range(runs))
        count_false(f"{times[0]:g} to {times[1]:g} times healthy", models)
    for first_s in ((8.0, 20.0), (20.0, 30.0)):
        models = (recovering_model(40_000 + seed, first_s=first_s, period_s=period_s) for seed in range(runs))
        count_false(f"12 to 25 times for the first {first_s[0]:g} to {first_s[1]:g} s, 5 to 9.5 in the end", models)


def count_false(what: str, models: Iterable[PrefillModel]) -> None:
    called = announced = judged = 0
    for model in models:
        run = simulate(model)
        if run.truth_s >= 10 * HEALTHY_S:
            continue
        judged += 1
        wrong = [at for at, verdict in verdicts(run, moments(run, 30)) if verdict.outcome == "stalled"]
        called += bool(wrong)
        announced += any(first_stall(run, [min(at + 2, run.truth_s - 0.1)]) for at in wrong)
    print(f"{what}: {rate(called, judged)} called stalled at some moment, announced {rate(announced, judged)}")


def true_stalls(runs: int, period_s: float | None) -> None:
    for times in ((11.0, 15.0), (15.0, 30.0), (30.0, 100.0)):
        when: list[float] = []
        for seed in range(runs):
            run = simulate(random_model(20_000 + seed, times=times, period_s=period_s))
            looks = (*range(5, 60), *range(60, int(min(run.truth_s, 400)), 5))
            when.append((first_stall(run, looks) or (math.inf,))[0])
        quick = [sum(at <= limit for at in when) for limit in (25, 30, 60)]
        found = [at for at in when if at < math.inf]
        print(
            f"{times[0]:g} to {times[1]:g} times healthy: called after {statistics.median(found):.0f} s (median), "
            f"{max(found):.0f} s (longest); within 25, 30, 60 s {', '.join(rate(count, runs) for count in quick)}; "
            f"{runs - len(found)} missed"
        )


def standstills(runs: int, period_s: float | None) -> None:
    """Runs that stop for good must end as stuck, and were never crawling."""
    ends: Counter[str] = Counter()
    for seed in range(runs):
        run = simulate(stopping_model(30_000 + seed, period_s=period_s), after_freeze_s=400.0)
        last = int(run.whole.now_s - run.model.sent_s)
        found = first_stall(run, range(5, last, 5))
        ends[str(found[1].mode if found else "missed")] += 1
    print(f"slow, then stopped for good: first called {dict(ends)}")


def long_passes(runs: int, period_s: float | None) -> None:
    """Passes of minutes are slow, not stuck."""
    ends: Counter[str] = Counter()
    for seed in range(runs):
        run = simulate(long_pass_model(50_000 + seed, period_s=period_s))
        found = first_stall(run, range(5, int(min(run.truth_s, 900)), 10))
        ends[str(found[1].mode if found else "missed")] += 1
    print(f"single passes of 60 to 170 s: first called {dict(ends)}")


def unwatched_run(run: SimulatedRun, *, unit: float = 1.0) -> SimulatedRun:
    """The same run without a single sample, by request; the KV cache's size told ``unit`` times what it is."""
    whole = run.whole
    capacity = whole.kv_capacity
    if capacity is not None:
        capacity = capacity.model_copy(update={"block_size_tokens": max(1, int(capacity.block_size_tokens * unit))})
    bare = {"samples": (), "sampling": SamplingStats(mode="none", wanted=False), "kv_capacity": capacity}
    return replace(run, whole=whole.model_copy(update=bare))


def unwatched(runs: int, period_s: float | None) -> None:
    """Runs that nobody samples: judged by KV use and the client alone."""
    for unit in (1.0, 0.5, 0.25):
        for times in ((1.5, 3.0), (3.0, 8.0), (8.0, 9.5)):
            models = (random_model(10_000 + seed, times=times, period_s=period_s) for seed in range(runs))
            count_unwatched(f"{times[0]:g} to {times[1]:g} times healthy", models, unit=unit)
        for first_s in ((8.0, 20.0), (20.0, 30.0)):
            models = (recovering_model(40_000 + seed, first_s=first_s, period_s=period_s) for seed in range(runs))
            count_unwatched(f"12 to 25 times for the first {first_s[0]:g} to {first_s[1]:g} s", models, unit=unit)
    for times in ((11.0, 15.0), (15.0, 30.0), (30.0, 100.0)):
        when = []
        for seed in range(runs):
            run = unwatched_run(simulate(random_model(20_000 + seed, times=times, period_s=period_s)))
            when.append((first_stall(run, range(5, int(min(run.truth_s, 400)))) or (math.inf,))[0])
        found = [at for at in when if at < math.inf]
        early = sum(at <= 10 * HEALTHY_S for at in found)
        print(
            f"unwatched, {times[0]:g} to {times[1]:g} times healthy: called after {statistics.median(found):.0f} s "
            f"(median), {max(found):.0f} s (longest); before 10 times the healthy time {rate(early, runs)}; "
            f"{runs - len(found)} missed"
        )
    ends: Counter[str] = Counter()
    for seed in range(runs):
        run = unwatched_run(simulate(stopping_model(30_000 + seed, period_s=period_s), after_freeze_s=600.0))
        stall = first_stall(run, range(5, int(run.whole.now_s - run.model.sent_s), 5))
        ends[str(stall[1].mode if stall else "missed")] += 1
    print(f"unwatched, slow, then stopped for good: first called {dict(ends)}")


def count_unwatched(what: str, models: Iterable[PrefillModel], *, unit: float) -> None:
    """How often a run below the factor is called, looked at every second of its life."""
    called = judged = 0
    for model in models:
        run = unwatched_run(simulate(model), unit=unit)
        if run.truth_s < 10 * HEALTHY_S:
            judged += 1
            called += first_stall(run, range(5, int(run.truth_s))) is not None
    size = f", cache said to be {unit:g} times its size" if unit != 1 else ""
    print(f"unwatched, {what}{size}: {rate(called, judged)} called stalled at some moment")


PARTS = {
    "intervals": calibrate,
    "false-stalls": false_stalls,
    "true-stalls": true_stalls,
    "standstills": standstills,
    "long-passes": long_passes,
    "unwatched": unwatched,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--period-s", type=float, help="seconds between two looks at one worker (random: 0.6 to 3)")
    parser.add_argument("--only", choices=PARTS, action="append")
    arguments = parser.parse_args()
    for part in arguments.only or PARTS:
        PARTS[part](arguments.runs, arguments.period_s)
