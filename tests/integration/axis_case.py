"""Small git repositories written commit by commit: any subject, any parents, in one ``git fast-import``."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario, Suspect, WatchedFunction

LIMIT_S = 60


class Written(NamedTuple):
    """One commit to write; ``files`` are those that change, None for one that goes."""

    parents: Sequence[int] = ()
    files: Mapping[str, str | None] = {}
    subject: str = "change"


def git(folder: Path, *words: str, stdin: bytes | None = None) -> str:
    """What git says, run as a user would."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, input=stdin, check=True, capture_output=True, timeout=LIMIT_S
    )
    return done.stdout.decode().strip()


def write(folder: Path, commits: Sequence[Written]) -> list[str]:
    """A bare repository with these commits, the last of which is ``main``; their ids in the order given."""
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main", "--template=", ".")
    stream = bytearray()
    for mark, commit in enumerate(commits, start=1):
        if not commit.parents:
            stream += b"reset refs/heads/main\n\n"  # or it would follow the commit before it
        stream += f"commit refs/heads/main\nmark :{mark}\n".encode()
        stream += f"committer t <t@example.invalid> {1_770_000_000 + mark * 3600} +0000\n".encode()
        stream += _data(commit.subject)
        for word, parent in zip(("from", *["merge"] * len(commit.parents)), commit.parents, strict=False):
            stream += f"{word} :{parent + 1}\n".encode()
        for path, text in commit.files.items():
            stream += f"D {path}\n".encode() if text is None else f"M 644 inline {path}\n".encode() + _data(text)
    marks = folder / "written.marks"
    git(folder, "fast-import", "--quiet", "--force", f"--export-marks={marks}", stdin=bytes(stream))
    ids = dict(line.split() for line in marks.read_text().splitlines())
    return [ids[f":{mark}"] for mark in range(1, len(commits) + 1)]


def _data(text: str) -> bytes:
    content = text.encode(errors="surrogateescape")
    return f"data {len(content)}\n".encode() + content + b"\n"


def scenario_of(*, suspect: str | None = None, twins: tuple[str, ...] = (), paths: tuple[str, ...] = ()) -> Scenario:
    """The incident's scenario with other suspects: it watches ``vllm/indexer.py`` under two names."""
    watched = WatchedFunction(function="f", modules=("vllm.new.indexer", "vllm.indexer"))
    return load_scenario("sm12x-mqa-prefill").model_copy(
        update={"suspect": Suspect(commit=suspect, twins=twins, paths=paths), "watch": (watched,)}
    )


def line(count: int) -> list[Written]:
    """A straight history in which every third commit changes the watched file."""
    return [
        Written(
            parents=[place - 1] if place else [],
            files={"vllm/indexer.py": str(place)} if place % 3 == 0 else {"README": str(place)},
            subject=f"commit {place} (#{100 + place})",
        )
        for place in range(count)
    ]
