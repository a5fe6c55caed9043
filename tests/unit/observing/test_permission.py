from pathlib import Path

import pytest

from sparkdiag.observing.permission import PtraceFacts, ptrace_facts, ptrace_remedy

PYSPY = Path("/opt/some where/py-spy")
ALL = "000001ffffffffff"
NO_PTRACE = "000001fffff7ffff"
NONE = "0000000000000000"


def proc(folder: Path, *, effective: str, bounding: str, no_new_privileges: int = 0, yama: str | None = None) -> Path:
    (folder / "self").mkdir()
    text = f"Name:\tx\nCapEff:\t{effective}\nCapBnd:\t{bounding}\nNoNewPrivs:\t{no_new_privileges}\n"
    (folder / "self" / "status").write_text(text)
    if yama is not None:
        (folder / "sys" / "kernel" / "yama").mkdir(parents=True)
        (folder / "sys" / "kernel" / "yama" / "ptrace_scope").write_text(yama)
    return folder


@pytest.mark.parametrize(
    ("effective", "bounding", "privileges", "yama", "typed"),
    [
        (NONE, ALL, 0, None, "`sudo setcap cap_sys_ptrace=ep '/opt/some where/py-spy'`"),
        (NONE, ALL, 0, "1\n", "sysctl kernel.yama.ptrace_scope=0"),
        (NONE, NO_PTRACE, 0, "1\n", "--cap-add SYS_PTRACE"),
        (NO_PTRACE, NO_PTRACE, 0, None, "--cap-add SYS_PTRACE"),
        (NONE, ALL, 1, None, "--cap-add SYS_PTRACE"),
        (ALL, ALL, 0, None, "seccomp"),
        (ALL, ALL, 0, "3\n", "reboot"),
    ],
)
def test_the_remedy_names_what_stands_in_the_way(
    tmp_path: Path, effective: str, bounding: str, privileges: int, yama: str | None, typed: str
) -> None:
    folder = proc(tmp_path, effective=effective, bounding=bounding, no_new_privileges=privileges, yama=yama)
    remedy = ptrace_remedy(ptrace_facts(proc=folder), pyspy=PYSPY)
    assert typed in remedy


@pytest.mark.parametrize("text", ["", "CapEff\n", "CapEff:\tzz\nCapBnd:\t\n", "\xff\xfe"])
def test_a_strange_proc_is_no_error(tmp_path: Path, text: str) -> None:
    assert ptrace_facts(proc=tmp_path) == PtraceFacts()
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(text, encoding="latin-1")
    assert ptrace_facts(proc=tmp_path).effective is False
