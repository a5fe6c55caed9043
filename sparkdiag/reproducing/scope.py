"""Of which configurations a run's stall is to be expected, by the source under test: the scope, as one sentence.

The run shows one configuration; the same source is read for its neighbours too (``route --matrix``).
"""

import time
from collections.abc import Sequence

from sparkdiag.evidence.route import Cache, MatrixCell, MatrixRevision, Route, RouteConfig
from sparkdiag.routing.across.matrix import MatrixAxes, find_matrix
from sparkdiag.routing.across.narrowing import Conditions, separating
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario

ARCHITECTURES = ("sm90", "sm100", "sm120", "sm121")
"""GPUs that a claim about a CUDA dispatch is held against: Hopper, Blackwell, and the two of SM12x."""
CACHES: tuple[Cache, ...] = ("fp8", "fp4")
_SM12X = frozenset({"sm120", "sm121"})
_MOST_KERNELS = 3


class _OutOfTime(Exception):
    pass


def scope_of(tree: SourceTree, *, scenario: Scenario, config: RouteConfig, until_s: float) -> str:
    """Empty where there is no time (``time.monotonic``) to read them all, or where no signature names a stall."""
    stalls = {signature.function for signature in scenario.signatures}
    axes = axes_of(scenario, config)
    if not stalls or len(axes.configs(config)) < 2:
        return ""

    def find(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        if time.monotonic() > until_s:
            raise _OutOfTime
        return find_route(tree, scenario=scenario, config=config)

    revision = MatrixRevision(name=tree.revision[:10], revision=tree.revision)
    try:
        found = find_matrix([(revision, tree)], scenario=scenario, base=config, axes=axes, find=find)
    except _OutOfTime:
        return ""
    return scope_sentence(found.cells, axes=axes, config=config, stalls=stalls)


def axes_of(scenario: Scenario, config: RouteConfig) -> MatrixAxes:
    """DCP 1 and the run's size; on CUDA the architectures too; the cache's type except in the lab. Pure."""
    dcp = config.dcp or 1
    architectures: tuple[str | None, ...] = (config.arch,)
    if not scenario.lab and config.platform in ("cuda", None):
        named = {*ARCHITECTURES, *(name for name in (scenario.route.arch, config.arch) if name is not None)}
        ordered = sorted(named, key=lambda name: int(name.removeprefix("sm")))
        architectures = tuple(ordered)
    return MatrixAxes(
        dcp=(1, dcp if dcp > 1 else 2),
        arch=architectures,
        cache=(config.cache,) if scenario.lab else CACHES,
    )


def scope_sentence(cells: Sequence[MatrixCell], *, axes: MatrixAxes, config: RouteConfig, stalls: set[str]) -> str:
    """``a prefill of 450,560 tokens reaches f only when DCP > 1 on SM12x with an FP8 indexer cache (…)``. Pure."""
    if not cells or all(cell.problem is not None for cell in cells):
        return ""
    perhaps = [cell for cell in cells if cell.stall != "false"]
    named = [name for name in dict.fromkeys(name for cell in perhaps for name in cell.kernels) if name in stalls]
    names = named or sorted(stalls)
    path = " or ".join(names) if len(names) <= _MOST_KERNELS else "the stall path"
    claim = _claim(cells, perhaps, path)
    return f"a {config.phase} of {config.prompt_tokens:,} tokens {claim} ({_asked(len(cells), axes, config)})"


def _claim(cells: Sequence[MatrixCell], perhaps: Sequence[MatrixCell], path: str) -> str:
    sure = sum(cell.stall == "true" for cell in perhaps)
    if not perhaps:
        return f"reaches {path} in none of the configurations asked"
    verb = "reaches" if sure else "may reach"
    open_ = f", {sure} for certain and {len(perhaps) - sure} not known" if sure and sure < len(perhaps) else ""
    conditions = separating(cells)
    if conditions:
        return f"{verb} {path} only {_when(conditions)}{open_}"
    if not sure and len(perhaps) == len(cells):
        return f"may reach {path} or not: the source leaves it open in every configuration asked"
    if conditions is None:
        return f"{verb} {path} in {len(perhaps)} of the configurations asked{open_}; no one condition tells which"
    return f"{verb} {path} in all of the configurations asked{open_}"


def _when(conditions: Conditions) -> str:
    """``when DCP > 1 on SM12x with an FP8 indexer cache``."""
    words = []
    if "dcp" in conditions:
        words.append("when DCP = 1" if conditions["dcp"] == {1} else "when DCP > 1")
    if "arch" in conditions:
        words.append(f"on {_architectures({str(name) for name in conditions['arch'] if name is not None})}")
    if "cache" in conditions:
        words.append(f"with an {' or '.join(sorted(str(one).upper() for one in conditions['cache']))} indexer cache")
    return " ".join(words)


def _architectures(names: set[str]) -> str:
    short = ["SM12x"] if names >= _SM12X else sorted(name.upper() for name in names & _SM12X)
    rest = sorted((name.upper() for name in names - _SM12X), key=lambda name: (len(name), name))
    return " or ".join([*rest, *short])


def _asked(count: int, axes: MatrixAxes, config: RouteConfig) -> str:
    """Every value that was asked, so that "only" says no more than was looked at."""
    parts = [f"DCP {' and '.join(str(size) for size in axes.dcp)}"]
    if len(axes.arch) > 1:
        parts.append(", ".join(str(name).upper() for name in axes.arch))
    elif config.platform is not None:
        parts.append(f"platform {config.platform}" + (f" {config.arch}" if config.arch else ""))
    if len(axes.cache) > 1:
        parts.append(" and ".join(str(one).upper() for one in axes.cache) + " cache")
    return f"{count} configurations asked: {'; '.join(parts)}"
