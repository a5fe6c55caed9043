"""A disk without room under the output: one line, no traceback, and not called a defect."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here"),
]


@pytest.mark.parametrize("words", [("scenario", "list"), ("scenario", "show", "lab"), ("--version",)])
def test_output_that_finds_no_room_is_one_clear_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "sparkdiag", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert ran.returncode == 4, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "No space left on device" in ran.stderr.splitlines()[0]
