"""vLLM options that sparkdiag sets itself, or that no run may have: the one table of them. Pure.

vLLM reads its command line with argparse, which also takes ``--a_b``, ``--a=b`` and any unambiguous beginning of a name
(``--ho`` for ``--host``), so all of these are looked up here.
"""

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


_LOOPBACK = (
    "leave it out: the server listens on a free port of the loopback interface only, and only sparkdiag calls it"
)

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
    OwnedFlag(("--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--ssl-cert-reqs"), None, _LOOPBACK),
    OwnedFlag(("--hf-token",), None, "leave it out; set it in the shell that starts sparkdiag: export HF_TOKEN=..."),
    OwnedFlag(("--config",), None, "leave it out and name its options one by one: a file of them cannot be checked"),
)


def flag_name(argument: str) -> str:
    """``--max_model_len=8000`` -> ``--max-model-len``; empty for what is no option."""
    return argument.split("=", 1)[0].replace("_", "-") if argument.startswith("-") else ""


def owned_flag(argument: str) -> OwnedFlag | None:
    """The option of the table that vLLM would take ``argument`` for."""
    name = flag_name(argument)
    if not name.strip("-"):
        return None
    for flag in OWNED:
        if name in flag.names:
            return flag
    return next((flag for flag in OWNED if any(known.startswith(name) for known in flag.names)), None)


def first_owned(arguments: Sequence[str]) -> tuple[int, OwnedFlag] | None:
    """Where the first such option stands among ``arguments``, and which it is."""
    found = ((index, owned_flag(argument)) for index, argument in enumerate(arguments))
    return next(((index, flag) for index, flag in found if flag is not None), None)
