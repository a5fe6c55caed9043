"""Event lines split anywhere, and addresses that may be talked to."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.driving.address import checked_base_url
from sparkdiag.driving.sse import EventLines, StreamFault
from sparkdiag.errors import UsageError

STREAM = 'data: {"text": "ä"}\r\n\r\n: ping\n\nevent: x\ndata:[DONE]\n\n'.encode()


@given(cuts=st.lists(st.integers(0, len(STREAM))))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    lines = EventLines()
    places = [0, *sorted(cuts), len(STREAM)]
    got = [text for start, stop in pairwise(places) for text in lines.feed(STREAM[start:stop])]
    assert got == ['{"text": "ä"}', "[DONE]"]


@given(st.binary(max_size=200))
def test_any_bytes_give_events_or_a_stream_fault(data: bytes) -> None:
    lines = EventLines()
    try:
        assert all(isinstance(text, str) for text in lines.feed(data + b"\n"))
    except StreamFault as fault:
        assert str(fault).isprintable()


def test_an_endless_line_is_refused_before_it_fills_the_memory() -> None:
    lines = EventLines()
    with pytest.raises(StreamFault, match="longer"):
        for _ in range(40):
            lines.feed(b"x" * 65_536)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.9.9.9:8000/", "http://127.9.9.9:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://[::ffff:127.0.0.1]:1/v1/", "http://[::ffff:127.0.0.1]:1"),
        ("https://LOCALHOST/prefix", "https://LOCALHOST/prefix"),
    ],
)
def test_loopback_addresses_are_taken(url: str, base: str) -> None:
    assert checked_base_url(url, allow_remote=False) == base


@pytest.mark.parametrize(
    "url",
    [
        "http://192.168.0.5:8000",
        "http://example.com",
        "http://127.0.0.1.example.com",
        "http://0.0.0.0:80",
        "http://[::]:1",
    ],
)
def test_other_addresses_need_to_be_allowed_and_are_named(url: str) -> None:
    with pytest.raises(UsageError, match="is not this machine") as caught:
        checked_base_url(url, allow_remote=False)
    assert url.removeprefix("http://").strip("[]").split(":")[0] in caught.value.message
    assert checked_base_url(url, allow_remote=True) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999999",
        "\x1b[31m",
        "http://127.0.0.1/\x1b[31m",
        "http://127.0.0.1/a b",
    ],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_base_url(url, allow_remote=True)
    assert caught.value.message.isprintable()


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        checked_base_url("http://me:hunter2@127.0.0.1:8000", allow_remote=True)
    assert "hunter2" not in caught.value.message
