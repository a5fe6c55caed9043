"""The lab's git history: generated from package data, with the same commit ids on every machine.

The laboratory under ``source/`` is one tree and the few older versions of its files; ``source/history.toml`` tells in
which order they came. Git gets them as one ``fast-import`` stream: no index, work tree, hook, filter or user setting
takes part, so author, dates and contents alone decide the ids.
"""

import hashlib
import io
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

# Where no git is installed this import would fail; with it, the call that needs git says what is missing.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

import git
from git.exc import GitCommandError

from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.needed import need_git

DEFAULT_REVISION = "incident"
"""The tag that stands for no revision asked."""
SUSPECT_COMMIT = "e14bbcf24266a5f9979dbb9f19a61d78a894f0c3"
"""Tag ``fused``: where the fused fast path came in, the twin of the incident's suspect commit."""
FIX_COMMIT = "1cea6e71543ac04e6b2a45e871d339bddab42507"
"""Tag ``gate-dropped``: where the gate on clean_logits went."""
MAIN_COMMIT = "901682905c5c9ccec87d9d34c3e7e2b6407d7b85"
"""The end of the history; a copy whose ``main`` is anything else is not the lab's."""

_SOURCE = Path(__file__).parent / "source"
_HOUR_S = 3600
_STREAM_FORMAT = b"1\n"
"""Part of the key: raised when the same data is written differently."""


def _isolated(repo_path: Path) -> dict[str, str]:
    """Settings under which git sees this repository and nothing of the user's or the caller's."""
    return {
        "GIT_DIR": str(repo_path),
        "GIT_COMMON_DIR": str(repo_path),
        "GIT_OBJECT_DIRECTORY": str(repo_path / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_INDEX_FILE": str(repo_path / "index"),
        "GIT_NAMESPACE": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_TEMPLATE_DIR": "",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


@cache
def commit_stream() -> bytes:
    """The whole history as input of ``git fast-import``. Pure: package data in, bytes out."""
    plan = tomllib.loads((_SOURCE / "history.toml").read_text(encoding="utf-8"))
    stream = io.BytesIO()
    marks: dict[str, int] = {}
    for mark, commit in enumerate(plan["commit"], start=1):
        parents = [marks[name] for name in commit["parents"]] if "parents" in commit else [mark - 1] * (mark > 1)
        _write_commit(stream, commit, mark=mark, parents=parents, plan=plan)
        marks[commit.get("name", f"#{mark}")] = mark
        if "tag" in commit:
            stream.write(f"reset refs/tags/{commit['tag']}\nfrom :{mark}\n\n".encode())
    stream.write(b"done\n")
    return stream.getvalue()


def _write_commit(
    stream: io.BytesIO, commit: Mapping[str, Any], *, mark: int, parents: list[int], plan: Mapping[str, Any]
) -> None:
    message = "\n\n".join(filter(None, (commit["subject"], commit.get("body", "").strip()))) + "\n"
    when = plan["began"] + mark * _HOUR_S
    stream.write(f"commit refs/heads/main\nmark :{mark}\n".encode())
    stream.write(f"author {plan['author']} {when} +0000\ncommitter {plan['author']} {when} +0000\n".encode())
    _write_data(stream, message.encode())
    for keyword, parent in zip(("from", *("merge",) * len(parents)), parents, strict=False):
        stream.write(f"{keyword} :{parent}\n".encode())
    for path, origin in sorted(commit["files"].items()):
        stream.write(f"M 100644 inline {path}\n".encode())
        _write_data(stream, _contents(path, origin))
    stream.write(b"\n")


def _contents(path: str, origin: str | Mapping[str, str]) -> bytes:
    if not isinstance(origin, str):
        return origin["text"].encode()
    return (_SOURCE / ("tree/" + path if origin == "tree" else origin)).read_bytes()


def _write_data(stream: io.BytesIO, data: bytes) -> None:
    stream.write(f"data {len(data)}\n".encode() + data + b"\n")


def ensure_lab_repo(folder: Path) -> Path:
    """The lab's (bare) repository under ``folder``, made if it is not there yet.

    Keyed by content and put in place by one rename, so that two processes may do it at once and an interrupted one
    leaves nothing that looks whole.

    Raises:
        EnvironmentFault: git is missing or failed, or the folder cannot be written.
    """
    key = hashlib.sha256(_STREAM_FORMAT + commit_stream()).hexdigest()[:12]
    target = folder / f"sparklab-{key}.git"
    if _is_whole(target):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".sparklab-", dir=folder, ignore_cleanup_errors=True) as temporary:
            made = Path(temporary) / "made.git"
            _generate(made)
            _put_in_place(made, target, aside=Path(temporary) / "damaged.git")
    except OSError as error:
        raise EnvironmentFault(
            f"the lab's repository could not be written to {folder}: {error.strerror or error}",
            remedy="choose a writable cache folder with XDG_CACHE_HOME",
        ) from error
    return target


def _put_in_place(made: Path, target: Path, *, aside: Path) -> None:
    """Rename into place. A copy that another process finished meanwhile is as good; a damaged one makes way."""
    if target.exists() and not _is_whole(target):
        target.rename(aside)
    try:
        made.rename(target)
    except OSError:
        if not _is_whole(target):
            raise


def _is_whole(path: Path) -> bool:
    """True when ``main`` is the commit it must be and git can read its tree to the last file."""
    if not (path / "HEAD").is_file():
        return False
    try:
        runner = _git(path)
        main = runner.rev_parse("--verify", "--quiet", "refs/heads/main^{commit}")
        return main == MAIN_COMMIT and all(_blob(runner, blob) is not None for _, blob in _blobs(runner, main))
    except (OSError, GitCommandError):
        return False


def _git(path: Path) -> git.Git:
    """Git on this repository alone. ``git.Repo`` would let the caller's GIT_* variables lead it elsewhere.

    Raises ``EnvironmentFault`` where there is no git.
    """
    need_git("for the lab's history")
    runner = git.Git(str(path))
    runner.update_environment(**_isolated(path))
    return runner


def _blobs(runner: git.Git, sha: str) -> Iterator[tuple[str, str]]:
    """(path, blob id) of every file of a commit."""
    for line in filter(None, runner.ls_tree("-r", "-z", sha).split("\0")):
        described, path = line.split("\t", 1)
        yield path, described.split()[2]


def _blob(runner: git.Git, blob: str) -> bytes:
    contents: bytes = runner.cat_file("blob", blob, stdout_as_string=False, strip_newline_in_stdout=False)
    return contents


def _generate(path: Path) -> None:
    path.mkdir()
    runner = _git(path)
    try:
        runner.init("--bare", "--quiet", "--template=", str(path))
        runner.symbolic_ref("HEAD", "refs/heads/main")
        with tempfile.TemporaryFile() as stream:
            stream.write(commit_stream())
            stream.seek(0)
            runner.execute(["git", "fast-import", "--quiet", "--done"], istream=stream)
    except GitCommandError as error:
        details = tuple(str(error.stderr).splitlines()[-5:])
        raise EnvironmentFault(
            "git could not write the lab's history", remedy="git --version", details=details
        ) from error


def resolve(repo: Path, rev: str | None) -> str:
    """The 40-digit id of a revision; of the scenario's default, ``incident``, for None.

    Raises:
        EnvironmentFault: git is missing.
        UsageError: no commit of that name; the details list the tags.
    """
    runner = _git(repo)
    try:
        wanted = (rev or DEFAULT_REVISION) + "^{commit}"
        return str(runner.rev_parse("--verify", "--quiet", "--end-of-options", wanted)).splitlines()[-1]
    except GitCommandError as error:
        tags = ", ".join(runner.tag("--list").split())
        raise UsageError(
            f"the lab has no revision {rev!r}",
            remedy=f"sparkdiag repro --rev {DEFAULT_REVISION}",
            details=(f"tags: {tags}", "branch: main"),
        ) from error


def export(repo: Path, sha: str, dest: Path) -> Path:
    """Write the tree at ``sha`` to ``dest``, byte for byte; ``dest`` then goes on PYTHONPATH.

    Raises:
        UsageError: no such commit.
    """
    full = resolve(repo, sha)
    runner = _git(repo)
    for name, blob in _blobs(runner, full):
        path = dest / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_blob(runner, blob))
    return dest
