"""Check what ``sparkdiag route`` reads off a source against what the same revision does when its dispatch is run.

    python scripts/route_truth.py --repo FORK --repo UPSTREAM --python VENV/bin/python
    python scripts/route_truth.py --repo FORK --python VENV/bin/python --rev f6c6e54f4 --arch sm121 --json FILE

Of each clone: every commit since two before the scenario's suspect that touches the dispatch's files; where the clone
lacks it, as many as ``--sample`` says, evenly over the history of the entry function's file. Each is read and run for
every configuration (``--dcp`` x ``--arch`` x ``--cache`` x ``--phase``), at the prompt's last chunk and as a prompt of
a single chunk; the dispatch functions with ``clean_logits`` true and false. A call counts as

* ``agree``: it reached the one kernel that the source names;
* ``in set``: the source names several, each with its condition, and the run reached one of them;
* ``apart``: a dispatch function that the route does not pass, or passes with another ``clean_logits``;
* ``not run``: the entry function ended before a kernel; why is told;
* ``WRONG``: it reached a kernel that the source does not name. Then the exit status is 1; 3 where nothing was compared.

``--executed-only`` runs without reading: truth to check a reader by.

Measured (torch 2.13 CPU, 36 configurations a revision): the 19 commits of yhfgyyf/vllm-deepseek-v4-sm89 and 8 of
calvarado2004/vllm, 4,116 calls, none WRONG. Of 972 runs of the entry function 144 agree, 708 are in the set (mostly one
kernel beside the error of an absent DeepGEMM), 120 end in an import that commits in the middle of a rebase cannot do,
as the source says by now in all of them.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sparkdiag.environment.blobs import BlobReader, RevisionTree
from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.route import Executed, ExecutedCall, Route, RouteConfig
from sparkdiag.executing.session import execute_all
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

AGREE, IN_SET, APART, NOT_RUN, WRONG = KINDS = "agree", "in set", "apart", "not run", "WRONG"
FILES = ("*sparse_attn_indexer.py", "*deep_gemm*.py", "*sm12x*.py", "*sparklab/*.py")


class Row(NamedTuple):
    """One call of one configuration of one revision."""

    repo: str
    revision: str
    config: RouteConfig
    call: ExecutedCall
    static: tuple[str, ...]
    exact: bool
    judged: str


def main(argv: Sequence[str] | None = None) -> int:
    asked = options(argv)
    scenario = load_scenario(asked.scenario)
    rows: list[Row] = []
    trouble: list[str] = []
    for folder in asked.repo:
        clone = open_clone(folder)
        reader = BlobReader(clone)
        try:
            for sha in asked.rev or chosen(clone, scenario, sample=asked.sample):
                found, problems = checked(reader.named(sha), scenario, asked, repo=folder.parent.name or str(folder))
                rows += found
                trouble += problems
        finally:
            reader.close()
    print_rows(rows, trouble, every=asked.verbose)
    if asked.json:
        asked.json.write_text(json.dumps([as_json(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    if any(row.judged == WRONG for row in rows):
        return 1
    return 0 if asked.executed_only or any(row.judged in (AGREE, IN_SET) for row in rows) else 3


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, action="append", required=True)
    parser.add_argument("--python", type=Path, required=True, help="an interpreter that has torch")
    parser.add_argument("--rev", type=words, default=(), help="these revisions, by commas")
    parser.add_argument("--sample", type=int, default=12)
    parser.add_argument("--scenario", default="sm12x-mqa-prefill")
    parser.add_argument("--dcp", type=words, default=("1", "2"))
    parser.add_argument("--arch", type=words, default=("sm90", "sm120", "sm121"))
    parser.add_argument("--cache", type=words, default=("fp8", "fp4"))
    parser.add_argument("--phase", type=words, default=("prefill", "decode"))
    parser.add_argument("--timeout-s", type=float, default=300.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--executed-only", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(argv)


def words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def chosen(clone: Clone, scenario: Scenario, *, sample: int) -> list[str]:
    """Commits to look at, newest first."""
    twins = (scenario.suspect.commit, *scenario.suspect.twins) if scenario.suspect else ()
    since = next((f"{sha}~2" for name in twins if name and (sha := clone.resolve(name))), None)
    if since:
        return listed(clone, f"{since}..HEAD", FILES)
    entry = [
        f"*{module.rpartition('.')[2]}.py" for one in scenario.watch if one.role == "entry" for module in one.modules
    ]
    every = listed(clone, "HEAD", entry)
    step = max(1, -(-len(every) // sample))
    return every[::step]


def listed(clone: Clone, revisions: str, paths: Sequence[str]) -> list[str]:
    said = clone.output("rev-list", revisions, "--", *paths)
    if said is None:
        raise SystemExit(f"git could not list {revisions} of {clone.folder}")
    return said.decode().split()


def checked(
    tree: RevisionTree, scenario: Scenario, asked: argparse.Namespace, *, repo: str
) -> tuple[list[Row], list[str]]:
    """Every configuration of one revision, and what could not be answered."""
    configs = list(configurations(asked))
    trouble: list[str] = []
    pairs: list[tuple[RouteConfig, Route | None]] = []
    for config in configs:
        route = None
        if not asked.executed_only:
            try:
                route = find_route(tree, scenario=scenario, config=config)
            except SparkdiagError as error:
                trouble.append(f"{tree.revision[:10]} {told(config)}: {error.message}")
                continue
        pairs.append((config, route))
    if not pairs:
        return [], trouble
    try:
        answers = execute_all(tree, scenario=scenario, asked=pairs, python=asked.python, timeout_s=asked.timeout_s)
    except SparkdiagError as error:
        return [], [*trouble, f"{tree.revision[:10]}: {error.message}"]
    trouble += [
        f"{tree.revision[:10]}: {problem}" for problem in dict.fromkeys(one.problem for one in answers) if problem
    ]
    rows = [
        row
        for (config, route), answer in zip(pairs, answers, strict=True)
        for row in judged(repo, config, route, answer)
    ]
    print(f"{repo} {tree.revision[:10]} {dict(Counter(row.judged for row in rows))}", file=sys.stderr)
    return rows, trouble


def configurations(asked: argparse.Namespace) -> Iterator[RouteConfig]:
    for dcp, arch, cache, phase in product(asked.dcp, asked.arch, asked.cache, asked.phase):
        config = RouteConfig(dcp=int(dcp), arch=arch, cache=cache, phase=phase)
        yield config
        if phase == "prefill":
            yield config.model_copy(update={"prompt_tokens": config.chunk_tokens})


def judged(repo: str, config: RouteConfig, route: Route | None, answer: Executed) -> Iterator[Row]:
    for call in answer.calls:
        static = route.kernels if route else ()
        exact = bool(route and route.exact)
        if call.agrees is False:
            verdict = WRONG
        elif call.agrees is None:
            verdict = APART if call.function != route_entry(route) else NOT_RUN
        else:
            verdict = AGREE if exact or not call.reached else IN_SET
        yield Row(repo, answer.revision, config, call, static, exact, verdict)


def route_entry(route: Route | None) -> str:
    return route.entry if route else ""


def told(config: RouteConfig) -> str:
    return f"dcp{config.dcp} {config.arch} {config.cache} {config.phase} {config.prompt_tokens} tokens"


def print_rows(rows: Sequence[Row], trouble: Sequence[str], *, every: bool) -> None:
    for row in rows:
        if every or row.judged == WRONG:
            clean = "" if row.call.clean_logits is None else f"(clean_logits={row.call.clean_logits})"
            ran = ", ".join(row.call.reached) or row.call.raised or "nothing"
            print(f"{row.judged:8} {row.revision[:10]} {told(row.config)} {row.call.function}{clean}")
            print(f"         ran: {ran}; source: {', '.join(row.static) or '-'}; {row.call.because}")
    stopped = Counter(row.call.raised or row.call.because for row in rows if row.judged == NOT_RUN)
    for reason, times in stopped.most_common():
        print(f"not run, {times} times: {reason}")
    for line in dict.fromkeys(trouble):
        print(f"no answer {line}")
    print(f"{len({(row.repo, row.revision) for row in rows})} revisions, {len(rows)} calls")
    for function in dict.fromkeys(row.call.function for row in rows):
        counted = Counter(row.judged for row in rows if row.call.function == function)
        print(f"  {function:40} " + ", ".join(f"{counted[kind]} {kind}" for kind in KINDS))


def as_json(row: Row) -> dict[str, Any]:
    return {
        "repo": row.repo,
        "revision": row.revision,
        "config": row.config.model_dump(mode="json", exclude={"set"}),
        "call": row.call.model_dump(mode="json"),
        "static": row.static,
        "exact": row.exact,
        "judged": row.judged,
    }


if __name__ == "__main__":
    sys.exit(main())
