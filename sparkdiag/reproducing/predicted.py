"""The route of the revision under test, read from its source before the server starts: what should be seen later."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sparkdiag.environment.blobs import open_tree
from sparkdiag.environment.installed import InstalledTree
from sparkdiag.environment.model import Environment
from sparkdiag.environment.spec import OverlaySpec, ReleaseSpec, parse_spec
from sparkdiag.errors import EnvironmentFault, SparkdiagError
from sparkdiag.evidence.route import Platform, Reached, Route, RouteConfig
from sparkdiag.evidence.run import PredictedRoute
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.observing.gpu_facts import GpuFacts, look_at_gpus
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.scope import scope_of
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario

PATIENCE_S = 10.0
"""It takes milliseconds, with the neighbouring configurations below a second; a run does not wait longer than this."""
SCOPE_SHARE = 0.5
"""Share of the patience after which no further configuration is read."""
MOST_KERNELS, MOST_STEPS, MOST_LINES = 8, 60, 8
"""What is kept of a route with a run; the names of the kernels are kept all."""
LONGEST = 300
_BUILD = re.compile(r"\+(cpu|rocm|xpu)")
_BUILDS: dict[str, Platform] = {"cpu": "cpu", "rocm": "rocm", "xpu": "xpu"}


def keep_route(run: RunInProgress, environment: Environment) -> None:
    """Read the route and keep it with the run; where it cannot be read, a note says why and the run goes on."""
    predicted = predict(environment, Scenario.model_validate(run.record.scenario))
    run.update(predicted=predicted)
    if predicted.route is None:
        run.note("route", f"the route could not be read from the source: {predicted.problem}")
        return
    kernels = " or ".join(predicted.route.kernels) or "no kernel"
    sure = "" if predicted.route.exact else ", as far as it can be told"
    run.view.note(one_line(f"by its source ({predicted.read_from}) this run reaches {kernels}{sure}"))


def predict(environment: Environment, scenario: Scenario, *, patience_s: float = PATIENCE_S) -> PredictedRoute:
    """Never raises: why there is no route is told in ``problem``."""
    found: list[PredictedRoute] = []
    began_s = time.monotonic()
    until_s = began_s + patience_s * SCOPE_SHARE

    def read() -> None:
        found.extend(_predicted(environment, scenario, until_s=until_s))

    thread = threading.Thread(target=read, name="sparkdiag-route", daemon=True)
    thread.start()
    thread.join(patience_s)
    if not found:
        return PredictedRoute(problem=f"reading the source took longer than {patience_s:g} s")
    return found[-1].model_copy(update={"took_s": time.monotonic() - began_s})


def _predicted(environment: Environment, scenario: Scenario, *, until_s: float) -> Iterator[PredictedRoute]:
    """The route, then the same with its scope: what takes too long must not cost what is known already."""
    read_from, known = "", PredictedRoute()
    try:
        gpus = look_at_gpus().gpus
        config = config_of(scenario, platform=platform_of(environment, gpus), gpus=gpus)
        with source_of(environment) as (tree, read_from):
            route = trimmed(find_route(tree, scenario=scenario, config=config))
            known = PredictedRoute(route=route, read_from=_kept(read_from))
            yield known
            scope = scope_of(tree, scenario=scenario, config=config, until_s=until_s)
            yield known.model_copy(update={"scope": one_line(scope, limit=2 * LONGEST)})
    except Exception as error:  # what cannot be read must not cost the run
        message = error.message if isinstance(error, SparkdiagError) else f"{type(error).__name__}: {error}"
        if known.route is None:
            yield PredictedRoute(read_from=_kept(read_from), problem=_kept(message))


@contextmanager
def source_of(environment: Environment) -> Iterator[tuple[SourceTree, str]]:
    """Where the server's code is to be read, and its name. Raises ``SparkdiagError`` where there is nothing to read.

    The lab and an overlay are a commit's files. What somebody else installed is read where it lies: a checkout may hold
    changes that no commit has.
    """
    sha, repo = environment.revision_sha, environment.repo
    if sha is not None and repo is not None and environment.kind in ("lab", "overlay"):
        what = "the lab's history" if environment.kind == "lab" else f"the clone {repo}"
        with open_tree(Path(repo), sha) as tree:
            yield tree, f"{what} at {sha[:10]}"
    elif environment.package_path is not None:
        revision = sha or f"vLLM {environment.vllm_version or 'of an unknown version'}"
        package = Path(environment.package_path)
        yield InstalledTree(package, revision=revision), f"the files installed in {package}"
    else:
        raise EnvironmentFault("nobody knows where the server's package lies", remedy="sparkdiag env list")


def platform_of(environment: Environment, gpus: Sequence[GpuFacts]) -> Platform | None:
    """What the server runs on, as far as its build and this machine tell. Pure."""
    spec = parse_spec(environment.spec)
    base = spec.base if isinstance(spec, OverlaySpec) else spec
    if environment.kind in ("lab", "release") or base is None or isinstance(base, ReleaseSpec):
        return "cpu"  # vLLM's published CPU wheels are what releases are made of
    build = _BUILD.search(environment.vllm_version or "")
    if build is not None:
        return _BUILDS[build[1]]
    return "cuda" if gpus else None


def config_of(scenario: Scenario, *, platform: Platform | None, gpus: Sequence[GpuFacts]) -> RouteConfig:
    """The run's own configuration. GPUs that differ in capability tell none. Pure."""
    told = {gpu.capability for gpu in gpus if gpu.capability is not None}
    arch = scenario.route.arch
    if told:
        arch = "sm{}{}".format(*told.pop()) if len(told) == 1 else None
    config = RouteConfig(
        dcp=scenario.server.dcp,
        arch=arch if platform in ("cuda", None) else None,
        platform=platform,
        cache="fp8",
        prompt_tokens=scenario.prompt.tokens,
        chunk_tokens=scenario.server.chunk_tokens,
        compress_ratio=scenario.work.compress_ratio,
    )
    return config if scenario.work.heads is None else config.model_copy(update={"heads": scenario.work.heads})


def trimmed(route: Route) -> Route:
    """What a run keeps of a route: the kernels and the ways there, bounded, without secrets. Pure."""
    return route.model_copy(
        update={
            "reached": tuple(
                _kept_kernel(reached, most_steps=MOST_STEPS if place < MOST_KERNELS else 0)
                for place, reached in enumerate(route.reached)
            ),
            "raises": tuple(
                line.model_copy(update={"error": _kept(line.error), "when": tuple(map(_kept, line.when[:MOST_LINES]))})
                for line in route.raises[:MOST_LINES]
            ),
            "guards": (),
            "not_understood": tuple(
                line.model_copy(update={"source": _kept(line.source), "reason": _kept(line.reason)})
                for line in route.not_understood[:MOST_LINES]
            ),
            "files": {},
        }
    )


def _kept_kernel(reached: Reached, *, most_steps: int) -> Reached:
    """The last steps are those next to the kernel."""
    trail = reached.trail[-most_steps:] if most_steps else ()
    steps = tuple(
        step.model_copy(update={"source": _kept(step.source), "because": _kept(step.because)}) for step in trail
    )
    return reached.model_copy(update={"when": tuple(map(_kept, reached.when[:MOST_LINES])), "trail": steps})


def _kept(text: str) -> str:
    return one_line(text, limit=LONGEST)
