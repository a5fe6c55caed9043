"""EngineCore of the fake tree: schedules chunks, waits for the workers in ``get_response``, tells the API server."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import fake_process as fake

HERE = Path(__file__).resolve().parent


class MultiprocExecutor:
    def __init__(self, *, tp: int, dcp: int) -> None:
        self.workers = [
            subprocess.Popen(
                [sys.executable, str(HERE / "fake_worker.py"), str(rank), str(tp), str(dcp), "#" * 40],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                pass_fds=[int(fd) for fd in filter(None, (os.environ.get("FAKE_VLLM_TRACKER_FD"),))],
            )
            for rank in range(tp)
        ]

    def get_response(self) -> bool:
        """One line of every worker; False when one of them is gone."""
        return all(worker.stdout is not None and worker.stdout.readline() for worker in self.workers)

    def execute_model(self, step: dict[str, object]) -> bool:
        for worker in self.workers:
            assert worker.stdin is not None
            try:
                worker.stdin.write(json.dumps(step) + "\n")
                worker.stdin.flush()
            except BrokenPipeError:
                return False
        return self.get_response()

    def end(self, *_signal: object) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait()


class EngineCoreProc:
    def __init__(self, *, tp: int, dcp: int, chunk_tokens: int) -> None:
        self.chunk_tokens = chunk_tokens
        self.executor = MultiprocExecutor(tp=tp, dcp=dcp)
        self.requests: list[dict[str, int]] = []
        self.aborted: set[int] = set()
        self.changed = threading.Condition()

    def say(self, **message: object) -> None:
        print(json.dumps(message), flush=True)

    def process_input(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            with self.changed:
                if message["op"] == "abort":
                    self.aborted.add(message["id"])
                else:
                    self.requests.append(message)
                self.changed.notify()

    def run_busy_loop(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: bool(self.requests))
                request = self.requests.pop(0)
            self.step(request)

    def step(self, request: dict[str, int]) -> None:
        done, tokens = 0, request["tokens"]
        op = "crash" if "crash-in-request" in fake.flags() else "execute"
        while done < tokens and request["id"] not in self.aborted:
            now = min(self.chunk_tokens, tokens - done)
            if not self.executor.execute_model({"op": op, "tokens": now, "context": done + now}):
                self.say(id=request["id"], dead="a worker is gone")
                fake.log("ERROR EngineCore encountered a fatal error: a worker is gone")
                os._exit(1)
            done += now
            self.say(id=request["id"], done=done)
        self.say(id=request["id"], end=True, aborted=request["id"] in self.aborted)


def main() -> None:
    tp, dcp, chunk_tokens = (int(text) for text in sys.argv[1:4])
    fake.import_vllm()
    fake.set_title("VLLM::EngineCore")
    fake.load_plugins()
    engine = EngineCoreProc(tp=tp, dcp=dcp, chunk_tokens=chunk_tokens)

    def on_term(_number: int, _frame: FrameType | None) -> None:
        engine.executor.end()
        os._exit(0)

    signal.signal(signal.SIGTERM, on_term)
    fake.hide_memory()
    fake.obey_signals()
    if not engine.executor.get_response():
        fake.log("ERROR WorkerProc failed to start")
        os._exit(1)
    fake.emit("engine", "up")
    engine.say(up=True)
    threading.Thread(target=engine.process_input, name="InputThread", daemon=True).start()
    engine.run_busy_loop()


if __name__ == "__main__":
    main()
