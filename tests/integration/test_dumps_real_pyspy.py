"""What real py-spy prints of a real process, in every mode, is read the same."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import DumpThread, ProcessDump
from sparkdiag.observing.pyspy import find_pyspy

pytestmark = pytest.mark.integration

CODE = """
import sys, threading, time

class Worker:
    def execute_model(self, num_rows, prompt, use_cache):
        head_start, k_start, done = 49, 5121, False
        lines = "first\\nrun (other.py:1)\\n    step: 3"
        (lambda seconds=600: self.wait(seconds))()

    def wait(self, seconds_left):
        sys.stdout.write("."); sys.stdout.flush()
        time.sleep(600)

def helper():
    while True:
        time.sleep(600)

threading.Thread(target=helper, name='odd "name" (of): it', daemon=True).start()
threading.Thread(target=helper, daemon=True).start()
Worker().execute_model(3276, "my secret prompt", True)
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    script = tmp_path_factory.mktemp("dumps") / "serve_it.py"
    script.write_text(textwrap.dedent(CODE))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1), "the child ended before it was ready"
    yield process.pid
    process.kill()
    process.communicate()


def py_spy(*arguments: str) -> str:
    binary = find_pyspy()
    assert binary is not None
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, timeout=120, check=False)
    if "ermission denied" in done.stderr.lower():
        pytest.skip("this machine does not let py-spy look")
    assert done.returncode == 0, done.stderr
    return done.stdout


def only(text: str) -> ProcessDump:
    pasted = read_dumps(text, source="py-spy")
    assert pasted.refused is None, text
    (look,) = pasted.looks
    return look


def comparable(thread: DumpThread) -> DumpThread:
    """Without what one of the two forms does not print."""
    return thread.model_copy(update={"thread_id": None})


def in_order(look: ProcessDump) -> list[DumpThread]:
    return sorted(map(comparable, look.threads), key=lambda thread: thread.os_thread_id or 0)


@pytest.mark.parametrize("mode", [(), ("--locals",), ("--native",), ("--native", "--locals"), ("--nonblocking",)])
def test_text_and_json_are_read_the_same(child: int, mode: tuple[str, ...]) -> None:
    text = only(py_spy("dump", "--pid", str(child), *mode))
    document = only(py_spy("dump", "--json", "--pid", str(child), *mode))
    assert text.pid == document.pid == child
    assert in_order(text) == in_order(document)
    assert [thread.name for thread in in_order(text)][:2] == ["MainThread", 'odd "name" (of): it']
    assert text.python == ".".join(map(str, sys.version_info[:3]))
    assert "serve_it.py" in (text.title or "")
    assert text.notes == ()


def test_locals_are_the_integers_and_booleans_that_the_process_has(child: int) -> None:
    look = only(py_spy("dump", "--locals", "--pid", str(child)))
    main = look.main_thread
    assert main is not None
    frame = next(frame for frame in main.frames if frame.name == "execute_model")
    assert frame.locals == {"num_rows": 3276, "use_cache": True, "head_start": 49, "k_start": 5121, "done": False}
    assert "secret" not in look.model_dump_json()
    assert [frame.name for frame in main.frames] == ["wait", "<lambda>", "execute_model", "<module>"]


def test_subprocesses_and_several_dumps_in_a_row(child: int) -> None:
    one = py_spy("dump", "--subprocesses", "--pid", str(child))
    pasted = read_dumps(f"10:00:00\n{one}\n10:00:30\n{one}", source="loop")
    assert [look.pid for look in pasted.looks] == [child, child]
    assert [look.at_s for look in pasted.looks] == [36000, 36030]


@pytest.mark.parametrize("mode", [(), ("--threads",), ("--threads", "--subprocesses"), ("--native",)])
def test_recordings(child: int, tmp_path: Path, mode: tuple[str, ...]) -> None:
    out = tmp_path / "recording.txt"
    py_spy(
        "record", "-f", "raw", "-o", str(out), "--duration", "1", "--rate", "20", "--idle", "--pid", str(child), *mode
    )
    look = only(out.read_text())
    assert look.tool == "py-spy raw"
    counted = {tuple(frame.name for frame in thread.frames if not frame.native): thread for thread in look.threads}
    main = counted["wait", "<lambda>", "execute_model", "<module>"]
    assert main.samples > 1
    if "--threads" in mode:
        assert (main.name, main.os_thread_id) == ("MainThread", child)
    if "--subprocesses" in mode:
        assert look.pid == child


def test_json_pretty_or_in_one_line_is_the_same(child: int) -> None:
    text = py_spy("dump", "--json", "--pid", str(child))
    assert only(json.dumps(json.loads(text))) == only(text)
