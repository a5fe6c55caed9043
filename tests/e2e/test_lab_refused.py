"""The lab server where the kernel refuses py-spy: the stacks come from inside, and the verdict is the same."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sparkdiag.observing.pyspy import find_pyspy

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root"),
]


def interpreter_without_ptrace(folder: Path) -> Path:
    """This interpreter with its packages, in a virtual environment whose py-spy has lost CAP_SYS_PTRACE."""
    base = Path(os.path.realpath(sys.executable))
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n", encoding="utf-8")
    (packages / "these.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    pyspy = folder / "bin" / "py-spy"
    pyspy.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_ptrace {find_pyspy()} "$@"\n', encoding="utf-8")
    pyspy.chmod(0o755)
    return folder / "bin" / "python"


def test_the_stall_is_found_from_inside_the_server(tmp_path: Path) -> None:
    python = interpreter_without_ptrace(tmp_path / "venv")
    done = subprocess.run(
        [python, "-m", "sparkdiag", "repro", "--dcp", "2", "--json"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 1, f"exit {done.returncode}\n{done.stderr[-4000:]}\n{done.stdout[-2000:]}"
    document = json.loads(done.stdout)
    verdict, sampling = document["verdict"], document["sampling"]
    assert (verdict["outcome"], verdict["mode"], verdict["function"]) == (
        "stalled",
        "crawling",
        "_fp8_mqa_logits_torch",
    )
    assert sampling["mode"] == "in-process"
    assert "SYS_PTRACE is missing" in sampling["reason"]
    assert sampling["taken"] >= 20, "five and more of each of four processes"
    lines = (Path(document["run_dir"]) / "stacks.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    assert {json.loads(line)["source"] for line in lines} == {"in-process"}
    assert "SYS_PTRACE is missing" in done.stderr
