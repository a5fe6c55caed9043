"""A vLLM OpenAI server made of real Python processes, for tests: API server, EngineCore, one worker a TP rank.

Run it as vLLM's api_server module is run: ``python fake_vllm.py --model X --port N [-tp T] [-dcp D] ...`` (unknown
arguments are accepted). It answers /health, /version, /metrics, /tokenize and /v1/completions (streamed), one token a
byte. ``FAKE_VLLM_MODE`` holds flags, comma-separated:

healthy (or nothing) | crawling: the fallback's loop at ``FAKE_VLLM_PASS`` iterations a pass | crawling-with-dcp: the
same at DCP above 1 only | stuck: rank 0 stops in its second pass, the others wait | crash-while-loading |
crash-in-request: worker 0 aborts | oom, no-dcp-backend:
crash while loading with that message | slow-start: waits for ``FAKE_VLLM_GATE`` | orphan: a double-forked grandchild in
its own session that ignores SIGTERM | ignore-term: nobody obeys SIGTERM | shm: workers leave segments in /dev/shm |
churn: worker 1 goes on making segments and orphans | moody: some processes ignore SIGTERM | linger: an API server that
lost its engine says so and stays for 15 s | nasty: shm, orphan, churn, moody and linger |
degenerate, wrong: what the answer is | undumpable: only CAP_SYS_PTRACE may read its processes | chatty: logs 2 MiB
once a file ``chat`` lies beside ``FAKE_VLLM_EVENTS`` | hang: worker 0 waits while the FIFO
``FAKE_VLLM_HANG`` is there | tell-signals: every signal is an event and nothing else.

As in vLLM, the children stay when their parent is killed.
"""

import argparse
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any

import fake_process as fake

HERE = Path(__file__).resolve().parent
BLOCK_TOKENS = 16
CRASHES = {
    "crash-while-loading": "RuntimeError: fake: cannot load the model",
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB.",
    "no-dcp-backend": "AssertionError: Decode Context Parallelism (DCP) requires attention implementations to return "
    "the softmax LSE during decode, but FakeImpl does not. Try a different backend by setting --attention-backend or "
    "disable DCP.",
}


class Engine:
    """The API server's side of EngineCore."""

    def __init__(self, args: argparse.Namespace) -> None:
        size = [
            str(args.tensor_parallel_size),
            str(args.decode_context_parallel_size),
            str(args.max_num_batched_tokens),
        ]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "fake_engine.py"), *size, "#" * 40],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            pass_fds=tracker_fds(),
        )
        self.lock = threading.Lock()
        self.ending = False
        self.answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.capacity_tokens = args.max_model_len
        self.held_tokens = self.prompt_tokens = self.generated_tokens = self.steps = self.last_id = 0

    def wait_up(self) -> bool:
        assert self.process.stdout is not None
        return bool(self.process.stdout.readline())

    def send(self, **message: object) -> None:
        assert self.process.stdin is not None
        with self.lock:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "done" in message:
                self.held_tokens = message["done"]
                self.steps += 1
            self.answers[message["id"]].put(message)
        if self.ending:
            return
        for waiting in self.answers.values():
            waiting.put({"dead": "EngineCore is gone"})
        fake.log("ERROR AsyncLLM: EngineDeadError: EngineCore encountered an issue. Shutting down.")
        linger()
        os._exit(1)

    def open(self, tokens: int) -> int:
        with self.lock:
            self.last_id += 1
            number = self.last_id
            self.answers[number] = queue.Queue()
        self.send(op="add", id=number, tokens=tokens)
        return number

    def close(self, number: int) -> None:
        del self.answers[number]
        self.held_tokens = 0

    def metrics(self) -> str:
        name = 'engine="0",model_name="fake"'
        running = len(self.answers)
        usage = min(1.0, self.held_tokens / self.capacity_tokens)
        return "\n".join(
            (
                f"vllm:kv_cache_usage_perc{{{name}}} {usage}",
                f"vllm:num_requests_running{{{name}}} {float(running)}",
                f"vllm:num_requests_waiting{{{name}}} 0.0",
                f"vllm:prompt_tokens_total{{{name}}} {float(self.prompt_tokens)}",
                f"vllm:generation_tokens_total{{{name}}} {float(self.generated_tokens)}",
                f"vllm:iteration_tokens_total_count{{{name}}} {float(self.steps)}",
                f'vllm:cache_config_info{{block_size="{BLOCK_TOKENS}",engine="0",'
                f'num_gpu_blocks="{self.capacity_tokens // BLOCK_TOKENS}"}} 1.0',
                "",
            )
        )


def answer(prompt: str, *, limit: int) -> str:
    """Copy what followed where the prompt's last words stood before, as the lab's model does."""
    flags = fake.flags()
    if "degenerate" in flags:
        return ("again and " * limit)[:limit]
    if "wrong" in flags:
        return "0000000\n"[:limit]
    for length in (32, 24, 16, 8):
        place = prompt.find(prompt[-length:])
        if 0 <= place < len(prompt) - length:
            return prompt[place + length :].split("\n", 1)[0][: limit - 1] + "\n"
    return "nothing\n"[:limit]


class Handler(BaseHTTPRequestHandler):
    engine: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        fake.log(f'"{self.command} {self.path}"')

    def reply(self, body: str, *, kind: str = "application/json") -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        match self.path:
            case "/health":
                self.reply("")
            case "/version":
                self.reply(json.dumps({"version": fake.version()}))
            case "/metrics":
                self.reply(self.engine.metrics(), kind="text/plain; version=0.0.4")
            case "/v1/models":
                self.reply(json.dumps({"data": [{"id": "fake"}]}))
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            count = len(body["prompt"].encode())
            self.reply(json.dumps({"count": count, "max_model_len": self.engine.capacity_tokens, "tokens": []}))
        elif self.path == "/v1/completions":
            self.complete(body)
        else:
            self.send_error(404)

    def complete(self, body: dict[str, Any]) -> None:
        tokens = len(body["prompt"].encode())
        number = self.engine.open(tokens)
        fake.emit("api", f"request {tokens}")
        try:
            ended = self.wait_for_prefill(number)
            if ended is not None and "dead" not in ended:
                self.stream(body, tokens)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.engine.close(number)

    def wait_for_prefill(self, number: int) -> dict[str, Any] | None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            try:
                message = self.engine.answers[number].get(timeout=0.1)
            except queue.Empty:
                if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    self.engine.send(op="abort", id=number)
                    fake.emit("api", "abort")
                    return None
                continue
            if "done" not in message:
                return message

    def stream(self, body: dict[str, Any], tokens: int) -> None:
        text = answer(body["prompt"], limit=int(body.get("max_tokens", 16)))
        stop = "stop" if text.endswith("\n") else "length"
        self.engine.prompt_tokens += tokens
        for index, letter in enumerate(text):
            finish = stop if index == len(text) - 1 else None
            self.event({"choices": [{"index": 0, "text": letter, "finish_reason": finish}]})
            self.engine.generated_tokens += 1
        usage = {"prompt_tokens": tokens, "completion_tokens": len(text), "total_tokens": tokens + len(text)}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, fields: dict[str, Any]) -> None:
        whole = {"id": "cmpl-fake", "object": "text_completion", "model": "fake", **fields}
        self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
        self.wfile.flush()


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", default="fake")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=1)
    parser.add_argument("--decode-context-parallel-size", "-dcp", type=int, default=1)
    parser.add_argument("--max-num-batched-tokens", type=int, default=512)
    parser.add_argument("--max-model-len", type=int, default=65536)
    return parser.parse_known_args(argv)[0]


def load(args: argparse.Namespace) -> Engine:
    fake.log(f"vLLM API server version {fake.version()}, model {args.model}")
    fake.emit("api", "started")
    if "slow-start" in fake.flags():
        fake.log("Starting to load model")
        with Path(os.environ["FAKE_VLLM_GATE"]).open() as gate:
            gate.read()
    for flag, message in CRASHES.items():
        if flag in fake.flags():
            fake.log("Loading weights")
            print("Traceback (most recent call last):", message, sep="\n", file=sys.stderr, flush=True)
            sys.exit(1)
    engine = Engine(args)
    if not engine.wait_up():
        fake.log("INFO [shutdown] Process manager: send sigterm to process EngineCore")
        linger()
        fake.log("RuntimeError: Engine core initialization failed.")
        sys.exit(1)
    return engine


def linger() -> None:
    """As vLLM's API server may: it knows that all is over, and takes its time."""
    if "linger" in fake.flags():
        time.sleep(15)


def tracker_fds() -> tuple[int, ...]:
    """Python's resource tracker, started as vLLM starts it: children hold it too, so it outlives this process."""
    if "shm" not in fake.flags():
        return ()
    resource_tracker.ensure_running()
    fd = resource_tracker.getfd()
    os.environ["FAKE_VLLM_TRACKER_FD"] = str(fd)
    return (fd,)


def chat() -> None:
    """Say far more than a pipe holds."""
    events = Path(os.environ["FAKE_VLLM_EVENTS"])
    while not (events.parent / "chat").exists():
        time.sleep(0.05)
    for _ in range(2048):
        print("chatter " * 128, file=sys.stderr, flush=True)
    fake.emit("api", "chatted")


def main() -> None:
    args = parse(sys.argv[1:])
    fake.import_vllm()
    fake.load_plugins()
    engine = load(args)

    def on_term(_number: int, _frame: FrameType | None) -> None:
        engine.ending = True
        engine.process.terminate()
        engine.process.wait()
        os._exit(0)

    signal.signal(signal.SIGTERM, on_term)
    fake.hide_memory()
    fake.obey_signals()
    fake.leave_socket()
    threading.Thread(target=engine.read, name="OutputThread", daemon=True).start()
    if "chatty" in fake.flags():
        threading.Thread(target=chat, daemon=True).start()
    Handler.engine = engine
    try:
        server = ThreadingHTTPServer((args.host, args.port), Handler)
    except OSError as error:
        fake.log(f"ERROR {error}")
        engine.ending = True
        engine.process.terminate()
        sys.exit(1)
    server.daemon_threads = True
    fake.log(f"Started server process at {time.time():.0f}, Application startup complete.")
    fake.emit("api", "ready")
    server.serve_forever()


if __name__ == "__main__":
    main()
