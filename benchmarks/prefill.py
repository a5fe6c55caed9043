"""What does looking cost a healthy prefill: sparkdiag's default sampling, and py-spy's own blocking default?"""

from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.lab_server import Lab, lab_environment, lab_scenario, lab_server
from benchmarks.paired import compare, rounds
from benchmarks.recorders import RATE_HZ, recording
from sparkdiag.evidence.verdict import Baseline

GOAL = 1.01
NOBODY = "nobody looks"
DEFAULT = "sparkdiag's default sampling"
BLOCKING = f"py-spy record --rate {RATE_HZ}, blocking"
RECORD_EVERY = 3
"""The effect of blocking is large: every third round shows it."""
WARM_UPS = 2


class Prefills:
    """Times to the first token, by who looks on."""

    def __init__(self, lab: Lab, *, asked: Asked) -> None:
        self._lab = lab
        self._asked = asked
        self._workers = lab.workers()
        self._baseline = Baseline(
            kind="given", seconds=median(lab.first_token_s() for _ in range(WARM_UPS)), source="the warm-up"
        )

    def take(self, name: str) -> float:
        """Seconds from a new prompt to its first token."""
        seconds = self._take(name)
        say(f"{seconds:.2f} s  {name}")
        return seconds

    def _take(self, name: str) -> float:
        if name == DEFAULT:
            return self._lab.first_token_watched_s(self._baseline)
        if name == BLOCKING:
            with recording(self._workers, folder=self._asked.out):
                return self._lab.first_token_s()
        return self._lab.first_token_s()


def measure(asked: Asked) -> Findings:
    count = asked.pairs_or(12, quick=2)
    scenario = lab_scenario(dcp=1, prompt_tokens=asked.prompt_tokens)
    rows: list[dict[str, float]] = []
    with lab_server(scenario, lab_environment(scenario), out=asked.out) as lab:
        priority = lab.as_in_a_run()
        prefills = Prefills(lab, asked=asked)
        for number, order in enumerate(rounds((NOBODY, DEFAULT, BLOCKING), count=count)):
            names = [name for name in order if name != BLOCKING or number % RECORD_EVERY == 0]
            rows.append({name: prefills.take(name) for name in names})
    both = [(row[NOBODY], row[DEFAULT]) for row in rows]
    blocked = [row for row in rows if BLOCKING in row]
    comparisons = (
        compare(both, measured=DEFAULT, reference=NOBODY, goal=GOAL),
        compare([(row[NOBODY], row[BLOCKING]) for row in blocked], measured=BLOCKING, reference=NOBODY),
        compare([(row[BLOCKING], row[DEFAULT]) for row in blocked], measured=DEFAULT, reference=BLOCKING),
    )
    settings: dict[str, str | int | float] = {
        "prompt_tokens": scenario.prompt.tokens,
        "pairs": count,
        "cpu_share": scenario.sampling.cpu_share,
    }
    return Findings(comparisons, settings, (priority,))


BENCHMARK = Benchmark(question="time to first token by who looks on, lab at DCP 1", about_s=360, measure=measure)
