"""The metrics reader against servers that answer, drip, flood, refuse and redirect."""

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sparkdiag.evidence.timeline import KvCapacity, MetricPoint
from sparkdiag.observing import metrics
from sparkdiag.observing.metrics import MetricsReader

pytestmark = pytest.mark.integration

TEXT = b"""vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:num_requests_running{engine="0"} 1.0
vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0
"""
Answer = Callable[[BaseHTTPRequestHandler], None]
Serve = Callable[[Answer], str]


def plain(handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    answer(self)
                except OSError:
                    return

            def log_message(self, *_args: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def read(base_url: str, *, timeout_s: float = 20.0) -> tuple[MetricPoint, KvCapacity | None]:
    reader = MetricsReader(base_url, clock=time.monotonic, timeout_s=timeout_s)
    try:
        return reader.read()
    finally:
        reader.close()


def test_a_server_that_answers(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    point, capacity = read(serve(lambda handler: plain(handler, TEXT if handler.path == "/metrics" else b"")))
    assert (point.kv_cache_usage, point.requests_running, point.health_status, point.error) == (0.5, 1.0, 200, None)
    assert point.prompt_tokens_total is None
    assert capacity is not None
    assert (capacity.num_blocks, capacity.block_size_tokens) == (100, 16)


def test_health_without_metrics(serve: Serve) -> None:
    point, capacity = read(
        serve(lambda handler: plain(handler, b"", status=404 if handler.path == "/metrics" else 503))
    )
    assert (point.health_status, point.error, capacity) == (503, "/metrics answered 404", None)


def test_an_endless_drip_is_left(serve: Serve) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(600):
            handler.wfile.write(b"# more\n")
            time.sleep(0.1)

    began_s = time.monotonic()
    point, _capacity = read(serve(drip), timeout_s=0.5)
    assert time.monotonic() - began_s < 30, "the drip would go on for a minute"
    assert point.error is not None
    assert "longer than 0.5 s" in point.error


def test_a_flood_is_left(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BODY_LIMIT_BYTES", 1 << 16)
    point, _capacity = read(serve(lambda handler: plain(handler, b"#" * (1 << 20))))
    assert point.error is not None
    assert "larger than" in point.error


def test_a_redirect_is_not_followed(serve: Serve) -> None:
    point, _capacity = read(serve(lambda handler: plain(handler, b"", status=302, Location="http://192.0.2.1/")))
    assert (point.health_status, point.error) == (302, "/metrics answered 302")


def test_nobody_there() -> None:
    point, capacity = read("http://127.0.0.1:9", timeout_s=5)
    assert point.error is not None
    assert point.error.startswith("/metrics")
    assert (point.health_status, capacity) == (None, None)


def test_health_is_asked_seldom_and_whenever_metrics_fail(serve: Serve) -> None:
    asked: list[str] = []
    failing: list[bool] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        if failing and handler.path == "/metrics":
            handler.send_error(500)
        else:
            plain(handler, TEXT if handler.path == "/metrics" else b"")

    now_s = [100.0]
    reader = MetricsReader(serve(answer), clock=lambda: now_s[0])
    try:
        for seconds in (0.0, 1.0, 1.0, metrics.HEALTH_EVERY_S):
            now_s[0] += seconds
            reader.read()
        failing.append(True)
        point, _capacity = reader.read()
    finally:
        reader.close()
    assert asked == ["/metrics", "/health", "/metrics", "/metrics", "/metrics", "/health", "/metrics", "/health"]
    assert (point.health_status, point.error) == (200, "/metrics answered 500")
