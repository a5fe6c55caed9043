"""``sparkdiag repro`` where the kernel lets nobody look: the capability is dropped and the server hides its memory."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.bad_case import BadCase

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root"),
]

WITHOUT_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace")


def test_the_probe_takes_the_stacks_and_the_cause_is_told_with_what_to_type(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling,undumpable")
    ended = case.run(*case.repro_arguments("--json"), before=WITHOUT_PTRACE)
    assert ended.code == 1, ended
    document = json.loads(ended.out)
    assert document["verdict"]["function"] == "_fp8_mqa_logits_torch"
    sampling = document["sampling"]
    assert sampling["mode"] == "in-process"
    assert "permission denied (SYS_PTRACE is missing)" in sampling["reason"]
    assert "version" not in sampling["reason"]
    assert "docker run --cap-add SYS_PTRACE" in sampling["remedy"], "the bounding set cannot be widened from inside"
    assert 0 < sampling["cpu_s"] < sampling["observed_s"]
    (told,) = [line for line in ended.err.splitlines() if "SYS_PTRACE is missing" in line]
    assert "taken by the probe inside the server" in told and "--cap-add" in told
    screen = "\n".join((case.run_folder() / "report.md").read_text(encoding="utf-8").splitlines()[:40])
    assert "taken by the probe inside the server" in screen and "cap-add" in screen


def test_with_nothing_left_to_look_with_it_ends_before_the_prompt(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling,undumpable")
    child = case.start(*case.repro_arguments("--no-probe"), before=WITHOUT_PTRACE)
    ended = case.finish(child)
    assert ended.code == 4, ended
    assert "no stack can be taken: py-spy may not read process" in ended.error
    assert "SYS_PTRACE" in ended.next
    assert case.events("api request") == [], "nothing was sent to the server"
    record = case.record()
    assert (record["status"], record["verdict"]) == ("failed", None)
    assert "SYS_PTRACE" in record["error"]


def test_a_server_that_may_be_looked_at_needs_no_capability(tmp_path: Path) -> None:
    """The same user, the same capabilities on both sides: the kernel has nothing against it."""
    case = BadCase(tmp_path, "healthy")
    ended = case.run(*case.repro_arguments("--json", "--no-probe"), before=WITHOUT_PTRACE)
    assert ended.code == 0, ended
    assert json.loads(ended.out)["sampling"]["mode"] == "py-spy"


def test_the_priority_is_left_alone_on_demand(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "healthy")
    ended = case.run(*case.repro_arguments("--json", "--keep-priority"))
    assert ended.code == 0, ended
    assert json.loads(ended.out)["server_priority"] is None
    assert "autogroup" not in ended.err
