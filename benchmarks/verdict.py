"""How long from the prompt to a verdict that holds, against the healthy prefill of the same prompt?"""

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.lab_server import lab_environment, lab_scenario, lab_server
from benchmarks.paired import compare
from sparkdiag.errors import EnvironmentFault
from sparkdiag.reproducing.baseline import from_fast_kernel, time_fast_kernel

HEALTHY = "healthy prefill (DCP 1)"
VERDICT = "prompt to verdict (DCP 2)"


def measure(asked: Asked) -> Findings:
    """Two servers, one after the other: a server's DCP size is fixed when it starts."""
    count = asked.pairs_or(5, quick=1)
    healthy_scenario = lab_scenario(dcp=1, prompt_tokens=asked.prompt_tokens)
    stalling_scenario = lab_scenario(dcp=2, prompt_tokens=asked.prompt_tokens)
    environment = lab_environment(stalling_scenario)
    timing = time_fast_kernel(stalling_scenario, environment)
    if isinstance(timing, str):
        raise EnvironmentFault(timing, remedy="sparkdiag env build lab")
    baseline = from_fast_kernel(stalling_scenario, timing)
    with lab_server(healthy_scenario, environment, out=asked.out) as lab:
        lab.as_in_a_run()
        lab.first_token_s()  # not counted: the first prompt warms up
        healthy = [lab.first_token_s() for _ in range(count)]
    took, outcomes = [], []
    with lab_server(stalling_scenario, environment, out=asked.out) as lab:
        priority = lab.as_in_a_run()
        for _ in range(count):
            verdict, seconds = lab.verdict(baseline)
            took.append(seconds)
            outcomes.append(f"{verdict.outcome} ({verdict.mode})" if verdict.mode else verdict.outcome)
            say(f"{seconds:.1f} s  {outcomes[-1]}")
    comparison = compare(list(zip(healthy, took, strict=True)), measured=VERDICT, reference=HEALTHY)
    settings: dict[str, str | int | float] = {
        "prompt_tokens": stalling_scenario.prompt.tokens,
        "runs": count,
        "healthy_time_given_s": round(baseline.seconds, 1),
    }
    verdicts = ", ".join(f"{outcomes.count(name)} x {name}" for name in sorted(set(outcomes)))
    return Findings(
        (comparison,),
        settings,
        (f"verdicts: {verdicts}", "the pairs' halves were measured on two servers, one after the other", priority),
    )


BENCHMARK = Benchmark(question="time from prompt to verdict, lab at DCP 2", about_s=330, measure=measure)
