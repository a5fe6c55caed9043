"""The real command over a fake history: what it finds, prints and leaves."""

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.integration.bisect_command_case import BisectCommandCase, Planned

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
LIMIT_S = 400
HOSTILE = "\x1b[2J@octocat #1 </details><script>x</script> ``` | rm -rf ~ (#4711)"
HISTORY = (
    Planned("begin", "healthy"),
    Planned("say more"),
    Planned(HOSTILE, "crawling"),
    Planned("note it"),
)
BROKEN = (
    Planned("begin", "healthy"),
    Planned("break the start", "crash-while-loading"),
    Planned(HOSTILE, "crawling"),
)


def test_it_finds_the_commit_and_every_way_to_see_it_agrees(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY)
    log = tmp_path / "bisect.log"
    ended = case.run(*case.bisect_arguments("--no-controls", "--export", str(log)), limit_s=LIMIT_S)
    culprit = case.shas[2]
    assert ended.code == 0, ended
    assert ended.out.startswith("found, a regression: The stall torch-fallback in _fp8_mqa_logits_torch (worker)")
    assert f"begins at {culprit[:10]}" in ended.out.splitlines()[0]
    assert "2 ends" in ended.err and "searching the clone" in ended.err.splitlines()[0]
    folder = case.bisection()

    page = case.run("report", str(folder)).out
    assert page == (folder / "report.md").read_text(encoding="utf-8")
    assert f"`{culprit[:10]}` (regression)" in page
    assert "+crawling" in page and "-healthy" in page
    tags = {token.content.strip() for token in MarkdownIt("gfm-like").parse(page) if token.type == "html_block"}
    assert all(tag.startswith(("<details>\n<summary>", "<details open>\n<summary>", "</details>")) for tag in tags), (
        tags
    )

    document = json.loads(case.run("report", str(folder), "--json").out)
    assert [one["sha"] for one in document["commits"]] == [culprit]
    assert document["commits"][0]["pull_request"] == 4711
    assert {trial["sha"] for trial in document["trials"]} == set(case.shas)
    assert document["trials"][2]["reused_from"] == case.shas[0], "the same watched files, the same result"

    (listed,) = json.loads(case.run("runs", "list", "--json").out)["runs"]
    assert (listed["kind"], listed["state"], listed["outcome"]) == ("bisection", "finished", "found")
    assert f"'{case.shas[-1]}' '{case.shas[0]}'" in log.read_text(encoding="utf-8")
    again = case.run(*case.bisect_arguments("--import", str(log), "--dry-run", "--json"))
    assert json.loads(again.out)["forecast"]["search_most"] == 0, again
    assert case.git("status", "--porcelain") == ""
    assert case.run("runs", "prune", "--keep", "0", "--yes").code == 0
    assert not folder.exists()


def test_what_skips_hide_is_told_as_candidates_in_one_json_document(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, BROKEN)
    ended = case.run(*case.bisect_arguments("--no-controls", "--json"), limit_s=LIMIT_S)
    assert ended.code == 3, ended
    document = json.loads(ended.out)
    assert (document["outcome"], document["direction"]) == ("candidates", "regression")
    assert [one["sha"] for one in document["commits"]] == case.shas[1:]
    (skipped,) = [trial for trial in document["trials"] if trial["mark"] == "skip"]
    assert (skipped["sha"], skipped["outcome"]) == (case.shas[1], "not-started")
    assert "fake: cannot load the model" in skipped["reason"]
    assert document["reason"]
    assert (Path(document["run_dir"]) / "report.md").is_file()


def test_ends_that_do_not_differ_are_told_with_the_lever(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY[:2])
    ended = case.run(*case.bisect_arguments("--no-controls"), limit_s=LIMIT_S)
    assert ended.code == 3, ended
    assert ended.out.startswith("inconclusive: ")
    assert "neither end has it (stall)" in ended.out
    assert "a larger --dcp, a longer --prompt-tokens, or a wider range" in ended.out


def test_a_dry_run_prints_plan_and_forecast_and_starts_nothing(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY)
    ended = case.run(*case.bisect_arguments("--dry-run"))
    assert ended.code == 0, ended
    assert "forecast:" in ended.out and "2 ends, 2 controls" in ended.out
    assert f'older end:    {case.shas[0][:10]} "begin"' in ended.out
    document = json.loads(case.run(*case.bisect_arguments("--dry-run", "--json")).out)
    assert (document["points"], document["old_end"]["sha"], document["new_end"]["sha"]) == (
        3,
        case.shas[0],
        case.shas[3],
    )
    assert document["forecast"]["ends"] == 2
    assert not case.runs.exists()
    assert not case.events_path.exists()


def test_the_smallest_value_that_stalls_is_found_by_the_same_search(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY[:1])
    venv = case.bisect_arguments()[4].removeprefix("existing:")
    asked = ("--scenario", str(case.scenario), "--env", f"existing:{venv}", "--out", str(case.runs), "--no-controls")
    mode = {"FAKE_VLLM_MODE": "crawling-with-dcp"}
    ended = case.run("bisect", *asked, "--axis", "dcp=1,2", "--json", limit_s=LIMIT_S, **mode)
    assert ended.code == 0, ended
    document = json.loads(ended.out)
    assert (document["axis"], document["direction"], document["dcp"]) == ("dcp", "regression", None)
    assert [(one["sha"], one["pull_request"]) for one in document["commits"]] == [("2", None)]
    assert "The smallest value with the stall" in (case.bisection() / "report.md").read_text(encoding="utf-8")
