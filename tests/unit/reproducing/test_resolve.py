"""One choice of environment, scenario, model and clone for repro, doctor and bisect."""

from pathlib import Path

import pytest

from sparkdiag.environment.spec import ExistingSpec, LabSpec
from sparkdiag.errors import UsageError
from sparkdiag.reproducing.resolve import resolve


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(path))
    monkeypatch.setattr("sparkdiag.reproducing.resolve.gpu_names", tuple)
    return path


def test_nothing_asked_and_nothing_configured_is_the_lab(config: Path) -> None:
    chosen = resolve(env=None, scenario=None, model=None, repo=None)
    assert isinstance(chosen.spec, LabSpec)
    assert (chosen.scenario.name, chosen.model, chosen.repo) == ("lab", None, None)
    assert "no GPU here" in chosen.because


def test_the_config_files_model_is_for_its_environments_alone(config: Path) -> None:
    config.write_text('env = "existing:/x/python"\nmodel = "org/m"\nrepo = "/x/vllm"\n')
    chosen = resolve(env=None, scenario=None, model=None, repo=None)
    assert chosen.spec == ExistingSpec(target="/x/python")
    assert (chosen.model, chosen.repo, chosen.scenario.lab) == ("org/m", "/x/vllm", False)
    assert resolve(env=None, scenario=None, model="org/other", repo=Path("y")).model == "org/other"
    assert resolve(env=None, scenario=None, model=None, repo=Path("y")).repo == "y"
    assert resolve(env="lab", scenario=None, model=None, repo=None).model is None


@pytest.mark.parametrize(("env", "scenario"), [("nonsense", None), (None, "no-such-scenario")])
def test_what_cannot_be_understood_is_refused(config: Path, env: str | None, scenario: str | None) -> None:
    with pytest.raises(UsageError):
        resolve(env=env, scenario=scenario, model=None, repo=None)
