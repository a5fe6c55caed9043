"""A disk that is full, or refuses, while a run writes and while an environment is built."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.recording.listing import foreign_entries
from tests.integration.bad_case import BadCase

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
NAMESPACE = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
MOUNT = 'mount -t tmpfs -o size="$0" none "$1" && shift && exec "$@"'


@functools.cache
def no_namespace() -> bool:
    """Whether this machine refuses a private mount."""
    try:
        tried = subprocess.run(
            [*NAMESPACE, "sh", "-c", MOUNT, "64k", "/mnt", "true"], capture_output=True, timeout=30, check=False
        )
    except OSError:
        return True
    return tried.returncode != 0


def on_small_disk(folder: Path, *, size: str) -> tuple[str, ...]:
    """What runs a command with ``folder`` on a disk of its own; its exit status is the command's."""
    folder.mkdir(exist_ok=True)
    return (*NAMESPACE, "sh", "-c", MOUNT, size, str(folder))


LOOKED_AT = """
size="$0" folder="$1" kept="$2" python="$3"; shift 3
mount -t tmpfs -o size="$size" none "$folder"
(until grep -qs '"sent"' "$folder"/*/client.jsonl; do sleep 0.1; done
 exec dd if=/dev/zero of="$folder/anothers" bs=4k 2>"$kept.dd") &
filler=$!
"$@"
code=$?
kill $filler 2>/dev/null
"$python" -m sparkdiag runs list --out "$folder" --json >"$kept.json"
"$python" -m sparkdiag report "$folder"/*-dcp2 >"$kept.md"
stat -f -c '%f %b' "$folder" >"$kept.free"
cp -a "$folder" "$kept"
exit $code
"""


def on_filled_disk(folder: Path, *, size: str, kept: Path) -> tuple[str, ...]:
    """As ``on_small_disk``, and another program fills the disk up once the prompt was sent. What lies on it after the
    command is copied to ``kept``, beside what ``runs list`` and ``report`` say of it there."""
    folder.mkdir(exist_ok=True)
    return (*NAMESPACE, "sh", "-c", LOOKED_AT, size, str(folder), str(kept), sys.executable)


needs_namespace = pytest.mark.skipif(no_namespace(), reason="a private mount is not permitted here")


@needs_namespace
@pytest.mark.parametrize("size", ["48k", "56k"])
def test_a_run_on_a_full_disk_ends_with_its_verdict_and_says_what_is_missing(size: str, tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling")
    ended = case.run(*case.repro_arguments(), before=on_small_disk(case.runs, size=size))
    assert ended.code == 1, ended
    assert "The prefill is crawling in _fp8_mqa_logits_torch" in ended.out
    (line,) = (line for line in ended.err.splitlines() if line.startswith("not everything could be written"))
    assert "No space left on device" in line and "stacks.jsonl" in line


@needs_namespace
@pytest.mark.parametrize("size", ["256k", "2m"])
def test_a_run_keeps_its_verdict_and_report_on_a_disk_that_fills_up(size: str, tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling")
    kept = tmp_path / "kept"
    ended = case.run(*case.repro_arguments(), before=on_filled_disk(case.runs, size=size, kept=kept))
    assert ended.code == 1, ended
    assert "No space left on device" in (tmp_path / "kept.dd").read_text()
    (line,) = (line for line in ended.err.splitlines() if line.startswith("not everything could be written"))
    assert "stacks.jsonl: [Errno 28]" in line and "run.json" not in line and "report.md" not in line
    (folder,) = kept.glob("*-dcp2")
    record = json.loads((folder / "run.json").read_text())
    assert (record["status"], record["verdict"]["function"]) == ("finished", "_fp8_mqa_logits_torch")
    told = (folder / "report.md").read_text()
    assert told.startswith("## sparkdiag: ") and "_fp8_mqa_logits_torch" in told and told.endswith("\n")
    assert "_fp8_mqa_logits_torch" in (tmp_path / "kept.md").read_text()
    (listed,) = json.loads((tmp_path / "kept.json").read_text())["runs"]
    assert listed["state"] == "finished"
    assert foreign_entries((path.name, path.is_file()) for path in folder.iterdir()) == ()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert int((tmp_path / "kept.free").read_text().split()[0]) > 0  # the rest of the reserve


@needs_namespace
def test_a_server_that_says_more_than_the_disk_holds_goes_on(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling,chatty")
    (tmp_path / "chat").touch()
    ended = case.run(*case.repro_arguments(), before=on_small_disk(case.runs, size="1m"))
    assert ended.code == 1, ended
    assert "server.log is not whole: No space left on device" in ended.err
    assert case.events("api chatted")


@needs_namespace
def test_json_on_a_full_disk_is_one_document_with_the_verdict(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling")
    ended = case.run(*case.repro_arguments("--json"), before=on_small_disk(case.runs, size="48k"))
    assert ended.code == 1, ended
    document = json.loads(ended.out)
    assert document["verdict"]["outcome"] == "stalled"
    assert any("No space left on device" in problem for problem in document["problems"])


@needs_namespace
def test_no_room_for_a_run_folder_at_all_is_said_before_anything_starts(tmp_path: Path) -> None:
    case = BadCase(tmp_path)
    ended = case.run(*case.repro_arguments(), before=on_small_disk(case.runs, size="8k"))
    assert ended.code == 4, ended
    assert "cannot make a run folder" in ended.error and "No space left" in ended.error
    assert "--out DIR" in ended.next
    assert not case.events_path.exists()


def test_files_that_may_not_grow_end_no_run(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling")
    limited = ("sh", "-c", 'ulimit -f 16 && exec "$0" "$@"')  # 8 or 16 KiB a file, by shell
    ended = case.run(*case.repro_arguments(), before=limited)
    assert ended.code == 1, ended
    assert "not everything could be written" in ended.err and "File too large" in ended.err
    assert "_fp8_mqa_logits_torch" in ended.out
