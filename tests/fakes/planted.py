"""The fake vLLM tree with secrets all over it. What is planted comes from the JSON file that ``PLANTED_SECRETS`` names.

``everywhere`` runs in every process of the tree (a ``sitecustomize`` calls it): a thread whose name, frames, file names
and locals hold secrets, and noise on standard error. ``serve`` is the API server: log, headers, metrics, version, model
names, answers and errors. ``PLANTED_END``: ``refuse`` answers a completion with an error body, ``sse-error`` with an
error in the stream.
"""

import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FRAME = """
def {name}(inner, values):
    text, prefixed = values[0], values[1]
    held = {{"api_key": values[2], "nested": [values[3]]}}
    listed = [values[4], values[5]]
    k_cache_prefix = values[6]
    raw = values[7].encode()
    card_number = int(values[8])
    big_key = int(values[9])
    password = int(values[10])
    k_start = 7
    inner()
"""


def planted() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(os.environ["PLANTED_SECRETS"]).read_text(encoding="utf-8"))
    return loaded


def everywhere() -> None:
    found = planted()
    for text in found["noise"]:
        print(text, file=sys.stderr, flush=True)
    inner = threading.Event().wait
    for frame in found["frames"]:
        inner = _framed(frame, inner)
    threading.Thread(target=inner, name=found["thread_name"], daemon=True).start()


def _framed(frame: dict[str, Any], inner: Any) -> Any:
    space: dict[str, Any] = {}
    exec(compile(FRAME.format(name=frame["function"]), frame["file"], "exec"), space)
    return lambda: space[frame["function"]](inner, frame["values"])


def serve(argv: list[str]) -> None:
    fake_vllm: Any = importlib.import_module("fake_vllm")
    vllm: Any = importlib.import_module("vllm")
    found = planted()
    vllm.__version__ = found["version"]
    _log(found)
    _patch_handler(fake_vllm, found)
    metrics, answer = fake_vllm.Engine.metrics, fake_vllm.answer

    def more_metrics(engine: Any) -> str:
        lines = [
            f'vllm:num_requests_waiting{{engine="0",model_name={json.dumps(text)}}} 0.0' for text in found["labels"]
        ]
        return "\n".join([metrics(engine).rstrip("\n"), *lines, ""])

    def longer_answer(prompt: str, *, limit: int) -> str:
        return answer(prompt, limit=limit).rstrip("\n") + " " + " | ".join(found["answer"]) + "\n"

    fake_vllm.Engine.metrics = more_metrics
    fake_vllm.answer = longer_answer
    sys.argv = ["fake_vllm.py", "--model", *argv]
    fake_vllm.main()


def _log(found: dict[str, Any]) -> None:
    for text in found["log"]:
        print(text, file=sys.stderr, flush=True)
        print("INFO 11-30 04:02:14 [fake.py:1] and goes on", file=sys.stderr, flush=True)
    for text in found["log_in_pieces"]:
        data, middle = text.encode(), len(text) // 2
        os.write(2, data[:middle])
        time.sleep(0.15)
        os.write(2, data[middle:] + b"\n")
    for text in found["log_long_lines"]:
        for length in (3990, 65525):
            os.write(2, b"x " * (length // 2) + text.encode() + b" y" * 3000 + b"\n")


def _patch_handler(fake_vllm: Any, found: dict[str, Any]) -> None:
    end = os.environ.get("PLANTED_END", "")

    class Handler(fake_vllm.Handler):  # type: ignore[misc]
        def send_response(self, code: int, message: "str | None" = None) -> None:
            super().send_response(code, message)
            for number, text in enumerate(found["headers"]):
                name = ("Set-Cookie", "X-Api-Key", "Authorization", "X-Planted")[number % 4]
                self.send_header(name, "".join(char for char in text if " " <= char <= "~"))

        def do_GET(self) -> None:
            if self.path == "/version":
                self.reply(json.dumps({"version": found["version"], "extra": found["headers"]}))
            elif self.path == "/v1/models":
                self.reply(json.dumps({"data": [{"id": text} for text in found["labels"]]}))
            else:
                super().do_GET()

        def do_POST(self) -> None:
            if self.path == "/v1/completions" and end == "refuse":
                self.rfile.read(int(self.headers["Content-Length"]))
                body = json.dumps({"error": {"message": "; ".join(found["errors"]), "code": 400}}).encode()
                self.send_response(400)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            else:
                super().do_POST()

        def stream(self, body: dict[str, Any], tokens: int) -> None:
            if end == "sse-error":
                self.event({"error": {"message": "; ".join(found["errors"])}})
            else:
                super().stream(body, tokens)

    fake_vllm.Handler = Handler
