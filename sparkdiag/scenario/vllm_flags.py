"""vLLM options that sparkdiag sets itself, that no run may have, or that no file may ask for. Pure.

vLLM reads its command line with argparse, which also takes ``--a_b``, ``--a=b``, ``-n2`` and any unambiguous beginning
of a name (``--ho`` for ``--host``), and itself takes ``--a.key value`` for a part of a JSON option, so all of these are
looked up here.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple


class OwnedFlag(NamedTuple):
    """One option that is not the user's to give."""

    names: tuple[str, ...]
    key: str | None
    """The scenario key that sets it; None where nothing in a scenario does."""
    remedy: str
    number: bool = False
    """An integer that a command line may repeat after ``--``: it then changes the scenario."""


class DistrustedFlag(NamedTuple):
    """One option that a scenario file may not carry; whoever types it after ``--`` knows what it does."""

    names: tuple[str, ...]
    does: str
    harmless: tuple[str, ...] = ()
    """Values with which a file may have it all the same."""


_LOOPBACK = (
    "leave it out: the server listens on a free port of the loopback interface only, and only sparkdiag calls it"
)
_NOWHERE = "leave it out: what the server knows stays on this machine, and no prefill needs it"

OWNED = (
    OwnedFlag(("--tensor-parallel-size", "-tp"), "server.tp", "sparkdiag repro --tp N", number=True),
    OwnedFlag(("--decode-context-parallel-size", "-dcp"), "server.dcp", "sparkdiag repro --dcp N", number=True),
    OwnedFlag(
        ("--max-num-batched-tokens",),
        "server.chunk_tokens",
        "sparkdiag repro -- --max-num-batched-tokens N",
        number=True,
    ),
    OwnedFlag(("--max-model-len",), "server.max_model_len", "sparkdiag repro -- --max-model-len N", number=True),
    OwnedFlag(("--served-model-name",), "server.served_model_name", "leave it out"),
    OwnedFlag(("--model",), "server.model", "--model PATH, before the --"),
    OwnedFlag(("--host",), None, _LOOPBACK),
    OwnedFlag(("--port",), None, _LOOPBACK),
    OwnedFlag(("--uds",), None, _LOOPBACK),
    OwnedFlag(("--api-key",), None, _LOOPBACK),
    OwnedFlag(("--headless", "--grpc"), None, "leave it out: sparkdiag asks the server's HTTP interface"),
    OwnedFlag(("--grpc-port", "--data-parallel-supervisor-port"), None, _LOOPBACK),
    OwnedFlag(("--otlp-traces-endpoint", "--kv-events-config", "--tool-server"), None, _NOWHERE),
    OwnedFlag(("--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--ssl-cert-reqs"), None, _LOOPBACK),
    OwnedFlag(("--hf-token",), None, "leave it out; set it in the shell that starts sparkdiag: export HF_TOKEN=..."),
    OwnedFlag(("--config",), None, "leave it out and name its options one by one: a file of them cannot be checked"),
)

_CODE = "can load and run code"
_MACHINES = "opens the server to other machines"

DISTRUSTED = (
    DistrustedFlag(
        (
            "--middleware",
            "--logits-processors",
            "--trust-remote-code",
            "--tool-parser-plugin",
            "--reasoning-parser-plugin",
            "--structured-outputs-config",
            "--io-processor-plugin",
            "--model-class-overrides",
            "--worker-cls",
            "--worker-extension-cls",
            "--scheduler-cls",
            "--log-config-file",
            "--logging-config",
        ),
        _CODE,
    ),
    DistrustedFlag(("--distributed-executor-backend",), f"{_CODE}, or {_MACHINES}", harmless=("mp", "uni")),
    DistrustedFlag(
        ("--kv-transfer-config", "--ec-transfer-config", "--weight-transfer-config"), f"{_CODE} and connect"
    ),
    DistrustedFlag(
        (
            *("--data-parallel-address", "-dpa", "--data-parallel-rpc-port", "-dpp"),
            *("--data-parallel-external-lb", "-dpe", "--data-parallel-hybrid-lb", "-dph"),
            *("--data-parallel-multi-port-external-lb", "-dpm"),
            *("--master-addr", "--master-port", "--nnodes", "-n", "--node-rank", "-r"),
        ),
        _MACHINES,
    ),
    DistrustedFlag(("--enable-log-requests", "--enable-log-outputs"), "writes prompts or answers into the log"),
    DistrustedFlag(("--allowed-local-media-path",), "opens folders of this machine to requests"),
    DistrustedFlag(
        ("--download-dir", "--mm-encoder-fp8-scale-save-path", "--profiler-config"),
        "says where on this machine the server writes",
    ),
)

_FREE = ("--reasoning-parser", "-dp", "-dc")
"""vLLM's own whole names that are also the beginning of one above: argparse takes a whole name for itself."""


def flag_name(argument: str) -> str:
    """``--max_model_len=8000`` -> ``--max-model-len``; empty for what is no option."""
    return re.split("[=.]", argument, maxsplit=1)[0].replace("_", "-") if argument.startswith("-") else ""


def owned_flag(argument: str) -> OwnedFlag | None:
    """The option of ``OWNED`` that vLLM would take ``argument`` for."""
    name = _whole_name(argument)
    return next((flag for flag in OWNED if name in flag.names), None)


def distrusted_flag(argument: str, following: str = "") -> DistrustedFlag | None:
    """The option of ``DISTRUSTED`` that vLLM would take ``argument`` for, unless its value is harmless.

    ``following`` is the next argument, which is the value where ``argument`` carries none.
    """
    name = _whole_name(argument)
    flag = next((flag for flag in DISTRUSTED if name in flag.names), None)
    value = argument.split("=", 1)[1] if "=" in argument else following
    return None if flag is None or value in flag.harmless else flag


def _whole_name(argument: str) -> str:
    """The name in the tables that ``argument`` is, or is the beginning of; empty where it is neither."""
    name = flag_name(argument)
    if not name.strip("-") or name in _FREE:
        return ""
    if name in _NAMES:
        return name
    if name[2:].isdecimal() and name[:2] in _NAMES:
        return name[:2]
    return next((known for known in _NAMES if known.startswith(name)), "")


_NAMES = tuple(name for flag in (*OWNED, *DISTRUSTED) for name in flag.names)


def first_owned(arguments: Sequence[str]) -> tuple[int, OwnedFlag] | None:
    """Where the first such option stands among ``arguments``, and which it is."""
    found = ((index, owned_flag(argument)) for index, argument in enumerate(arguments))
    return next(((index, flag) for index, flag in found if flag is not None), None)
