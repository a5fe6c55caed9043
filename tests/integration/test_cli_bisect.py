"""The real command over a fake history: what it finds, prints and leaves."""

import json
from pathlib import Path

import pytest

from tests.integration.cli_bisect_case import BisectCase, Planned

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

HISTORY = (
    Planned("begin", "healthy"),
    Planned("say more"),
    Planned("route the prefill to the fallback (#4711)", "crawling"),
    Planned("note it"),
)


def test_it_finds_the_commit_and_says_so_on_the_terminal_in_the_report_and_in_the_list(tmp_path: Path) -> None:
    case = BisectCase(tmp_path, HISTORY)
    ended = case.run(*case.bisect_arguments("--no-controls"), limit_s=300)
    assert ended.code == 0, ended
    assert ended.out.startswith("found, a regression: "), ended.out
    assert f"{case.shas[2][:10]}" in ended.out
