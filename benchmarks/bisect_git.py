"""Real ``git bisect`` over simulated histories: made by ``git fast-import``, answered from what is simulated."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.simulation import Searched
from sparkdiag.evidence.bisection import Mark

TIMEOUT_S = 120
BEGAN_S = 1_700_000_000
NAMES: Mapping[Mark, str] = {"old": "good", "new": "bad", "skip": "skip"}
_FOUND = re.compile(r"^([0-9a-f]{40}) is the first bad commit", re.MULTILINE)
_LISTED = re.compile(r"^([0-9a-f]{40})$", re.MULTILINE)
_ONLY_SKIPPED = "only 'skip'ped commits left to test"
_NONE_LISTED = "No testable commit found"


class GitHistory:
    """A repository that holds a simulated history. Every commit changes ``other.txt``, those of ``touching`` also
    ``watched.txt``; a merge holds what both sides changed."""

    def __init__(self, folder: Path, history: History, *, touching: int = 0) -> None:
        """Raises ``subprocess.SubprocessError`` where git fails."""
        self.folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        self.git("init", "--quiet", "--initial-branch=main")
        marks = folder / "marks"
        self.git("fast-import", "--quiet", f"--export-marks={marks}", stdin=_stream(history, touching))
        lines = (line.split() for line in marks.read_text(encoding="ascii").splitlines())
        by_mark = {int(mark[1:]): sha for mark, sha in lines}
        self.shas = {commit.sha: by_mark[place + 1] for place, commit in enumerate(history.commits)}
        """Git's name of each commit."""

    def git(self, *words: str, stdin: bytes = b"", ok: Sequence[int] = (0,)) -> str:
        """What one git command prints. Raises ``subprocess.SubprocessError``."""
        child = subprocess.Popen(
            ("git", *words),
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, errors = child.communicate(stdin, timeout=TIMEOUT_S)
        except BaseException:  # git bisect is a script: its children would go on writing into the folder
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise
        if child.returncode not in ok:
            raise subprocess.CalledProcessError(child.returncode, ("git", *words), output, errors)
        return (output + errors).decode()

    def bisect(
        self, *, old: str, new: str, judge: Callable[[str], Mark], first_parent: bool = False, paths: Sequence[str] = ()
    ) -> Searched:
        """``git bisect`` from the ends to its answer: all by git's names. Without an answer where ``paths`` leave
        nothing to test. ``--no-checkout``: no working tree is written."""
        only = ("--first-parent",) if first_parent else ()
        said = self.git("bisect", "start", "--no-checkout", *only, new, old, "--", *paths, ok=(0, 2, 4))
        trials = skipped = 0
        while not (_FOUND.search(said) or _ONLY_SKIPPED in said or _NONE_LISTED in said):
            mark = judge((self.folder / ".git" / "BISECT_HEAD").read_text(encoding="ascii").strip())
            trials += 1
            skipped += mark == "skip"
            said = self.git("bisect", NAMES[mark], ok=(0, 2, 4))
        found = _FOUND.search(said)
        answer = (found[1],) if found else tuple(_LISTED.findall(said))
        return Searched(answer, trials, skipped)


def _stream(history: History, touching: int) -> bytes:
    """See git-fast-import(1). A file's content names the commits that changed it, so that lines of development that
    changed it apart differ, and their merge differs from both."""
    lines = ["reset refs/heads/main"]
    for place, commit in enumerate(history.commits):
        parents = [history.index[parent] + 1 for parent in history.parents_of(commit.sha)]
        changed = history.ancestors[place]
        lines += [
            "commit refs/heads/main",
            f"mark :{place + 1}",
            f"committer Nobody <nobody@example.org> {BEGAN_S + 60 * place} +0000",
            f"data {len(commit.sha)}",
            commit.sha,
            *(f"{'merge' if number else 'from'} :{parent}" for number, parent in enumerate(parents)),
            *_file("watched.txt", f"{changed & touching:x}"),
            *_file("other.txt", f"{place:x}"),
        ]
    return "\n".join([*lines, ""]).encode()


def _file(name: str, content: str) -> tuple[str, ...]:
    return (f"M 100644 inline {name}", f"data {len(content)}", content)
