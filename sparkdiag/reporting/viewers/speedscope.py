"""Stacks in the file format of speedscope: one sampled profile a process. Pure.

https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources; many other viewers read it too.
"""

import json
from typing import Any

from sparkdiag.evidence.stacks import Frame
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.phrases import headline
from sparkdiag.reporting.viewers.looks import (
    ProcessLooks,
    file_of,
    looks_of,
    process_label,
    run_name,
    shown,
    suspect_first,
    suspect_of,
)

SCHEMA_URL = "https://www.speedscope.app/file-format-schema.json"
MOST_LOOKS = 50_000
"""Of all runs together; beyond, they are thinned evenly and the profile's name says so."""
_MOST_FRAMES = 200
"""Of one stack. The innermost ones are kept."""


class _Frames:
    """The table that all profiles share: one entry a function, file and line."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def stack(self, frames: tuple[Frame, ...]) -> list[int]:
        """Numbers of the frames, outermost first."""
        return [self._number(frame) for frame in reversed(frames[:_MOST_FRAMES])]

    def _number(self, frame: Frame) -> int:
        key = (frame.function, frame.short_filename or frame.filename, frame.line)
        if key not in self._numbers:
            self._numbers[key] = len(self.table)
            entry: dict[str, Any] = {"name": shown(frame.function) or "?", "file": file_of(frame)}
            if 0 < frame.line < 2**31:
                entry["line"] = frame.line
            self.table.append(entry)
        return self._numbers[key]


def speedscope_json(*runs: StoredRun) -> str:
    """The document as text, ASCII only. With several runs each profile's name begins with its run folder's."""
    frames = _Frames()
    profiles: list[dict[str, Any]] = []
    active: int | None = None
    for run in runs:
        looks = looks_of(run, most=MOST_LOOKS // len(runs))
        if active is None and looks:
            active = len(profiles) + suspect_first(looks, suspect_of(run))
        prefix = f"{run_name(run)}: " if len(runs) > 1 else ""
        profiles += [_profile(one, frames, name=prefix + process_label(one.process)) for one in looks]
    document = {
        "$schema": SCHEMA_URL,
        "exporter": f"sparkdiag {shown(runs[0].record.sparkdiag_version)}" if runs else "sparkdiag",
        "name": "; ".join(f"{run_name(run)}: {shown(headline(run))}" for run in runs),
        "activeProfileIndex": active or 0,
        "shared": {"frames": frames.table},
        "profiles": profiles or [_nothing()],
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _profile(one: ProcessLooks, frames: _Frames, *, name: str) -> dict[str, Any]:
    """In whole microseconds on the way, so that weights add up to the profile's length exactly as far as JSON shows."""
    samples: list[list[int]] = []
    weights: list[int] = []
    begin = at = _micro(one.looks[0].from_s)
    for look in one.looks:
        begins, ends = _micro(look.from_s), _micro(look.to_s)
        if begins > at:
            samples.append([])  # nobody looked: a gap, so that what comes after stays in its place
            weights.append(begins - at)
        if ends > begins:
            samples.append(frames.stack(look.thread.frames))
            weights.append(ends - begins)
            at = ends
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": begin / 1e6,
        "endValue": at / 1e6,
        "samples": samples,
        "weights": [weight / 1e6 for weight in weights],
    }


def _nothing() -> dict[str, Any]:
    """speedscope shows no page for a file without a profile; this one says why it is empty."""
    return {
        "type": "sampled",
        "name": "no usable stack was kept",
        "unit": "seconds",
        "startValue": 0,
        "endValue": 0,
        "samples": [],
        "weights": [],
    }


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)
