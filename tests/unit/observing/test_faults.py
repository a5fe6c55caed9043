import pytest

from sparkdiag.observing.faults import classify_stderr, first_line

DENIED = """Error: Failed to get process executable name. Check that the process is running.

Caused by:
    0: Permission denied (os error 13)
    1: Permission denied (os error 13)
"""
PY_VERSION = """Error: Failed to copy Py_Version symbol

Caused by:
    Permission denied (os error 13)
"""
GONE = DENIED.replace("Permission denied (os error 13)", "No such file or directory (os error 2)")


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (DENIED, "permission"),
        (PY_VERSION, "permission"),
        ("Error: Operation not permitted (os error 1)", "permission"),
        (GONE, "no-such-process"),
        ("Error: No such process (os error 3)", "no-such-process"),
        ("Error: Failed to find python version from target process", "not-python"),
        ("Error: Failed to get stack traces\n\nCaused by:\n    Bad address (os error 14)", "torn"),
        ("Error: Bad address (os error 14)", "torn"),
        ("Error: No such file or directory (os error 2)", "other"),
        ("thread 'main' panicked (os error 131)", "other"),
        ("", "other"),
    ],
)
def test_each_failure_has_its_cause(stderr: str, cause: str) -> None:
    fault = classify_stderr(stderr, pid=42, exit_code=1)
    assert fault.cause == cause
    assert "42" in fault.line
    assert "\n" not in fault.line


def test_a_missing_permission_is_not_called_a_version_problem() -> None:
    fault = classify_stderr(PY_VERSION, pid=42, exit_code=1)
    assert "SYS_PTRACE" in fault.line
    assert fault.remedy is not None
    assert "--cap-add SYS_PTRACE" in fault.remedy


def test_the_quoted_line_is_clean_and_short() -> None:
    assert first_line("\n  \n\x1b[31mError: x" + "y" * 500).startswith("\\x1b[31mError: xy")
    assert len(first_line("y" * 500)) == 200
    assert "\x1b" not in classify_stderr("\x1b]0;t\x07", pid=1, exit_code=None).line
