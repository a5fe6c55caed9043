"""A run on disk, and ``sparkdiag post`` as somebody types it, against the stand-in for GitHub."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.github_case import TOKEN, StandIn
from tests.unit.reporting.sample_runs import CRAWLING
from tests.unit.reporting.test_report_commands import on_disk

LIMIT_S = 60
PR = "octo/engine#5"
COMMENTS = "/repos/octo/engine/issues/5/comments"


@dataclass(kw_only=True)
class Poster:
    """One machine, one run, one API."""

    api: StandIn
    home: Path
    folder: Path
    token: str | None = TOKEN

    def environ(self) -> dict[str, str]:
        """What a command gets: a home of its own, no ``gh``, the token by its usual name."""
        own = {
            "HOME": str(self.home),
            "PATH": str(Path(sys.executable).parent),
            "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # the tree under test, where it is not the installed one
        }
        return own | ({"GH_ENTERPRISE_TOKEN": self.token} if self.token else {})

    def words(self, *words: str, pr: str | None = PR) -> list[str]:
        """The command line."""
        where = ["--pr", pr] if pr is not None else []
        return ["post", str(self.folder), *where, "--api-url", self.api.url, *words]

    def post(self, *words: str, pr: str | None = PR, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run it, with nobody to ask."""
        return subprocess.run(
            [sys.executable, "-m", "sparkdiag.cli.app", *self.words(*words, pr=pr)],
            check=False,
            cwd=self.home,
            env=self.environ() | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def document(self, *words: str, pr: str | None = PR) -> dict[str, Any]:
        """What ``--json`` prints of a command that does well."""
        done = self.post(*words, "--json", pr=pr)
        assert done.returncode == 0, done.stderr
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    def bodies(self) -> list[str]:
        """Every comment there is."""
        return [one.body for one in self.api.comments]


def poster(api: StandIn, tmp_path: Path) -> Poster:
    """The sample run, and a home that nobody has used."""
    home = tmp_path / "home"
    home.mkdir()
    return Poster(api=api, home=home, folder=on_disk(tmp_path / "runs", CRAWLING))
