"""Sixteen real processes with vLLM's titles, and a server that says of itself what vLLM says: to be looked at."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from sparkdiag.errors import ServerError

PROCESSES = 16

_WORKER = """
import threading, time

def worker_busy_loop(depth, rank):
    if depth == 0:
        return _fp8_mqa_logits_torch(64, 468540)
    return worker_busy_loop(depth - 1, rank)

def _fp8_mqa_logits_torch(num_heads, seq_len_kv):
    step = 0
    while True:
        step += 1
        for head_start in range(0, num_heads, 8):
            for k_start in range(0, seq_len_kv, 32768):
                time.sleep(0.02)

def wait(depth, event):
    if depth == 0:
        return event.wait()
    return wait(depth - 1, event)

for name in ("WorkerAsyncOutputCopy", "InputThread", "OutputThread", "MonitorThread", "tqdm", "heartbeat"):
    threading.Thread(target=wait, args=(8, threading.Event()), name=name, daemon=True).start()
print("up", flush=True)
worker_busy_loop(24, 0)
"""
_SERVER = """
import http.server

page = []
for name in ("prompt_tokens_total", "generation_tokens_total", "iteration_tokens_total_count", "kv_cache_usage_perc",
             "num_requests_running", "num_requests_waiting"):
    page.append('vllm:%s{engine="0",model_name="m"} 0.0' % name)
for number in range(24):
    for step in range(22):
        page.append('vllm:histogram_%d_seconds_bucket{engine="0",le="%d.0",model_name="m"} 12.0' % (number, step))
page = "\\n".join(page).encode() + b"\\n"

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = page if self.path == "/metrics" else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Sixteen(NamedTuple):
    """What is there to be looked at."""

    pids: tuple[int, ...]
    base_url: str


@contextmanager
def sixteen() -> Iterator[Sixteen]:
    """All of it, and its end. Raises ``ServerError`` where one of them does not start."""
    with ExitStack() as stack:
        # A program that comes from standard input leaves the title alone on the command line.
        workers = [
            stack.enter_context(_child([f"VLLM::Worker_TP{rank}"], program=_WORKER)) for rank in range(PROCESSES)
        ]
        server = stack.enter_context(_child([sys.executable], program=_SERVER))
        answers = [_line(child) for child in (*workers, server)]
        base_url = f"http://127.0.0.1:{answers[-1]}"
        with urllib.request.urlopen(f"{base_url}/health", timeout=10):
            yield Sixteen(tuple(worker.pid for worker in workers), base_url)


@contextmanager
def _child(argv: list[str], *, program: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        argv,
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            if child.stdin is not None:
                child.stdin.write(program)
                child.stdin.close()
            yield child
        finally:
            child.kill()


def _line(child: "subprocess.Popen[str]") -> str:
    line = child.stdout.readline().strip() if child.stdout is not None else ""
    if not line:
        raise ServerError("a process of the benchmark did not start", remedy="python -m benchmarks watch --anyway")
    return line
