"""From what was typed to what is searched: everything resolved and checked, nothing started."""

from collections.abc import Sequence
from pathlib import Path

from sparkdiag.bisecting.asking.options import Asked, check, target_of
from sparkdiag.bisecting.axes.axis import Axis, ChosenAxis
from sparkdiag.bisecting.axes.commit_axis import clone_axis, lab_axis
from sparkdiag.bisecting.axes.release_axis import choose_releases, parse_releases
from sparkdiag.bisecting.axes.release_pair import require_tags
from sparkdiag.bisecting.axes.route_changes import with_route_changes
from sparkdiag.bisecting.axes.values_axis import values_axis
from sparkdiag.bisecting.question.git_log import imported_marks, read_log
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.trials.result import points_of
from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.config import read_config
from sparkdiag.environment.facts import gather_facts
from sparkdiag.environment.labtree import lab_repo
from sparkdiag.environment.spec import ExistingSpec, LabSpec, ReleaseSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import AxisKind
from sparkdiag.evidence.run import RunRecord
from sparkdiag.lab import history
from sparkdiag.needed import need_git
from sparkdiag.observing.gpu_facts import look_at_gpus
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.bisection_phrases import short
from sparkdiag.reproducing.choice import LAB_SCENARIO
from sparkdiag.reproducing.predicted import config_of
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


def question(asked: Asked, *, command: Sequence[str], routes: bool = True) -> Question:
    """What is asked. ``routes``: look for predicted commits in the source; a search that goes on keeps its own.

    Raises ``UsageError`` for what cannot be asked, ``EnvironmentFault`` for a clone or releases not to be had.
    """
    check(asked)
    clone = Path(asked.repo) if asked.repo is not None else None
    resolved = resolve(env=asked.env or _base(asked), scenario=_scenario(asked), model=asked.model, repo=clone)
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
        model=asked.model if resolved.scenario.lab else resolved.model,
        prompt_tokens=asked.prompt_tokens,
        timeout_s=asked.timeout_s,
        extra_args=asked.extra_args,
    )
    chosen = _chosen(asked, resolved, scenario)
    if routes and chosen.axis.kind == "commits":
        chosen = _with_route_changes(asked, chosen, scenario)
    if not asked.dry_run:
        require_model(scenario)
    request = _request(asked, resolved, scenario, chosen, command=command)
    return Question(
        request=request,
        because=_because(asked, resolved, chosen),
        notes=request.notes,
    )


def _scenario(asked: Asked) -> str | None:
    """The published wheels are vLLM's CPU build: without a model of the user's, the lab's is what they can serve."""
    alone = asked.releases is not None and asked.scenario is None and asked.model is None
    return LAB_SCENARIO if alone else asked.scenario


def _base(asked: Asked) -> str | None:
    """The environment without ``--env``: of releases the newer end, of a clone the config file's base, else the release
    that each commit is nearest to."""
    if asked.releases is not None:
        return ReleaseSpec(version=parse_releases(asked.releases).versions[-1]).text
    return OVERLAY if asked.repo is not None and read_config().env is None else None


def _chosen(asked: Asked, resolved: Resolved, scenario: Scenario) -> ChosenAxis:
    if asked.axis is not None:
        return values_axis(asked.axis, scenario=scenario)
    if asked.releases is not None:
        return _releases(asked, asked.releases)
    if isinstance(resolved.spec, LabSpec):
        return _lab(asked, scenario)
    if resolved.repo is None:
        raise UsageError(
            f"{resolved.env_spec} is one revision; a search needs a history",
            remedy="name a clone: --repo PATH, or search values: --axis dcp=1,2",
        )
    return _clone(asked, resolved, scenario, folder=Path(resolved.repo))


def _releases(asked: Asked, releases: str) -> ChosenAxis:
    chosen = choose_releases(releases, facts=gather_facts(), root=cache_root())
    if asked.repo is not None:
        require_tags([commit.sha for commit in chosen.axis.history.commits], open_clone(Path(asked.repo)))
    return chosen


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
    if not folder.is_dir():
        raise UsageError(f"--repo {folder} is no folder", remedy="name a git clone of vLLM: --repo path/to/vllm")
    try:
        clone = open_clone(folder)
    except EnvironmentFault as fault:
        raise UsageError(f"--repo: {fault.message}", remedy=fault.remedy) from fault
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


def _with_route_changes(asked: Asked, chosen: ChosenAxis, scenario: Scenario) -> ChosenAxis:
    """The lab's servers run on the CPU; a clone is asked about the GPU that is here, or that the scenario is about."""
    gpus = look_at_gpus().gpus
    return with_route_changes(
        chosen,
        scenario=scenario,
        config=config_of(scenario, platform="cpu" if chosen.axis.lab else "cuda", gpus=gpus),
        target=target_of(asked.looks_for),
        named=bool(asked.suspect),
    )


def _earlier_runs(asked: Asked, axis: Axis) -> tuple[str | None, str | None]:
    """The runs that stand for the older and the newer end: a run tells by itself which end it is one of."""
    ends: dict[str, str] = {}
    for option, folder in (("--good-run", asked.good_run), ("--bad-run", asked.bad_run)):
        if folder is None:
            continue
        record = read_run(Path(folder)).record
        point = point_of(record, axis.kind)
        if axis.kind == "commits":
            point = next((one for one in points_of(record) if one in (axis.old, axis.new)), point)
        if point not in (axis.old, axis.new):
            ran = f"ran {short(axis.kind, point)}" if point else "does not say what it ran"
            raise UsageError(
                f"{option} {folder} {ran}, which is neither end: "
                f"{short(axis.kind, axis.old)} and {short(axis.kind, axis.new)}",
                remedy="leave it out: the end is then run",
            )
        if point in ends:
            raise UsageError(
                f"--good-run and --bad-run are runs of the same end, {short(axis.kind, point)}",
                remedy="name one run of each end, or leave one out",
            )
        ends[point] = str(Path(folder).resolve())
    return ends.get(axis.old), ends.get(axis.new)


def point_of(record: RunRecord, kind: AxisKind) -> str | None:
    """The point of an axis that a run was one of; None where its record does not say. Pure."""
    match kind:
        case "commits":
            return record.revision.sha
        case "releases":
            return record.revision.version
        case "dcp":
            value = (record.scenario.get("server") or {}).get("dcp")
        case "prompt-tokens":
            value = (record.scenario.get("prompt") or {}).get("tokens")
    return str(value) if value is not None else None


def _request(
    asked: Asked, resolved: Resolved, scenario: Scenario, chosen: ChosenAxis, *, command: Sequence[str]
) -> BisectRequest:
    old_run, new_run = _earlier_runs(asked, chosen.axis)
    imported = imported_marks(read_log(Path(asked.import_log)), chosen.axis) if asked.import_log is not None else None
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
        predicted_because=chosen.predicted_because,
        repeat=asked.repeat,
        confidence=asked.confidence,
        reuse=asked.reuse,
        controls=asked.controls,
        confirm=asked.confirm,
        old_run=old_run,
        new_run=new_run,
        imported=imported.marks if imported is not None else (),
        suspect_paths=chosen.suspect_paths,
        notes=(*chosen.notes, *(imported.notes if imported is not None else ())),
        command=tuple(command),
    )


def _because(asked: Asked, resolved: Resolved, chosen: ChosenAxis) -> str:
    axis = chosen.axis
    if axis.lab:
        return f"{resolved.because}; searching the lab's own history of {len(axis.history.commits)} commits"
    if axis.kind == "releases":
        ends = f"{axis.old} to {axis.new}"
        return f"searching {len(axis.history.commits)} releases, {ends}, each in an environment of its own, as asked"
    if axis.kind != "commits":
        values = f"{short(axis.kind, axis.old)} to {short(axis.kind, axis.new)}"
        return f"{resolved.because}; searching {len(axis.history.commits)} values, {values}, as asked"
    base = "the release nearest to it" if resolved.env_spec == OVERLAY else resolved.env_spec
    why = "as asked" if asked.repo is not None else "from your config file"
    return f"searching the clone {axis.repo} {why}; each commit's Python tree is laid over {base}"
