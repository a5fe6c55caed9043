"""One worker of the fake tree: reads a step from its standard input, computes it, answers on its standard output."""

import json
import os
import signal
import sys

import fake_process as fake

LAYERS = 2


class WorkerProc:
    def __init__(self, *, rank: int, tp: int, dcp: int) -> None:
        self.rank, self.tp, self.dcp = rank, tp, dcp
        slow = {"crawling", "stuck"} | ({"crawling-with-dcp"} if dcp > 1 else set())
        self.fast = not slow & fake.flags()

    def set_up(self) -> None:
        fake.load_plugins()
        from vllm.distributed import parallel_state
        from vllm.utils import deep_gemm

        parallel_state._TP = parallel_state.GroupCoordinator(self.tp, self.rank)
        parallel_state._DCP = parallel_state.GroupCoordinator(self.dcp, self.rank % self.dcp)
        if "stuck" in fake.flags() and self.rank == 0:
            read_end, write_end = os.pipe()
            os.set_inheritable(write_end, False)
            deep_gemm.hold_pass = read_end
        self.kernels = deep_gemm

    def worker_busy_loop(self) -> None:
        for line in sys.stdin:
            step = json.loads(line)
            if step["op"] == "crash" and self.rank == 0:
                fake.log("ERROR worker: RuntimeError: fake kernel failed")
                os.kill(os.getpid(), signal.SIGABRT)
            self.execute_model(step["tokens"], step["context"])
            print(json.dumps({"rank": self.rank}), flush=True)
        fake.wait_forever()

    def execute_model(self, tokens: int, context: int) -> None:
        fake.emit("worker", f"execute {tokens} {context}")
        if self.rank == 0:
            fake.wait_while_hung()
        for layer in range(LAYERS):
            self.kernels.sparse_attn_indexer(
                f"model.layers.{layer}.self_attn.indexer.k_cache", tokens, max(1, context // self.dcp), self.fast
            )


def main() -> None:
    rank, tp, dcp = (int(text) for text in sys.argv[1:4])
    title = f"VLLM::Worker_TP{rank}" + (f"_DCP{rank % dcp}" if dcp > 1 else "")
    fake.hide_memory()
    fake.obey_signals()
    fake.import_vllm()
    fake.set_title(title)
    fake.leave_socket()
    worker = WorkerProc(rank=rank, tp=tp, dcp=dcp)
    worker.set_up()
    if "shm" in fake.flags():
        fake.leave_shared_memory("worker")
    if "orphan" in fake.flags() and rank == 0:
        fake.leave_orphan("worker")
    if rank == 1:
        fake.start_churn("worker")
    fake.emit("worker", "up")
    print(json.dumps({"rank": rank, "up": True}), flush=True)
    worker.worker_busy_loop()


if __name__ == "__main__":
    main()
