"""What a server's log lines say: how far loading is, and why it failed. Pure, but for the reader at the end."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from sparkdiag.harmless.printable import printable, without_sequences

LONGEST_LINE = 4000
LONGEST_PENDING = 1 << 16


class Cause(NamedTuple):
    """A known reason for a failed start."""

    text: str
    remedy: str


def clean_line(text: str, *, redact: Callable[[str], str] = str) -> str:
    """A log line without colours and secrets, nothing hidden in it, cut to a bounded length.

    Cut last: half a secret is not known for one.
    """
    return printable(redact(without_sequences(text)))[:LONGEST_LINE].rstrip()


_PHASES = (
    ("reading the model's configuration", r"non-default args|Resolved architecture|Using max model len"),
    ("starting the engine", r"Initializing a V1 LLM engine"),
    ("starting workers", r"multiproc_executor\.py|ompmultiprocessing\.py|parallel_state\.py|world_size=\d"),
    (
        "loading weights",
        r"[Ll]oading (?:safetensors|pt|weights|model)|Starting to load model|(?:[Mm]odel|weights) took",
    ),
    ("compiling", r"torch\.compile takes|[Cc]ompiling a graph|Dynamo bytecode|DeepGEMM.*warmup|Directly load AOT"),
    ("sizing the KV cache", r"KV cache (?:size|layout|memory)|for KV cache|[Mm]emory profiling|num_gpu_blocks"),
    ("capturing CUDA graphs", r"[Cc]apturing \S*\s*(?:CUDA|cuda)\s*graph|Graph capturing"),
    ("opening the API", r"Supported tasks|Started server process|Waiting for application startup|Starting vLLM"),
)
_PATTERNS = tuple((phase, re.compile(pattern)) for phase, pattern in _PHASES)


def phase_of(line: str) -> str | None:
    """The phase of loading a line belongs to, in words for people; None where it tells none."""
    return next((phase for phase, pattern in reversed(_PATTERNS) if pattern.search(line)), None)


PORT_TAKEN = Cause(
    "its port was taken by another program meanwhile", "run the same command again: another port is picked"
)
_CAUSES = (
    (r"[Aa]ddress already in use", PORT_TAKEN),
    (
        r"DCP\) requires attention impl|does not support (?:DCP|decode context)|Try a different backend",
        Cause(
            "its attention backend does not support decode context parallelism",
            "sparkdiag repro ... -- --attention-backend NAME (or --dcp 1)",
        ),
    ),
    (
        r"must be divisible by.*(?:dcp|decode.context)|(?:dcp|decode.context)\S*.*(?:divisible|not divide)",
        Cause("the DCP size does not divide the tensor parallel size", "sparkdiag repro --dcp N --tp N"),
    ),
    (
        r"[Oo]ut ?[Oo]f ?[Mm]emory|No available memory for the cache blocks|Cannot allocate memory"
        r"|larger than the available KV cache|less than desired GPU memory",
        Cause(
            "it ran out of memory",
            "sparkdiag repro ... -- --gpu-memory-utilization 0.8 (or a shorter --prompt-tokens)",
        ),
    ),
    (
        r"We couldn't connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode is enabled"
        r"|Cannot reach https?://\S*huggingface|(?:Max retries exceeded|Failed to resolve)[^\n]*huggingface",
        Cause(
            "it could not download the model: the hub cannot be reached from here",
            "sparkdiag repro --model /path/of/a/model/on/this/disk (or HTTPS_PROXY, HF_ENDPOINT in the shell)",
        ),
    ),
    (
        r"Repo id must be|does not appear to have a file named|is not a (?:local folder|valid model)"
        r"|No such file or directory: '[^']*config\.json|[Ii]nvalid repository ID|RepositoryNotFound"
        r"|Can't load the conf",
        Cause("it did not find the model", "sparkdiag repro --model PATH_OR_NAME"),
    ),
    (
        r"unrecognized arguments|invalid choice: |expected one argument",
        Cause("it does not know one of its arguments", "compare the arguments with this vLLM version's --help"),
    ),
    (
        r"No module named '?vllm|ModuleNotFoundError",
        Cause("a Python module is missing in its environment", "sparkdiag env list"),
    ),
)
_CAUSE_PATTERNS = tuple((re.compile(pattern), cause) for pattern, cause in _CAUSES)


def cause_of(lines: Iterable[str]) -> Cause | None:
    """The known cause that the log shows, the latest line first; None where it shows none of them."""
    for line in reversed(list(lines)):
        for pattern, cause in _CAUSE_PATTERNS:
            if pattern.search(line):
                return cause
    return None


class LineSplitter:
    """Bytes in, whole clean lines out. A progress bar's carriage return ends a line as well.

    Of a line longer than ``LONGEST_PENDING`` the beginning is given and the rest is dropped: were it given in pieces, a
    secret could lie across two of them.
    """

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._pending = b""
        self._dropping = False

    def feed(self, data: bytes) -> list[str]:
        """``data`` empty means the end: what is pending comes out."""
        *whole, self._pending = re.split(rb"[\r\n]+", self._pending + data)
        if not data:
            whole.append(self._pending)
            self._pending = b""
        if self._dropping and whole:
            whole, self._dropping = whole[1:], False
        if self._dropping:
            self._pending = b""
        elif len(self._pending) >= LONGEST_PENDING:
            whole.append(self._pending)
            self._pending, self._dropping = b"", True
        lines = (clean_line(line.decode("utf-8", "replace"), redact=self._redact) for line in whole)
        return [line for line in lines if line]
