"""One call, given up after a time, whatever it is doing."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def bounded(call: Callable[[], T], *, limit_s: float) -> T:
    """What ``call`` gives or raises. Raises ``TimeoutError`` when it takes longer; then it may still go on.

    A socket's timeout bounds each read, and an answer that drips byte by byte has no end. The call runs in a thread
    that does not keep the process alive, and the one who waits hears Ctrl-C at once.
    """
    done: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True, name="github").start()
    try:
        result, error = done.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"no answer in {limit_s:.0f} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # the other half of the pair is an error
