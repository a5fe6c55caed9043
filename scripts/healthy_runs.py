"""Run the lab healthy but slow, many times, and count how often that is called a stall. It must be never.

    python scripts/healthy_runs.py --out runs/healthy --healthy-s 7

Each variant is one real ``sparkdiag repro`` of a prefill that is not on the fallback (or too short for it to matter),
slowed down by burning CPU beside it, by one core for both ranks, or by a longer prompt. ``--healthy-s`` is the quiet
machine's time to first token at DCP 1 for the scenario's prompt; it is scaled with the length squared, which is
what the indexer's work grows with. About 100 s a run on two cores. Exit 1 when one was called a stall.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROMPT_TOKENS = 16384


class Variant(NamedTuple):
    """One healthy run: extra arguments, CPU burners beside it, cores for it."""

    name: str
    args: tuple[str, ...]
    tokens: int = PROMPT_TOKENS
    burners: int = 0
    cores: str | None = None


VARIANTS = (
    Variant("DCP 1", ("--dcp", "1")),
    Variant("DCP 1, 2 burners", ("--dcp", "1"), burners=2),
    Variant("DCP 1, 4 burners", ("--dcp", "1"), burners=4),
    Variant("DCP 1, 6 burners", ("--dcp", "1"), burners=6),
    Variant("DCP 1, one core for both ranks", ("--dcp", "1"), cores="0"),
    Variant("DCP 1, one core, 1 burner", ("--dcp", "1"), cores="0", burners=1),
    Variant("DCP 1, 24,000 tokens", ("--dcp", "1"), tokens=24000),
    Variant("DCP 1, 24,000 tokens, 4 burners", ("--dcp", "1"), tokens=24000, burners=4),
    Variant("DCP 2, gate dropped", ("--dcp", "2", "--rev", "gate-dropped")),
    Variant("DCP 2, gate dropped, 4 burners", ("--dcp", "2", "--rev", "gate-dropped"), burners=4),
    Variant("DCP 1, reasoning prompt, 2 burners", ("--dcp", "1", "--prompt-kind", "reasoning"), burners=2),
)


@contextlib.contextmanager
def burning(count: int) -> Iterator[None]:
    """``count`` processes that do nothing but use CPU."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def run(variant: Variant, *, out: Path, healthy_s: float) -> dict[str, object]:
    """One row: what it was called, after how long, beside the healthy time."""
    baseline_s = healthy_s * (variant.tokens / PROMPT_TOKENS) ** 2
    argv = [
        sys.executable,
        "-m",
        "sparkdiag",
        "repro",
        "--json",
        "--out",
        str(out),
        "--prompt-tokens",
        str(variant.tokens),
    ]
    argv += ["--baseline-s", f"{baseline_s:.2f}", *variant.args]
    if variant.cores is not None:
        argv = ["taskset", "-c", variant.cores, *argv]
    with burning(variant.burners):
        done = subprocess.run(argv, env=os.environ, capture_output=True, text=True, check=False)
    try:
        document = json.loads(done.stdout)
        verdict = document["verdict"]
        first_token_s = document["timings_s"].get("prompt_to_first_token")
    except (ValueError, KeyError):
        return {"variant": variant.name, "outcome": "no document", "exit": done.returncode, "tail": done.stderr[-300:]}
    return {
        "variant": variant.name,
        "outcome": verdict["outcome"],
        "needle": document["needle"],
        "first_token_s": first_token_s and round(first_token_s, 1),
        "times_healthy": first_token_s and round(first_token_s / baseline_s, 1),
        "exit": done.returncode,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--healthy-s", type=float, required=True)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the variants to run, from 0")
    asked = parser.parse_args()
    rows = []
    for number, variant in enumerate(VARIANTS):
        if asked.only and number not in asked.only:
            continue
        rows.append(run(variant, out=asked.out, healthy_s=asked.healthy_s))
        print(json.dumps(rows[-1]), flush=True)
    stalled = sum(row["outcome"] == "stalled" for row in rows)
    print(f"{len(rows)} healthy runs, {stalled} called a stall")
    return 1 if stalled else 0


if __name__ == "__main__":
    sys.exit(main())
