"""What of a run's folder is posted: its mark tells nothing, the page is looked at whole, and only plain names go."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.cli.post_page import read_page, seen_as_one
from sparkdiag.cli.report_formats import Format, rendered
from sparkdiag.cli.report_subject import made_public, read_subject
from sparkdiag.evidence.redaction import Redactions
from sparkdiag.harmless.doubtful import fingerprint
from sparkdiag.recording.bisection import JOURNAL
from tests.unit.reporting.sample_bisections import FOUND
from tests.unit.reporting.sample_runs import CRAWLING, SUSPECT
from tests.unit.reporting.test_report_commands import on_disk

PRIVATE = ("/home/alice/models/x", "gpu07.corp.example", "10.9.8.7", "hunter2aa", "s3cr3t-of-ours")
NO_WORD = "q7ZkR2mW9xPv4LtB8nYc3HdJ6sFgA1eUoT5iKrX0"


def page_of(folder: Path, *accepted: str, with_files: bool = False) -> Any:
    return read_page(folder, not_secret=frozenset(accepted), with_files=with_files)


def changed(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    folder = on_disk(tmp_path / "runs", CRAWLING)
    record = json.loads((folder / "run.json").read_text())
    change(record)
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def set_words(record: dict[str, Any], *, name: str, words: list[str]) -> None:
    record[name] = words


@pytest.mark.parametrize("argv", ["command", "server_argv"])
def test_no_guess_at_a_private_value_can_be_tried_on_the_mark(tmp_path: Path, argv: str) -> None:
    words = ["vllm", "--model", "{}", "--api-key={}", "{}", "-o{}", "--master-addr", "{}"]
    folders = [
        changed(tmp_path / str(number), partial(set_words, name=argv, words=[word.format(value) for word in words]))
        for number, value in enumerate(PRIVATE)
    ]
    marks = {page_of(folder).run for folder in folders}
    assert len(marks) == 1
    moved = folders[0].rename(tmp_path / "alice")
    assert page_of(moved).run in marks
    (moved / "posted.json").write_text("{}")
    assert page_of(moved).run in marks


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(started_at="2026-05-26T08:15:03+00:00"),
        lambda record: record["server_argv"].append("--enforce-eager"),
    ],
)
def test_another_run_has_another_mark(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert page_of(changed(tmp_path / "b", change)).run != page_of(changed(tmp_path / "a", lambda record: None)).run


def bisection(tmp_path: Path, *, name: str, **first: object) -> Path:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    begun = {"event": "begun", "schema": 1, **first}
    (folder / JOURNAL).write_text(json.dumps(begun, separators=(",", ":")) + "\n")
    (folder / "bisection.json").write_text(FOUND.model_dump_json(by_alias=True))
    return folder


def test_a_bisections_mark_is_made_of_when_it_began(tmp_path: Path) -> None:
    name, at = "20260601T000000Z-bisect-lab-dcp2", "2026-06-01T00:00:01+00:00"
    marks = {
        page_of(bisection(tmp_path / value, name=name, at=at, command=["--repo", value], question={"a": value})).run
        for value in ("alice", "bob")
    }
    assert len(marks) == 1
    assert page_of(bisection(tmp_path / "c", name="renamed", at=at)).run in marks
    assert page_of(bisection(tmp_path / "d", name=name, at="2026-06-01T00:00:02+00:00")).run not in marks
    assert page_of(bisection(tmp_path / "e", name=name)).run.startswith("20260601T000000Z-")


@given(
    texts=st.lists(
        st.sampled_from(
            ["password=", "password:", "api_key:", "Authorization:", "@octocat", "fixes #1", "`", "```", "x"]
        ),
        max_size=6,
    )
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_finished_page_is_never_rewritten(tmp_path: Path, texts: list[str]) -> None:
    """A rule that takes a fence or a tick for a part of a secret would bring to life what stands behind it."""
    names = [{"text": text, "source": text} for text in texts]
    folder = changed(
        tmp_path / fingerprint(repr(texts)),
        lambda record: record.update(error="; ".join(texts), verdict={**record["verdict"], "for": names}),
    )
    shown, _ = made_public(read_subject([folder]), not_secret=frozenset())
    assert page_of(folder).markdown == rendered(shown, Format.MD)


def test_what_only_together_looks_private_is_asked_about() -> None:
    """Each text is harmless; beside each other, with the ticks between them, they look like a secret."""
    text = "harmless\nseen by `password=`, `@octocat`\n```\npassword:\n```\nmore\n"
    found = seen_as_one(text, name="the page", not_secret=frozenset()).unclassified
    assert found[0].where == "line 2 of the page"
    assert all(one.where.endswith("of the page") and "octocat" not in one.looks for one in found)
    accepted = frozenset(one.fingerprint for one in found)
    assert seen_as_one(text, name="the page", not_secret=accepted) == Redactions()
    assert seen_as_one("harmless\n", name="the page", not_secret=frozenset()) == Redactions()


def test_files_of_a_gist_are_looked_at_too(tmp_path: Path) -> None:
    plain = page_of(changed(tmp_path, lambda record: None), with_files=True)
    assert set(plain.files) == {"report.md", "samples.txt", "stacks.folded.txt"}
    assert plain.redactions.unclassified == ()


@pytest.mark.parametrize(
    ("function", "sent"),
    [("Worker.execute_model", True), (NO_WORD, False), (f"Worker.{NO_WORD}", False), ("[user].execute", True)],
)
def test_a_name_that_may_be_a_secret_is_not_searched_for(tmp_path: Path, function: str, sent: bool) -> None:
    folder = changed(tmp_path, lambda record: record["verdict"].update(function=function))
    page = page_of(folder)
    assert (function in page.functions) == sent
    accepted = [one.fingerprint for one in page.redactions.unclassified]
    assert function in page_of(folder, *accepted).functions


def test_names_are_those_of_the_public_run(tmp_path: Path) -> None:
    folder = changed(tmp_path, lambda record: record["verdict"].update(function="ghp_" + NO_WORD[:36]))
    assert not any("ghp_" in name for name in page_of(folder).functions)
    assert SUSPECT in page_of(on_disk(tmp_path / "other", CRAWLING)).functions
