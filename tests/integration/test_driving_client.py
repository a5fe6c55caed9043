"""The client against a real HTTP server on loopback: slow, broken, hostile, and left in the middle."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.outcome import fold
from sparkdiag.driving.prompt import build_prompt
from sparkdiag.errors import ServerError, UsageError
from sparkdiag.evidence.client import PromptSent, ResponseEnd, TokenChunk
from sparkdiag.scenario.model import PromptSettings

pytestmark = pytest.mark.integration

Reply = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.0 on purpose: the end of the connection is the end of the body."""

    server: "Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body))
        if self.path == "/tokenize" and self.server.tokenize is None:
            self.json({"count": len(body["prompt"].encode()) + 1, "max_model_len": 4096, "tokens": []})
        elif self.path == "/tokenize" and self.server.tokenize is not None:
            self.server.tokenize(self, body)
        else:
            self.server.reply(self, body)

    def json(self, value: object, status: int = 200) -> None:
        self.raw(json.dumps(value).encode(), status=status, kind="application/json")

    def raw(self, content: bytes, *, status: int = 200, kind: str = "text/event-stream") -> None:
        self.start(status=status, kind=kind)
        self.wfile.write(content)

    def start(self, *, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def event(self, value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def token(self, text: str, finish_reason: str | None = None) -> None:
        self.event({"choices": [{"index": 0, "text": text, "finish_reason": finish_reason}]})

    def wait_for_close(self) -> None:
        """Until the client has closed the connection; what the server under test takes as the order to abort."""
        self.connection.settimeout(10)
        try:
            closed = self.connection.recv(1) == b""
        except ConnectionResetError:
            closed = True
        except TimeoutError:
            closed = False
        if closed:
            self.server.closed_at = time.monotonic()
            self.server.closed.set()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, reply: Reply, tokenize: Reply | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.tokenize = reply, tokenize
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.arrived = threading.Event()
        self.closed = threading.Event()
        self.closed_at = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Broken pipes are what these tests are about."""


@contextmanager
def serving(reply: Reply, *, tokenize: Reply | None = None) -> Iterator[Server]:
    server = Server(reply, tokenize)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(client: ServerClient, prompt: str = "hello") -> tuple[ResponseEnd, list[TokenChunk | ResponseEnd]]:
    events: list[TokenChunk | ResponseEnd] = []
    start = time.monotonic()
    end = client.stream(
        prompt, model="m", max_tokens=64, clock=lambda: time.monotonic() - start, on_event=events.append
    )
    assert events[-1] is end
    return end, events


def answer(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.token(" 12")
    handler.wfile.write(b": a comment that keeps the connection alive\n\n")
    handler.token("34567.")
    handler.token("", "stop")
    tokens = len(body["prompt"].encode()) + 1
    usage = {"prompt_tokens": tokens, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}
    handler.event({"choices": [], "usage": usage})
    handler.event("[DONE]")


def test_an_answer_is_told_piece_by_piece_with_usage_and_stamps_in_order() -> None:
    with serving(answer) as server:
        end, events = send(ServerClient(server.url))
        path, body = server.requests[0]
    assert [event.text for event in events if isinstance(event, TokenChunk)] == [" 12", "34567."]
    assert (end.how, end.finish_reason, end.prompt_tokens, end.completion_tokens, end.cached_tokens, end.error) == (
        "finished", "stop", 6, 9, 0, None,
    )  # fmt: skip
    stamps = [event.t_s for event in events]
    assert stamps == sorted(stamps)
    assert path == "/v1/completions"
    assert (body["temperature"], body["stream"], body["stream_options"]) == (0, True, {"include_usage": True})


def test_a_prompt_built_by_the_servers_own_count_is_what_the_server_then_reads() -> None:
    asked = PromptSettings(tokens=3000, seed=5)
    with serving(answer) as server:
        client = ServerClient(server.url, model="m")
        built = build_prompt(asked, nonce="n0nce", count_tokens=client.tokenize_count)
        client.ensure_fits(prompt_tokens=built.tokens, max_output_tokens=64)
        end, events = send(client, built.text)
    assert built.tokens == end.prompt_tokens == 3000
    sent = PromptSent(t_s=0, kind="needle", tokens=3000, depth=0.35, seed=5, nonce="n0nce", expected="1234567",
                      max_output_tokens=64)  # fmt: skip
    assert fold([sent, *events]).score == "retrieved"


def test_a_prompt_longer_than_the_model_is_refused_before_it_is_sent() -> None:
    with serving(answer) as server:
        client = ServerClient(server.url)
        with pytest.raises(UsageError, match=r"5000 prompt tokens .* model length of 4096") as caught:
            client.ensure_fits(prompt_tokens=5000, max_output_tokens=64)
        assert [path for path, _ in server.requests] == ["/tokenize"]
    assert "--prompt-tokens 4032" in (caught.value.remedy or "")


def stall_before_headers(handler: Handler, body: dict[str, Any]) -> None:
    handler.server.arrived.set()
    handler.wait_for_close()


def stall_after_headers(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.server.arrived.set()
    handler.wait_for_close()


def stall_after_a_token(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.token(" 12")
    handler.server.arrived.set()
    handler.wait_for_close()


@pytest.mark.parametrize("reply", [stall_before_headers, stall_after_headers, stall_after_a_token])
def test_cancel_closes_the_connection_so_that_the_server_sees_it(reply: Reply) -> None:
    with serving(reply) as server:
        client = ServerClient(server.url)
        ends: list[ResponseEnd] = []
        thread = threading.Thread(target=lambda: ends.append(send(client)[0]))
        thread.start()
        assert server.arrived.wait(10)
        cancelled_at = time.monotonic()
        client.cancel()
        assert server.closed.wait(5)
        thread.join(5)
        assert not thread.is_alive()
        assert server.closed_at - cancelled_at < 2
        client.cancel()
    assert [(end.how, end.error) for end in ends] == [("cancelled", None)]


def test_a_cancelled_client_sends_nothing_more() -> None:
    with serving(answer) as server:
        client = ServerClient(server.url)
        client.cancel()
        end, events = send(client)
        with pytest.raises(ServerError, match="cancelled"):
            client.tokenize_count("a")
        assert (end.how, events, server.requests) == ("cancelled", [end], [])


def test_cancel_ends_a_token_count_as_well() -> None:
    with serving(answer, tokenize=stall_before_headers) as server:
        client = ServerClient(server.url)
        threading.Thread(target=lambda: (server.arrived.wait(10), client.cancel())).start()
        with pytest.raises(ServerError, match="cancelled"):
            client.tokenize_count("a")
        assert server.closed.wait(2)


def reset(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.token(" 12")
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    handler.connection.close()


def cut(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.token(" 12")


def aborted(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.token("", "abort")
    handler.event("[DONE]")


def too_long(handler: Handler, body: dict[str, Any]) -> None:
    handler.json({"error": {"message": "maximum context length is 4096\x1b[31m", "code": 400}}, status=400)


def error_event(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.event({"error": {"message": "EngineCore died", "code": 500}})
    handler.event("[DONE]")


BROKEN: dict[str, tuple[Reply, str]] = {
    "reset": (reset, "connection"),
    "cut": (cut, "without a finish_reason"),
    "aborted": (aborted, "gave the request up"),
    "too long": (too_long, r"HTTP 400: maximum context length is 4096\\x1b\[31m"),
    "no model": (lambda h, b: h.json({"error": {"message": "no such model"}}, status=404), "HTTP 404: no such model"),
    "plain 500": (lambda h, b: h.raw(b"Internal Server Error", status=500), "HTTP 500: Internal Server Error"),
    "redirect": (lambda h, b: h.start(status=307, Location="http://192.0.2.1/"), "HTTP 307"),
    "error event": (error_event, "EngineCore died"),
    "html": (lambda h, b: h.raw(b"<html>login</html>\n"), "not a stream of events"),
    "no JSON": (lambda h, b: h.raw(b"data: {oops\n\n"), "no JSON"),
    "a list": (lambda h, b: h.raw(b"data: [1]\n\n"), "no JSON object"),
    "deep": (lambda h, b: h.raw(b"data: " + b"[" * 100_000 + b"\n\n"), "no JSON"),
    "numbers for text": (lambda h, b: h.raw(b'data: {"choices": [{"text": 5}]}\n\n'), "no text completion"),
    "not UTF-8": (lambda h, b: h.raw(b"data: \xff\xfe\n\n"), "not UTF-8"),
    "endless line": (lambda h, b: h.raw(b"data: " + b"x" * 2_000_000), "longer than"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_goes_wrong_is_the_end_of_the_request_and_says_what(name: str) -> None:
    reply, message = BROKEN[name]
    with serving(reply) as server:
        end, _ = send(ServerClient(server.url))
    assert end.how == "error"
    assert end.error is not None
    assert re.search(message, end.error), end.error
    assert end.error.isprintable()


def test_a_server_that_is_not_there_is_an_error_of_both_calls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    end, _ = send(ServerClient(url))
    assert end.how == "error"
    assert "cannot connect" in (end.error or "")
    with pytest.raises(ServerError, match="cannot connect"):
        ServerClient(url).tokenize_count("a")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda h, b: h.json({"error": {"message": "no such model"}}, status=404), "404: no such model"),
        (lambda h, b: h.json({"count": "many"}), "without a token count"),
        (lambda h, b: h.json([1, 2]), "JSON object"),
        (lambda h, b: h.raw(b"\xff"), "JSON object"),
        (stall_before_headers, "within 0.3 s"),
    ],
)
def test_a_token_count_that_is_none_is_a_server_error(reply: Reply, message: str) -> None:
    with serving(answer, tokenize=reply) as server:
        client = ServerClient(server.url, tokenize_timeout_s=0.3)
        with pytest.raises(ServerError, match=message):
            client.tokenize_count("a")


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(answer) as server:
        assert ServerClient(server.url).tokenize_count("abc") == 4
        assert send(ServerClient(server.url))[0].how == "finished"


def test_what_a_callback_raises_reaches_the_caller_and_the_connection_is_closed() -> None:
    def refuse(event: object) -> None:
        raise LookupError("disk full")

    with serving(stall_after_a_token) as server:
        with pytest.raises(LookupError, match="disk full"):
            ServerClient(server.url).stream("x", model="m", max_tokens=1, clock=time.monotonic, on_event=refuse)
        assert server.closed.wait(5)
