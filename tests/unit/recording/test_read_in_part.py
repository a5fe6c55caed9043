"""Runs too long to be read whole: an even part of them is read, and the run says so."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.recording import points, read, samples, stack_lines
from sparkdiag.recording.stack_lines import StackLines

LOOKS = 900
HEADER = '{"schema":1,"stream":"%s"}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Looks at two processes in turn, each with new locals, and a reading a second; 18 numberings."""
    monkeypatch.setattr(stack_lines, "LINES_A_NUMBERING", 50)
    lines = StackLines()
    with (tmp_path / "stacks.jsonl").open("w") as file:
        file.write(HEADER % "stacks")
        for number in range(LOOKS):
            frames = tuple(
                Frame(function=name, filename="a.py", line=1, locals={"k": number if name == "f" else 0})
                for name in "fg"
            )
            look = StackSample(
                pid=1 + number % 2, started_s=number, ended_s=number + 0.5, threads=(ThreadStack(frames=frames),)
            )
            file.write(json.dumps(lines.line(look.model_dump(mode="json")), separators=(",", ":")) + "\n")
    with (tmp_path / "timeline.jsonl").open("w") as file:
        file.write(HEADER % "timeline")
        file.writelines(f'{{"event":"metrics","t_s":{second},"kv_cache_usage":0.5}}\n' for second in range(LOOKS))
        file.write('{"event":"phase","t_s":5,"phase":"launching"}\n')
    (tmp_path / "client.jsonl").write_text(HEADER % "client")
    return tmp_path


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples.read_samples, "__kwdefaults__", {"most": 100})
    monkeypatch.setattr(points.read_points, "__kwdefaults__", {"most": 100})


def test_a_run_within_the_bounds_is_read_whole(folder: Path) -> None:
    stored = read.read_run(folder)
    assert len(stored.observation.samples) == len(stored.observation.metrics) == LOOKS
    assert stored.observation.in_part is None


@pytest.mark.usefixtures("bounded")
def test_of_a_longer_one_an_even_part_of_each_process_is_read(folder: Path) -> None:
    stored = read.read_run(folder)
    observation = stored.observation
    assert observation.in_part is not None
    assert observation.in_part.keeps_from_judging
    assert (observation.in_part.samples, observation.in_part.metrics) == (LOOKS, LOOKS)
    of_last = [one for one in observation.samples if one.started_s >= LOOKS - 50]
    before = [one for one in observation.samples if one.started_s < LOOKS - 50]
    assert len(of_last) == 50, "how it ended is read whole"
    assert 80 <= len(before) <= 120
    for pid in (1, 2):
        starts = [one.started_s for one in before if one.pid == pid]
        assert 25 <= len(starts) <= 65
        everywhere = [one.started_s for one in observation.samples_of(pid)]
        assert max(later - earlier for earlier, later in pairwise([0, *everywhere, LOOKS])) <= 110, "two numberings"
    assert all(one.threads[0].frames[0].locals == {"k": one.started_s} for one in observation.samples)
    assert observation.sampling.taken == len(observation.samples)
    assert any(f"{len(observation.samples)} of {LOOKS} samples" in problem for problem in stored.problems)
    assert len(stored.phases) == 1


@pytest.mark.usefixtures("bounded")
def test_a_line_that_cannot_be_read_makes_no_other_sample_a_wrong_one(folder: Path) -> None:
    path = folder / "stacks.jsonl"
    lines = path.read_text().splitlines()
    lines[300] = lines[300][:40]
    path.write_text("\n".join(lines) + "\n")
    observation = read.read_run(folder).observation
    assert observation.samples
    assert all(one.threads[0].frames[0].locals == {"k": one.started_s} for one in observation.samples)


@pytest.mark.usefixtures("bounded")
def test_of_an_older_runs_whole_lines_an_even_part_is_read(folder: Path) -> None:
    looks = [StackSample(pid=1 + number % 4, started_s=number, ended_s=number + 0.5) for number in range(4000)]
    whole = "\n".join(look.model_dump_json() for look in looks)
    (folder / "stacks.jsonl").write_text(f"{HEADER % 'stacks'}{whole}\n")
    observation = read.read_run(folder).observation
    assert observation.in_part is not None
    assert observation.in_part.samples == 4000
    assert 80 <= len(observation.samples) <= 120
    for pid in (1, 2, 3, 4):
        starts = [one.started_s for one in observation.samples_of(pid)]
        assert 15 <= len(starts) <= 35
        assert max(later - earlier for earlier, later in pairwise([0, *starts, 4000])) <= 400


@pytest.mark.usefixtures("bounded")
def test_a_numbering_without_end_is_not_read_without_end(folder: Path) -> None:
    line = '{"process":1,"started_s":1,"ended_s":2,"source":"py-spy","error":null,"late":false,"stack":[]%s}\n'
    (folder / "stacks.jsonl").write_text((HEADER % "stacks") + line % ',"fresh":true' + line % "" * 9000)
    assert len(read.read_run(folder).observation.samples) <= 2 * samples.LINES_A_NUMBERING + 100
