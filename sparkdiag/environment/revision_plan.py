"""The cheapest right way to an environment of a revision: decided from what changed since a base, said in one line."""

import re
from shlex import quote
from typing import Literal

from sparkdiag.environment.clone import Clone
from sparkdiag.environment.touched import SETUP, Touched, sort_out
from sparkdiag.environment.tree import paths_between
from sparkdiag.evidence.base import Value

OVERLAY_MINUTES = 0.1
"""Measured, with the base at hand: 2 to 6 s on two busy cores."""
PRECOMPILED_MINUTES = 5.0
SOURCE_MINUTES = 45.0
"""Assumed: neither was run here."""
UPSTREAM = re.compile(r"(?:^|[/:])vllm-project/vllm(?:\.git)?/?$")
"""Whose main branch has a wheel for each commit (https://docs.vllm.ai, "Install specific revisions")."""

Kind = Literal["existing", "release", "overlay", "precompiled", "source"]


class RevisionPlan(Value):
    """How the environment of one revision comes about."""

    kind: Kind
    because: str
    """One line."""
    commands: tuple[str, ...] = ()
    """What a person would type, where sparkdiag does not do it."""
    not_run: bool = False
    """Planned only: sparkdiag runs no installation of a revision's own build."""
    minutes: float = 0.0
    notes: tuple[str, ...] = ()
    """What a reader of a verdict should know."""


def plan_of(
    clone: Clone, sha: str, *, base: str | None, why: str = "", cpu: bool = False, wheel_commit: str | None = None
) -> RevisionPlan:
    """The plan for commit ``sha``.

    ``base``: the commit that the base's binaries were built from, None where that is not known, which ``why`` explains.
    ``cpu``: the base is a CPU build. ``wheel_commit``: the 40 digits of a commit whose wheel may be used.
    """
    touched = changed_since(clone, base, sha, cpu=cpu) if base else None
    if touched is None:
        return RevisionPlan(
            kind="overlay",
            because=f"Python files over the base's binaries; what changed since the base cannot be told ({why})",
            minutes=OVERLAY_MINUTES,
            notes=(f"unproved: whether the base's compiled parts fit {sha[:10]} ({why})",),
        )
    if not touched.compiled:
        return RevisionPlan(
            kind="overlay", because=touched.because, minutes=OVERLAY_MINUTES, notes=_notes(clone, base, sha, touched)
        )
    wheel = _wheel_for(clone, sha, named=wheel_commit, cpu=cpu)
    if wheel is not None:
        because = f"{touched.because}; the wheel of {wheel[:10]} has the same sources"
        return precompiled_plan(clone, sha, wheel_commit=wheel, because=because, cpu=cpu)
    because = f"{touched.because}; no commit of vLLM's main branch with the same sources, and so no wheel, is known"
    return source_plan(clone, sha, because=because, cpu=cpu)


def changed_since(clone: Clone, base: str, sha: str, *, cpu: bool) -> Touched | None:
    """What changed between two commits; None when git cannot tell."""
    paths = paths_between(clone, base, sha)
    if paths is None:
        return None
    lines = changed_lines(clone, base, sha, SETUP) if SETUP in paths else ()
    return sort_out(paths, cpu_base=cpu, setup_lines=lines)


def changed_lines(clone: Clone, old: str, new: str, *paths: str) -> tuple[str, ...] | None:
    """Lines added or taken away, without their sign; None when git cannot tell."""
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--unified=0")
    found = clone.output("diff-tree", "-r", "-p", *plain, old, new, "--", *paths)
    if found is None:
        return None
    lines = found.decode(errors="replace").splitlines()
    return tuple(line[1:] for line in lines if line[:1] in ("+", "-") and line[:4] not in ("+++ ", "--- "))


def _notes(clone: Clone, base: str | None, sha: str, touched: Touched) -> tuple[str, ...]:
    if not touched.requirements or base is None:
        return ()
    lines = changed_lines(clone, base, sha, *touched.requirements) or ()
    named = sorted({found[0] for line in lines if (found := re.match(r"[A-Za-z][\w.-]*", line.strip(" \"',")))})
    what = f" ({', '.join(named[:6])}{', ...' if len(named) > 6 else ''})" if named else ""
    where = ", ".join(touched.requirements)
    return (f"requirements changed since the base in {where}{what}: the base's are installed",)


def _wheel_for(clone: Clone, sha: str, *, named: str | None, cpu: bool) -> str | None:
    """A commit with a wheel whose compiled sources are the revision's: the named one, else the revision's last common
    commit with vLLM's own main branch."""
    found = named or upstream_base(clone, sha)
    if found is None:
        return None
    touched = changed_since(clone, found, sha, cpu=cpu)
    return found if touched is not None and not touched.compiled else None


def upstream_base(clone: Clone, sha: str) -> str | None:
    """Where a revision left vLLM's own main branch, as far as a remote of the clone tells."""
    remotes = (clone.output("config", "--get-regexp", r"^remote\..*\.url$") or b"").decode(errors="replace")
    for line in remotes.splitlines():
        name, _, url = line.partition(" ")
        main = f"refs/remotes/{name.removeprefix('remote.').removesuffix('.url')}/main"
        if UPSTREAM.search(url) and (tip := clone.resolve(main)) is not None:
            return clone.merge_base(sha, tip)
    return None


def precompiled_plan(clone: Clone, sha: str, *, wheel_commit: str, because: str, cpu: bool) -> RevisionPlan:
    """An editable install with the binaries of a wheel.

    The commit is always named in full: anything but 40 digits, and vLLM's setup.py asks GitHub for the main branch and
    takes the binaries of a commit that nobody chose
    (https://docs.vllm.ai/en/latest/getting_started/installation/gpu, "Python-only build").
    """
    variables = f"VLLM_USE_PRECOMPILED=1 VLLM_PRECOMPILED_WHEEL_COMMIT={wheel_commit}"
    variant = " VLLM_PRECOMPILED_WHEEL_VARIANT=cpu" if cpu else ""
    return RevisionPlan(
        kind="precompiled",
        because=because,
        commands=_commands(clone, sha, variables=variables + variant),
        not_run=True,
        minutes=PRECOMPILED_MINUTES,
    )


def source_plan(clone: Clone, sha: str, *, because: str, cpu: bool) -> RevisionPlan:
    """Everything compiled here."""
    variables = "VLLM_USE_PRECOMPILED=0" + (" VLLM_TARGET_DEVICE=cpu" if cpu else "")
    return RevisionPlan(
        kind="source",
        because=because,
        commands=_commands(clone, sha, variables=variables),
        not_run=True,
        minutes=SOURCE_MINUTES,
    )


def _commands(clone: Clone, sha: str, *, variables: str) -> tuple[str, ...]:
    """A worktree of the revision beside the clone with an environment inside, and how to use it."""
    tree = quote(str(clone.folder.with_name(f"vllm-{sha[:10]}")))
    backend = "cpu" if "cpu" in variables else "auto"
    install = f"uv pip install --python .venv/bin/python --editable . --torch-backend={backend}"
    return (
        f"git -C {quote(str(clone.folder))} worktree add --detach {tree} {sha}",
        f"git -C {tree} submodule update --init --recursive",
        f"cd {tree} && uv venv .venv",
        f"cd {tree} && {variables} {install}",
        f"sparkdiag repro --env existing:{tree}/.venv/bin/python --repo {tree}",
    )
