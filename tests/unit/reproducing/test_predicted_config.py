"""Which configuration and which source a run's route is read for, and what of it is kept."""

import threading
from pathlib import Path

import pytest

from sparkdiag.environment.installed import InstalledTree
from sparkdiag.environment.model import Environment
from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.route import Guard, Platform, Reached, Route, RouteConfig, TrailStep
from sparkdiag.observing.gpu_facts import GpuFacts
from sparkdiag.reproducing import predicted
from sparkdiag.reproducing.predicted import config_of, platform_of, predict, source_of, trimmed
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Work
from sparkdiag.scenario.overrides import override

INCIDENT = load_scenario("sm12x-mqa-prefill")
SPARK = GpuFacts(index=0, name="GB10", capability=(12, 1))
SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"


def environment(kind: str, spec: str, *, version: str | None = "0.32.0", **changes: object) -> Environment:
    made = Environment.model_validate(
        {"spec": spec, "kind": kind, "key": "k", "python": "python", "serve_prefix": ("vllm",), "vllm_version": version}
    )
    return made.model_copy(update=changes)


@pytest.mark.parametrize(
    ("kind", "spec", "version", "gpus", "expected"),
    [
        ("lab", "lab", "0.32.0", 1, "cpu"),
        ("release", "release:0.32.0", "0.32.0", 1, "cpu"),
        ("overlay", "overlay:HEAD", "0.32.0", 1, "cpu"),
        ("overlay", "overlay:HEAD@release:0.32.0", "0.32.0", 1, "cpu"),
        ("overlay", "overlay:HEAD@existing:/x/python", "0.32.0", 1, "cuda"),
        ("overlay", "overlay:HEAD@existing:/x/python", "0.32.0+cpu", 1, "cpu"),
        ("existing", "existing:/x/python", "0.27.1+cu130", 2, "cuda"),
        ("existing", "existing:/x/python", "0.27.1+rocm641", 0, "rocm"),
        ("existing", "existing:/x/python", None, 0, None),
    ],
)
def test_a_build_and_the_machine_tell_the_platform(
    kind: str, spec: str, version: str | None, gpus: int, expected: Platform | None
) -> None:
    assert platform_of(environment(kind, spec, version=version), (SPARK,) * gpus) == expected


def test_the_configuration_is_the_runs_own() -> None:
    scenario = override(INCIDENT, dcp=1, prompt_tokens=20_000)
    config = config_of(scenario, platform="cuda", gpus=(SPARK, SPARK))
    assert (config.dcp, config.arch, config.platform, config.cache) == (1, "sm121", "cuda", "fp8")
    assert (config.prompt_tokens, config.chunk_tokens, config.heads, config.compress_ratio) == (20_000, 8192, 64, 4)
    assert config.phase == "prefill"
    unsaid = scenario.model_copy(update={"work": Work()})
    assert config_of(unsaid, platform="cuda", gpus=()).heads == RouteConfig().heads


def test_without_a_gpu_the_scenarios_capability_stands_and_of_unlike_gpus_none_does() -> None:
    scenario = INCIDENT.model_copy(update={"route": INCIDENT.route.model_copy(update={"arch": "sm120"})})
    hopper = SPARK.model_copy(update={"capability": (9, 0)})
    unknown = SPARK.model_copy(update={"capability": None})
    assert config_of(scenario, platform="cuda", gpus=()).arch == "sm120"
    assert config_of(scenario, platform=None, gpus=(unknown,)).arch == "sm120"
    assert config_of(scenario, platform="cuda", gpus=(hopper,)).arch == "sm90"
    assert config_of(scenario, platform="cuda", gpus=(SPARK, hopper)).arch is None
    assert config_of(scenario, platform="cpu", gpus=(SPARK,)).arch is None


def test_what_somebody_installed_is_read_where_it_lies(tmp_path: Path) -> None:
    found = environment("existing", "existing:/x", package_path=str(tmp_path), repo="/nowhere", revision_sha="a" * 40)
    with source_of(found) as (tree, name):
        assert isinstance(tree, InstalledTree) and tree.revision == "a" * 40
        assert str(tmp_path) in name
    with pytest.raises(EnvironmentFault), source_of(environment("existing", "existing:/x")):
        pass


def test_what_a_run_keeps_is_bounded_and_holds_no_secret() -> None:
    step = TrailStep(
        kind="guard", depth=0, function="f", path="f.py", line=1, source=f"token == '{SECRET}'" + "x" * 999
    )
    reached = tuple(Reached(function=f"k{n}", path="f.py", line=1, trail=(step,) * 500) for n in range(20))
    route = Route(
        revision="a" * 40,
        scenario="lab",
        config=RouteConfig(),
        entry="f",
        entry_path="f.py",
        entry_line=1,
        reached=reached,
        guards=(Guard(function="f", path="f.py", line=1, source="x", value="true", because=""),),
        files={"f.py": "b" * 40},
    )
    kept = trimmed(route)
    assert kept.kernels == route.kernels  # a kernel left out would look like one that the source excludes
    assert SECRET not in kept.model_dump_json()
    assert len(kept.model_dump_json()) < 8 * 60 * 600 + 20_000
    assert (kept.guards, kept.files) == ((), {})


def test_no_defect_and_no_wait_of_the_prediction_costs_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = environment("existing", "existing:/x", package_path=str(tmp_path))
    for error in (ValueError("a\ndefect"), RecursionError("deep"), EnvironmentFault("git failed", remedy="x")):

        def failing(*_args: object, error: Exception = error, **_more: object) -> Route:
            raise error

        monkeypatch.setattr(predicted, "find_route", failing)
        said = predict(found, INCIDENT)
        assert said.route is None and said.problem and "\n" not in said.problem and str(tmp_path) in said.read_from
    released = threading.Event()
    monkeypatch.setattr(predicted, "find_route", lambda *_args, **_more: released.wait(30))
    said = predict(found, INCIDENT, patience_s=0.05)
    released.set()
    assert said.route is None and said.problem is not None and "longer than 0.05 s" in said.problem
