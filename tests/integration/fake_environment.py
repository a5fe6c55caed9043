"""An environment with the fake vLLM in it, for runs of the real command line: ``repro --env existing:...``."""

import os
import shutil
import venv
from pathlib import Path

FAKES = Path(__file__).resolve().parents[1] / "fakes"
SCENARIO = FAKES / "scenario.toml"


def make_fake_environment(folder: Path) -> Path:
    """A venv whose interpreter finds a copy of the fakes, outside any git clone; returns the venv."""
    copy = folder / "fakes"
    shutil.copytree(FAKES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "fake.pth").write_text(f"{copy / 'site'}\n")
    return environment


def repro_arguments(environment: Path) -> tuple[str, ...]:
    """The arguments of ``sparkdiag`` for a crawling prefill of the fake."""
    asked = ("--scenario", str(SCENARIO), "--env", f"existing:{environment}", "--model", "fake", "--baseline-s", "1")
    return ("repro", *asked)


def fake_variables(folder: Path, mode: str, **more: str) -> dict[str, str]:
    """Variables of a run over the fake whose caches, locks and temporary files lie in ``folder``."""
    temporary = folder / "t"
    temporary.mkdir(exist_ok=True)
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "SPARKDIAG_CACHE": str(folder / "cache" / "sparkdiag")}
    fake = {"FAKE_VLLM_MODE": mode, "FAKE_VLLM_EVENTS": str(folder / "events"), **more}
    return {**os.environ, **own, **fake, "TMPDIR": str(temporary), "NO_COLOR": "1"}
