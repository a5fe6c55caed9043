"""A package index on loopback that answers with what it is told to, and keeps what it was asked."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JSON_TYPE = "application/vnd.pypi.simple.v1+json"


class Index(ThreadingHTTPServer):
    """Answers with what it is told to, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.status, self.body, self.content_type = 200, b"", JSON_TYPE
        self.location: str | None = None
        self.pause_s = 0.0
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"


class Answers(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        index = self.server
        index.asked.append((self.path, self.headers["Accept"], self.headers["Authorization"]))
        self.send_response(index.status)
        if index.location is not None:
            self.send_header("Location", index.location)
        self.send_header("Content-Type", index.content_type)
        self.end_headers()
        try:
            for start in range(0, len(index.body), 4096):
                self.wfile.write(index.body[start : start + 4096])
                time.sleep(index.pause_s)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        return


def serving() -> Iterator[Index]:
    """An index for as long as a test takes."""
    with Index() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
