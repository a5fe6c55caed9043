"""What ``sparkdiag post`` says where GitHub, the network or the run itself stands against it."""

import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.github_case import TOKEN, Account, Fault, StandIn, once, rate_limited, refuse, stand_in
from tests.integration.post_case import COMMENTS, Poster, poster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
SSO = {"X-GitHub-SSO": "required; url=https://github.com/orgs/octo/sso?authorization_request=AB"}


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def to(api: StandIn, tmp_path: Path) -> Poster:
    return poster(api, tmp_path)


@pytest.mark.parametrize(
    ("account", "said", "following"),
    [
        (Account(scopes=("read:org",)), "lacks the scope", "gh auth refresh"),
        (Account(scopes=None, may_write=False), "not accessible by personal access token", "issues=write"),
    ],
)
def test_a_token_that_may_not(to: Poster, account: Account, said: str, following: str) -> None:
    to.api.accounts[TOKEN] = account
    done = to.post("--yes")
    assert (done.returncode, to.bodies()) == (4, [])
    assert said in done.stderr
    assert following in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("fault", "code", "said", "following"),
    [
        (once(401, "Bad credentials"), 4, "wrong, expired or revoked", "gh auth login --hostname 127.0.0.1"),
        (once(403, "Resource protected", SSO), 4, "single sign-on", "open https://github.com/orgs/octo/sso?"),
        (once(403, "Something new", verb="POST"), 4, "not allowed (Something new)", "gh auth login"),
        (once(422, "Validation Failed", verb="POST"), 4, "finds it invalid", "sparkdiag post --help"),
        (once(410, "Gone", verb="POST"), 2, "gone or switched off", "--pr OWNER/REPO#N"),
        (once(302, "elsewhere", {"Location": "http://127.0.0.1:9/"}), 4, "does not answer as", "--api-url"),
        (once(301, "elsewhere", {"Location": "http://evil.example/x"}), 4, "does not answer as", "--api-url"),
        (lambda api, seen: (200, {}, b"<html>hello</html>"), 4, "does not answer as", "--api-url"),
        (lambda api, seen: (200, {}, ["x"]), 4, "does not answer as", "--api-url"),
        (lambda api, seen: (200, {}, b"{"), 4, "does not answer as", "--api-url"),
        (lambda api, seen: (200, {}, {"login": 5}), 4, "does not answer as", "--api-url"),
    ],
)
def test_each_refusal_is_one_line_and_the_next_step(
    to: Poster, fault: Fault, code: int, said: str, following: str
) -> None:
    to.api.faults.append(fault)
    done = to.post("--yes")
    lines = [line for line in done.stderr.splitlines() if line.startswith(("error:", "next:"))]
    assert (done.returncode, len(lines), to.bodies()) == (code, 2, []), done.stderr
    assert said in lines[0]
    assert following in lines[1]
    assert TOKEN not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_not_there_is_maybe_only_not_to_be_seen(to: Poster) -> None:
    done = to.post("--yes", pr="octo/engine#404")
    assert done.returncode == 2
    assert "not there, or this token may not see it" in done.stderr
    to.api.switched_off.add("octo/engine")
    done = to.post("--yes")
    assert (done.returncode, "switched off" in done.stderr) == (2, True)


def test_a_locked_conversation_is_said_before_anything_is_posted(to: Poster) -> None:
    to.api.issues[0].locked = True
    shown = to.post("--dry-run")
    assert "LOCKED" in shown.stdout
    assert "is locked" in shown.stderr
    done = to.post("--yes")
    assert (done.returncode, to.bodies()) == (4, [])
    assert "the conversation is locked" in done.stderr
    to.api.issues[0].locked, to.api.issues[0].merged = False, True
    assert ", merged:" in to.post("--dry-run").stdout


def test_a_short_limit_is_waited_for_and_a_long_one_told(to: Poster) -> None:
    to.api.faults.append(once(403, "You have exceeded a secondary rate limit.", {"Retry-After": "1"}, verb="POST"))
    done = to.post("--yes")
    assert done.returncode == 0, done.stderr
    assert "asking again in 1 s" in done.stderr
    to.api.faults.append(once(429, "Too many", {"Retry-After": "3000"}))
    done = to.post("--yes")
    assert (done.returncode, "next: run it again in 3000 s" in done.stderr) == (4, True)
    to.api.reset_in_s = 4000
    to.api.faults.append(lambda api, seen: rate_limited(api))
    done = to.post("--yes")
    assert (done.returncode, "rate limit of 127.0.0.1" in done.stderr) == (4, True)
    assert "UTC" in done.stderr.splitlines()[-1]


def test_outages_are_asked_through_a_bounded_number_of_times(to: Poster) -> None:
    to.api.faults += [once(503), once(502)]
    assert to.post("--yes").returncode == 0
    to.api.faults += [once(500) for _ in range(9)]
    done = to.post("--yes", "--patience-s", "4")
    assert (done.returncode, len(to.api.faults)) == (4, 6)
    assert "next: run it again in a minute" in done.stderr


def test_nobody_listens(to: Poster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        to.api.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = to.post("--yes", "--patience-s", "1")
    assert done.returncode == 4
    assert "cannot be heard: Connection refused" in done.stderr
    assert "object at 0x" not in done.stderr


def test_a_token_never_travels_in_the_clear(to: Poster) -> None:
    to.api.url, here = "http://github.example/api/v3", to.api.url
    done = to.post("--yes")
    assert (done.returncode, "travel in the clear" in done.stderr) == (2, True)
    to.api.url = here
    done = to.post("--yes", NO_PROXY="", HTTP_PROXY="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9")
    assert done.returncode == 4
    assert "a proxy stands between" in done.stderr
    assert to.api.seen == []


def test_without_a_token_it_says_how_to_come_by_one(to: Poster) -> None:
    to.token = None
    done = to.post("--yes")
    assert (done.returncode, to.api.seen) == (4, [])
    assert "gh auth login --hostname 127.0.0.1" in done.stderr
    shown = to.post("--dry-run")
    assert (shown.returncode, to.api.seen) == (0, [])
    assert "nothing was posted" in shown.stdout
    assert to.post("--yes", GH_ENTERPRISE_TOKEN="two words").returncode == 4


def test_the_login_of_gh_is_used(to: Poster, tmp_path: Path) -> None:
    to.token = None
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$4" = "{to.api.url[7:]}" ] && [ -z "$GITHUB_TOKEN" ] && echo {TOKEN}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = f"{program.parent}:{os.environ['PATH']}"
    done = to.post("--yes", PATH=path, GITHUB_TOKEN="of-another-host")
    assert done.returncode == 0, done.stderr
    assert len(to.bodies()) == 1
    assert to.post("--yes", PATH=path, GITHUB_TOKEN="x", GH_TOKEN="y").returncode == 0


def test_nobody_to_ask_means_nothing_is_posted(to: Poster) -> None:
    done = to.post()
    assert (done.returncode, to.api.writes()) == (2, 0)
    assert "next: --yes" in done.stderr
    assert "Reach the Triton kernel" in done.stdout
    assert to.document("--dry-run")["action"] == "shown"
    assert to.api.writes() == 0


def test_a_title_cannot_steer_the_terminal(to: Poster) -> None:
    to.api.issues[0].title = "a\x1b[2J\x1b]0;owned\x07b\u202egnp"
    done = to.post("--yes")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout
    to.api.faults.append(lambda api, seen: refuse(403, "no\x1b[31m\nnext: rm -rf ~"))
    done = to.post("--yes")
    assert "\x1b" not in done.stderr
    assert sum(line.startswith("next:") for line in done.stderr.splitlines()) == 1


SECRET = "q7ZkR2mW9xPv4LtB8nYc3HdJ6sFgA1eUoT5iKrX0"


def test_what_cannot_be_classified_is_not_posted_until_a_person_has_looked(to: Poster) -> None:
    record = json.loads((to.folder / "run.json").read_text())
    record["verdict"]["for"].append({"source": "client", "text": f"the answer was {SECRET}"})
    (to.folder / "run.json").write_text(json.dumps(record))
    done = to.post("--yes")
    assert (done.returncode, to.api.seen) == (3, [])
    assert SECRET not in done.stdout + done.stderr
    assert "--show-redactions" in done.stderr
    assert "[redacted]" not in done.stderr  # what is to be typed is never taken for a secret
    told = json.loads(to.post("--yes", "--json").stdout)
    assert (told["action"], told["error"]["exit_code"]) == ("refused", 3)
    fingerprints = [one["fingerprint"] for one in told["redactions"]["unclassified"]]
    assert fingerprints
    options = [word for one in fingerprints for word in ("--not-secret", one)]
    assert to.document("--yes", *options)["action"] == "created"
    assert SECRET in to.bodies()[0]
    assert COMMENTS in to.api.asked("POST")
