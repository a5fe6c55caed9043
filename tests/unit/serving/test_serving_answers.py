"""Whose answer /health was: the server's own tree, or somebody else's on the same port."""

import os
from typing import NamedTuple

import psutil
import pytest

from sparkdiag.serving import readiness


class Server(NamedTuple):
    tree_pids: frozenset[int]
    base_url: str = "http://127.0.0.1:9"


def test_a_tree_that_has_just_died_answered_nothing() -> None:
    assert not readiness._answers_itself(Server(frozenset({2**22 + 12345})))  # type: ignore[arg-type]


def test_a_living_tree_that_does_not_listen_there_answered_nothing() -> None:
    assert not readiness._answers_itself(Server(frozenset({os.getpid(), 2**22 + 12345})))  # type: ignore[arg-type]


def test_where_the_system_does_not_tell_the_answer_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(pid: int) -> None:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil, "Process", denied)
    assert readiness._answers_itself(Server(frozenset({1})))  # type: ignore[arg-type]
