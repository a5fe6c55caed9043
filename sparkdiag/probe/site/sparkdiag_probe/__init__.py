"""sparkdiag inside a vLLM process. Standard library only, Python 3.10 and later; loaded as a vLLM general plugin.

It never changes a result, never raises and never holds the server up: one daemon thread that sleeps, looks, and writes
small files into ``$SPARKDIAG_PROBE_DIR``. Without that variable it does nothing at all.

That thread is there all the same: from Python 3.12 on, ``os.fork()`` in a process that was single-threaded otherwise
warns (DeprecationWarning) that it is not. ``trampoline.py`` says what else is different where functions are recorded.
"""

import os


def load() -> None:
    """Entry point of the group ``vllm.general_plugins``; may be called more than once in a process."""
    try:
        if os.environ.get("SPARKDIAG_PROBE_DIR"):
            from . import agent

            agent.start()
    except Exception:  # noqa: S110 - whatever is wrong with the probe is no concern of the server
        pass
