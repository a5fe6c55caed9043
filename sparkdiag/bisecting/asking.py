"""From what was typed to what is searched: everything resolved and checked, nothing started."""

from collections.abc import Sequence
from pathlib import Path

from sparkdiag.bisecting.asked import Asked, check, target_of
from sparkdiag.bisecting.axis import ChosenAxis
from sparkdiag.bisecting.commit_axis import clone_axis, lab_axis
from sparkdiag.bisecting.release_axis import choose_releases
from sparkdiag.bisecting.request import BisectRequest
from sparkdiag.bisecting.values_axis import values_axis
from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.config import read_config
from sparkdiag.environment.facts import gather_facts
from sparkdiag.environment.labtree import lab_repo
from sparkdiag.environment.spec import ExistingSpec, LabSpec, ReleaseSpec
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.lab import history
from sparkdiag.needed import need_git
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.reproducing.resolve import Resolved, resolve
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override
from sparkdiag.serving.model_path import require_model

OVERLAY = "overlay:HEAD"
"""What stands for the environments of a clone's commits where no base for them was named."""


class Question(Value):
    """What is searched, and how that came about."""

    request: BisectRequest
    because: str
    """One line: what is searched in which environments, and why."""
    notes: tuple[str, ...] = ()


def question(asked: Asked, *, command: Sequence[str]) -> Question:
    """Raises ``UsageError`` for what cannot be asked, ``EnvironmentFault`` for a clone or releases not to be had."""
    check(asked)
    clone = Path(asked.repo) if asked.repo is not None else None
    resolved = resolve(env=asked.env or _base(clone), scenario=asked.scenario, model=asked.model, repo=clone)
    in_lab = isinstance(resolved.spec, LabSpec)
    if in_lab and clone is not None:
        raise UsageError(
            f"--env lab has a history of its own, --repo {asked.repo} another",
            remedy=f"sparkdiag bisect --repo {asked.repo} --env release:VERSION (the base its commits are laid over)",
        )
    scenario = override(
        resolved.scenario,
        dcp=asked.dcp,
        tp=asked.tp,
        model=resolved.model,
        prompt_tokens=asked.prompt_tokens,
        timeout_s=asked.timeout_s,
        extra_args=asked.extra_args,
    )
    if not asked.dry_run:
        require_model(scenario)
    chosen = _chosen(asked, resolved, scenario)
    return Question(
        request=_request(asked, resolved, scenario, chosen, command=command),
        because=_because(asked, resolved, chosen),
        notes=chosen.notes,
    )


def _base(clone: Path | None) -> str | None:
    """The environment of a clone without ``--env``: the config file's base, else the release each commit is nearest."""
    return OVERLAY if clone is not None and read_config().env is None else None


def _chosen(asked: Asked, resolved: Resolved, scenario: Scenario) -> ChosenAxis:
    if asked.axis is not None:
        return values_axis(asked.axis, scenario=scenario)
    if asked.releases is not None:
        return choose_releases(asked.releases, facts=gather_facts(), root=cache_root())
    if isinstance(resolved.spec, LabSpec):
        return _lab(asked, scenario)
    if resolved.repo is None:
        raise UsageError(
            f"{resolved.env_spec} is one revision; a search needs a history",
            remedy="name a clone: --repo PATH, or search values: --axis dcp=1,2",
        )
    return _clone(asked, resolved, scenario, folder=Path(resolved.repo))


def _lab(asked: Asked, scenario: Scenario) -> ChosenAxis:
    if asked.around is not None or asked.span is not None:
        raise UsageError(
            "--around and --span are for a clone; the lab's own history is short",
            remedy="leave them out, or name ends: --good REV --bad REV",
        )
    need_git("to search the lab's history")
    return lab_axis(
        lab_repo(history, root=cache_root()),
        scenario=scenario,
        good=asked.good,
        bad=asked.bad,
        first_parent=asked.first_parent,
        only_watched_paths=asked.only_watched_paths,
        suspect=asked.suspect,
    )


def _clone(asked: Asked, resolved: Resolved, scenario: Scenario, *, folder: Path) -> ChosenAxis:
    remedy = "name a git clone of vLLM: --repo path/to/vllm"
    if not folder.is_dir():
        raise UsageError(f"--repo {folder} is no folder", remedy=remedy)
    need_git(f"to look into --repo {folder}")
    clone = Clone(folder)
    if not clone.is_clone():
        raise UsageError(f"--repo {folder} is no git clone", remedy=remedy)
    chosen = clone_axis(
        clone,
        scenario=scenario,
        good=asked.good,
        bad=asked.bad,
        around=asked.around,
        span=asked.span,
        first_parent=asked.first_parent,
        only_watched_paths=asked.only_watched_paths,
        suspect=asked.suspect,
    )
    base = f"@{resolved.spec.text}" if isinstance(resolved.spec, (ExistingSpec, ReleaseSpec)) else ""
    specs = {commit.sha: f"overlay:{commit.sha}{base}" for commit in chosen.axis.history.commits}
    return chosen.model_copy(update={"axis": chosen.axis.model_copy(update={"env_specs": specs})})


def _request(
    asked: Asked, resolved: Resolved, scenario: Scenario, chosen: ChosenAxis, *, command: Sequence[str]
) -> BisectRequest:
    return BisectRequest(
        repro=ReproRequest(
            scenario=scenario,
            env_spec=resolved.env_spec,
            repo=resolved.repo,
            runs_dir=asked.out,
            baseline_s=asked.baseline_s,
            keep_priority=asked.keep_priority,
            wait_for_machine=asked.wait,
            command=tuple(command),
        ),
        axis=chosen.axis,
        target=target_of(asked.looks_for),
        predicted=chosen.predicted,
        repeat=asked.repeat,
        confidence=asked.confidence,
        reuse=asked.reuse,
        controls=asked.controls,
        confirm=asked.confirm,
        suspect_paths=chosen.suspect_paths,
        notes=chosen.notes,
        command=tuple(command),
    )


def _because(asked: Asked, resolved: Resolved, chosen: ChosenAxis) -> str:
    axis = chosen.axis
    if axis.lab:
        return f"{resolved.because}; searching the lab's own history of {len(axis.history.commits)} commits"
    base = "the release nearest to it" if resolved.env_spec == OVERLAY else resolved.env_spec
    why = "as asked" if asked.repo is not None else "from your config file"
    return f"searching the clone {axis.repo} {why}; each commit's Python tree is laid over {base}"
