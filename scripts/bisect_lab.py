"""Search the lab's own history on the real server, at DCP 1 and at DCP 2, and check both answers.

    python scripts/bisect_lab.py --out runs/bisect-lab

With DCP 1 the change sought is the fused fast path, with DCP 2 the dropped gate. ``--suspect does-not-start`` makes
each search try the commit that cannot start, which has to be skipped with its reason. About a quarter of an hour each
on two cores. Exit 1 when an answer is wrong.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

from sparkdiag.lab.history import FIX_COMMIT, SUSPECT_COMMIT

EXPECTED = {1: SUSPECT_COMMIT, 2: FIX_COMMIT}


def search(dcp: int, *, out: str, more: list[str]) -> dict[str, Any]:
    """One ``sparkdiag bisect``; its JSON document. Its talk goes to this terminal."""
    argv = [sys.executable, "-m", "sparkdiag", "bisect", "--dcp", str(dcp), "--out", out, "--json", *more]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def told(document: dict[str, Any]) -> list[str]:
    """The trials, a line each."""
    lines = []
    for trial in document["trials"]:
        reused = f", as {trial['reused_from'][:10]}" if trial["reused_from"] else ""
        lines.append(f"  {trial['sha'][:10]} {trial['outcome']}{reused}: {trial['reason']}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--dcp", type=int, action="append", choices=sorted(EXPECTED), help="default: both")
    args, more = parser.parse_known_args()
    wrong = 0
    for dcp in args.dcp or sorted(EXPECTED):
        document = search(dcp, out=args.out, more=more or ["--suspect", "does-not-start"])
        found = [commit["sha"] for commit in document.get("commits", [])]
        good = document.get("outcome") == "found" and found == [EXPECTED[dcp]]
        wrong += not good
        print(f"DCP {dcp}: {document.get('outcome')} {[sha[:10] for sha in found]}: {'right' if good else 'WRONG'}")
        print("\n".join(told(document)) if "trials" in document else json.dumps(document, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
