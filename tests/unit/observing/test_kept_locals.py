"""What is kept of a frame's locals, by whichever way it comes: integers and booleans of a size, and named text."""

import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.dump_json import KEPT_TEXT_CHARACTERS, parse_dump
from sparkdiag.observing.inprocess import parse_line
from sparkdiag.probe.locate import package_folder

CARD, KEY = 4929123412341234, int("9" * 40)
TOKEN = "hf_abcdefgh1234567890abcdefgh"
KEPT = frozenset({"k_cache_prefix"})
EXPECTED = {"k_start": 7, "clean_logits": False, "k_cache_prefix": "layer.3 [redacted]"}
VALUES: dict[str, Any] = {
    "k_start": 7,
    "clean_logits": False,
    "card_number": CARD,
    "big_key": KEY,
    "password": 123456,
    "text": "my prompt",
    "raw": b"raw",
    "held": {"api_key": "s3"},
    "listed": ["s4"],
    "ratio": 1.5,
    "k_cache_prefix": f"layer.3 {TOKEN}",
}


def by_pyspy(values: dict[str, Any]) -> StackSample:
    shown = [{"name": name, "repr": json.dumps(v) if isinstance(v, str) else repr(v)} for name, v in values.items()]
    dump = json.dumps([{"frames": [{"name": "f", "filename": "f.py", "line": 1, "locals": shown}]}])
    return parse_dump(dump, pid=1, started_s=0, ended_s=1, kept_names=KEPT)


def by_probe_line(values: dict[str, Any]) -> StackSample:
    plain = {name: v for name, v in values.items() if isinstance(v, int | float | str)}
    frame = {"function": "f", "filename": "f.py", "line": 1, "locals": plain}
    line = {"started_monotonic_s": 0, "ended_monotonic_s": 1, "threads": [{"frames": [frame]}]}
    sample = parse_line(json.dumps(line), pid=1, clock_offset_s=0, kept_names=KEPT)
    assert sample is not None
    return sample


@pytest.mark.parametrize("way", [by_pyspy, by_probe_line])
def test_only_small_numbers_and_the_named_text_are_kept(way: Any) -> None:
    sample = way(VALUES)
    assert sample.threads[0].frames[0].locals == EXPECTED
    long = way({"k_cache_prefix": "ab " * 1000}).threads[0].frames[0].locals["k_cache_prefix"]
    assert len(long) == KEPT_TEXT_CHARACTERS


def test_the_sampler_inside_the_server_writes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package_folder()))
    sampler_type: Any = importlib.import_module("sparkdiag_probe.stacks").Sampler

    class Sly(int):
        """Its comparison would be code of the server's, run by the probe."""

        def __lt__(self, other: object) -> bool:
            raise AssertionError("the probe ran it")

    ready, leave = threading.Event(), threading.Event()

    def suspect() -> None:
        k_start, clean_logits, card_number, big_key = 7, False, CARD, KEY  # noqa: F841
        text, held, sly = "my prompt", {"api_key": "s3"}, Sly(5)  # noqa: F841
        k_cache_prefix = "layer.3"  # noqa: F841
        ready.set()
        leave.wait(30)

    thread = threading.Thread(target=suspect)
    thread.start()
    try:
        assert ready.wait(30)
        sampler = sampler_type(str(tmp_path), kept_locals=KEPT, functions=frozenset({"suspect"}))
        assert sampler.sample()
    finally:
        leave.set()
        thread.join()
    (path,) = tmp_path.glob("stacks-*.jsonl")
    frames = [frame for one in json.loads(path.read_text())["threads"] for frame in one["frames"]]
    (found,) = (frame for frame in frames if frame["function"].endswith("suspect"))
    assert found["locals"] == {"k_start": 7, "clean_logits": False, "k_cache_prefix": "layer.3"}
