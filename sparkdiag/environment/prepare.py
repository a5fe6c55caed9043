"""From a spec to an environment a server can be launched from: build or find it, and say what it should contain."""

from pathlib import Path

from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.expected import watched_modules
from sparkdiag.environment.given import given
from sparkdiag.environment.labtree import LabHistory, lab_tree
from sparkdiag.environment.model import Environment
from sparkdiag.environment.overlaid import not_run, overlaid
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.published import published
from sparkdiag.environment.spec import (
    LAB_RELEASE,
    EnvironmentSpec,
    ExistingSpec,
    OverlaySpec,
    PrecompiledSpec,
    SourceSpec,
)
from sparkdiag.needed import need_git
from sparkdiag.scenario.model import Scenario


def prepare(
    spec: EnvironmentSpec,
    *,
    scenario: Scenario,
    revision: str | None,
    repo: Path | None,
    progress: ProgressSink,
    history: LabHistory | None = None,
) -> Environment:
    """Make the environment that ``spec`` asks for ready to serve ``scenario``.

    A lab scenario gets the lab's source on its path, in whichever environment: ``revision`` is then one of the lab's.
    Elsewhere ``revision`` is what the environment must already be. ``history`` is the lab's, for tests.
    Raises ``EnvironmentFault``, ``BusyError`` or ``UsageError``.
    """
    if scenario.lab and history is None:
        need_git("for the lab's history")  # before an environment is built for minutes
    modules = watched_modules(scenario)
    asked = None if scenario.lab else revision
    if isinstance(spec, ExistingSpec):
        environment = given(spec, modules=modules, revision=asked, repo=repo)
    elif isinstance(spec, OverlaySpec):
        environment = overlaid(spec, modules=modules, revision=asked, repo=repo, progress=progress)
    elif isinstance(spec, PrecompiledSpec | SourceSpec):
        raise not_run(spec, repo=repo)
    else:
        environment = published(spec, modules=modules, revision=asked, repo=repo, progress=progress)
    if not scenario.lab:
        return environment
    return _with_lab(environment, modules=modules, revision=revision, progress=progress, history=history)


def _with_lab(
    environment: Environment,
    *,
    modules: tuple[str, ...],
    revision: str | None,
    progress: ProgressSink,
    history: LabHistory | None,
) -> Environment:
    if history is None:
        from sparkdiag.lab import history as embedded  # the lab is loaded only by runs that use it

        history = embedded
    tree = lab_tree(history, revision=revision, modules=modules, root=cache_root(), say=progress.say)
    in_lab = {file.module for file in tree.files}
    others = tuple(file for file in environment.expected_files if file.module not in in_lab)
    notes = environment.notes
    if environment.vllm_version != LAB_RELEASE:
        notes = (*notes, f"the lab is tested on vLLM {LAB_RELEASE}, this is {environment.vllm_version}")
    return environment.model_copy(
        update={
            "kind": "lab",
            "pythonpath": (tree.path, *environment.pythonpath),
            "model_path": tree.model_path,
            "asked_revision": revision,
            "revision_sha": tree.sha,
            "repo": tree.repo,
            "expected_files": (*tree.files, *others),
            "notes": notes,
        }
    )
