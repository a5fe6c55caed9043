"""What a server's log lines say: how far loading is, and why it failed. Pure, but for the reader at the end."""

import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST_LINE = 4000
LONGEST_PENDING = 1 << 16
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Cause(NamedTuple):
    """A known reason for a failed start."""

    text: str
    remedy: str


def clean_line(text: str) -> str:
    """A log line that can neither move a cursor nor change a colour, cut to a bounded length."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))[:LONGEST_LINE].rstrip()


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
    """Bytes in, whole clean lines out. A progress bar's carriage return ends a line as well."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[str]:
        """``data`` empty means the end: what is pending comes out."""
        self._pending += data
        if data and len(self._pending) < LONGEST_PENDING:
            *whole, self._pending = re.split(rb"[\r\n]+", self._pending)
        else:
            whole, self._pending = re.split(rb"[\r\n]+", self._pending), b""
        lines = (clean_line(line.decode("utf-8", "replace")) for line in whole)
        return [line for line in lines if line]
