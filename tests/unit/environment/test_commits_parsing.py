"""What git says about commits, read without trusting a byte of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.commits import ABSENT, MAX_SUBJECT, harmless_line, parse_commits, parse_differences
from sparkdiag.harmless.printable import hidden_characters

SHAS = [f"{digit:x}" * 40 for digit in range(1, 16)]
# No message that git reads holds a NUL, and it joins the lines of a subject.
SUBJECTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\n"), max_size=60)


def said_of(sha: str, *parents: str, at: str = "2026-06-16T04:20:25+08:00", subject: str = "s") -> bytes:
    return f"commit {' '.join((sha, *parents))}\n{at}\0{subject}\n".encode()


@given(st.lists(st.tuples(st.sampled_from(SHAS), st.lists(st.sampled_from(SHAS), max_size=3), SUBJECTS), max_size=6))
def test_every_commit_is_read_whatever_its_subject(told: list[tuple[str, list[str], str]]) -> None:
    said = b"".join(said_of(sha, *parents, subject=subject) for sha, parents, subject in told)
    read = list(parse_commits(said))
    assert [(commit.sha, commit.parents) for commit in read] == [
        (sha, tuple(dict.fromkeys(parents))) for sha, parents, _ in told
    ]
    assert not any(hidden_characters(commit.subject) for commit in read)
    assert all(commit.committed_at == "2026-06-16T04:20:25+08:00" for commit in read)


@pytest.mark.parametrize("subject", [f"commit {SHAS[3]}", f"x\0commit {SHAS[3]}", "", "\r", "\x1b]0;owned\x07"])
def test_a_subject_cannot_pass_for_a_commit(subject: str) -> None:
    read = list(parse_commits(said_of(SHAS[0], subject=subject) + said_of(SHAS[1], SHAS[0])))
    assert [commit.sha for commit in read] == SHAS[:2]
    assert read[1].parents == (SHAS[0],)


@given(st.binary(max_size=300))
def test_anything_else_is_no_commit(said: bytes) -> None:
    assert all(len(commit.sha) == 40 for commit in parse_commits(said))


def test_a_date_that_is_none_is_left_out() -> None:
    assert [commit.committed_at for commit in parse_commits(said_of(SHAS[0], at="\x1b[2Jtoday"))] == [""]


def test_a_subject_is_cut_and_tells_no_secret() -> None:
    assert len(harmless_line(b"x" * 10_000)) == MAX_SUBJECT
    assert "hf_" not in harmless_line(b"use token hf_" + b"aB3" * 12)


def entry(mode: str, blob: str, status: str, path: str) -> bytes:
    old = "000000" if status == "A" else "100644"
    return f":{old} {mode} {SHAS[0]} {blob} {status}\0{path}\0".encode()


def test_differences_by_commit_and_path() -> None:
    said = (
        f"{SHAS[1]}\0".encode()
        + entry("100644", SHAS[5], "M", "vllm/a.py")
        + entry("000000", "0" * 40, "D", "vllm/b.py")
        + f"{SHAS[2]}\0".encode()
        + entry("120000", SHAS[6], "A", ":odd\nname")
    )
    assert parse_differences(said) == {
        SHAS[1]: {"vllm/a.py": (b"100644", SHAS[5]), "vllm/b.py": (b"000000", ABSENT)},
        SHAS[2]: {":odd\nname": (b"120000", SHAS[6])},
    }


@pytest.mark.parametrize("order", [1, -1])
def test_a_file_that_became_a_folder_is_there(order: int) -> None:
    told = [entry("000000", "0" * 40, "D", "vllm/a"), entry("040000", SHAS[7], "A", "vllm/a")][::order]
    said = f"{SHAS[1]}\0".encode() + b"".join(told)
    assert parse_differences(said) == {SHAS[1]: {"vllm/a": (b"040000", SHAS[7])}}
