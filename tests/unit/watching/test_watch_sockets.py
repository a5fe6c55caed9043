"""The kernel's socket tables, as text."""

import socket
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.watching.sockets import Listener, answers_at, listeners_in

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(address: str, port: int, *, state: str = "0A", inode: int = 77) -> str:
    queues = "00000000:00000000 00:00000000 00000000"
    return f"   0: {address}:{port:04X} 00000000:0000 {state} {queues} 0 0 {inode} 1 x 100\n"


def as_the_kernel_writes(address: str) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    words = [packed[place : place + 4] for place in range(0, len(packed), 4)]
    order = "<I" if sys.byteorder == "little" else ">I"
    return "".join(f"{struct.unpack(order, word)[0]:08X}" for word in words)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "10.1.2.3", "::", "::1", "fd00::1:2"])
def test_a_listening_socket_is_read(address: str) -> None:
    table = HEAD + row(as_the_kernel_writes(address), 8000) + row(as_the_kernel_writes(address), 8001, state="01")
    assert listeners_in(table) == (Listener(address=address, port=8000, inode=77),)


def test_an_ipv4_address_in_the_ipv6_table_is_one() -> None:
    (found,) = listeners_in(HEAD + row(as_the_kernel_writes("::ffff:127.0.0.1"), 80))
    assert found.address == "127.0.0.1"


@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    assert all(found.port >= 0 for found in listeners_in(HEAD + text))


@pytest.mark.parametrize(
    ("bound", "asked", "reached"),
    [
        ("0.0.0.0", "127.0.0.1", True),
        ("::", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("10.0.0.5", "127.0.0.1", False),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.2", "127.0.0.1", False),
    ],
)
def test_who_answers_at_an_address(bound: str, asked: str, reached: bool) -> None:
    assert answers_at(Listener(address=bound, port=1, inode=1), asked) is reached
