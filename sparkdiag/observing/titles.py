"""Who a process is, from its title or command line alone. Pure.

vLLM names its processes with setproctitle (``vllm/utils/system_utils.py``, ``set_process_title``): prefix (environment
``VLLM_PROCESS_NAME_PREFIX``, "VLLM" by default), two colons, name, ranks. A single API server keeps its command line.
The kernel's ``comm`` is cut at 15 characters, so ``VLLM::Worker_TP0`` is not in it: read the command line.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from sparkdiag.evidence.processes import Ranks, Role

TITLE_CHARACTERS = 300
"""A title longer than this is cut: it is there to be recognised, not to be run again."""
_MOST_ARGUMENTS = 2000
REMOVED = "[removed]"

_TITLE = re.compile(
    r"[^\x00/]{0,64}?::"
    r"(?P<name>EngineCore|Worker|VllmWorker|APIServer|DP_?Coordinator)(?P<ranks>(?:[_-][A-Za-z]*\d+)*)"
)
_ROLES: dict[str, Role] = {
    "EngineCore": "engine_core",
    "Worker": "worker",
    "VllmWorker": "worker",
    "APIServer": "api_server",
    "DPCoordinator": "dp_coordinator",
    "DP_Coordinator": "dp_coordinator",
}
_RANK = re.compile(r"[_-](?P<dimension>[A-Za-z]+)(?P<rank>\d{1,9})(?![A-Za-z0-9])")
_API_SERVER_MODULES = frozenset(
    {
        "vllm.entrypoints.openai.api_server",
        "vllm.entrypoints.api_server",
        "vllm.entrypoints.cli.main",
        "vllm",
    }
)
_PYTHON = re.compile(r"python[0-9.]*")
_PYTHON_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})

_SENSITIVE = (
    r"(?:token|secret|password|passwd|passphrase|api[-_]?keys?|access[-_]?keys?(?:[-_]id)?|private[-_]?key"
    r"|credentials?|authori[sz]ation|auth|bearer|cookie)"
)
_SECRET_OPTION = re.compile(rf"--?(?:[A-Za-z0-9]+[-_.])*{_SENSITIVE}", re.IGNORECASE)
_SECRET_ASSIGNMENT = re.compile(
    rf"(?P<name>(?:[A-Za-z0-9]+[-_.])*{_SENSITIVE}[\"']?\s*[=:]\s*)(?P<value>[\"']?[^\s\"',}}&]+[\"']?)",
    re.IGNORECASE,
)
_SECRET_SCHEME = re.compile(r"\b(?P<scheme>bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}", re.IGNORECASE)
_SECRET_SHAPE = re.compile(r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[oprsu]_[A-Za-z0-9]{16,})")
_USER_INFO = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/\s@]+@", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa1-\u02ff\u0370-\u1fff\u3040-\ud7ff]")


def classify(cmdline: Sequence[str]) -> tuple[Role, Ranks]:
    """Role and ranks of the process with this command line; ``other`` for everything that is not vLLM's."""
    arguments = [argument for argument in cmdline[:_MOST_ARGUMENTS] if argument]
    titled = _TITLE.fullmatch(" ".join(arguments[:16]).strip())
    if titled is not None:
        return _ROLES[titled["name"]], _ranks(titled["ranks"])
    if len(arguments) == 1:
        arguments = arguments[0].split()
    return _role_of_command(arguments), Ranks()


def is_sampled(role: Role) -> bool:
    """Whether a process of this role can say anything about a stall."""
    return role not in ("resource_tracker", "other")


def is_sparkdiag(cmdline: Sequence[str]) -> bool:
    """Whether this is one of sparkdiag's own: the guardian above a server, or a py-spy."""
    arguments = [argument for argument in cmdline[:_MOST_ARGUMENTS] if argument]
    if not arguments:
        return False
    if PurePosixPath(arguments[0]).name in ("py-spy", "sparkdiag"):
        return True
    module, script, _rest = _python_target(arguments)
    if module is not None:
        return module.split(".", 1)[0] == "sparkdiag"
    return script is not None and PurePosixPath(script).name in ("py-spy", "sparkdiag")


def _ranks(suffix: str) -> Ranks:
    known = frozenset(Ranks.model_fields)
    found = {
        match["dimension"].lower(): int(match["rank"])
        for match in _RANK.finditer(suffix)
        if match["dimension"].lower() in known
    }
    return Ranks(**found)


def _python_target(arguments: Sequence[str]) -> tuple[str | None, str | None, Sequence[str]]:
    """Module (or ``-c`` code under the name ``-c``), script, and what follows, of a Python command line."""
    if not arguments or not _PYTHON.fullmatch(PurePosixPath(arguments[0]).name):
        return None, None, ()
    index = 1
    while index < len(arguments):
        argument = arguments[index]
        if argument in _PYTHON_OPTIONS_WITH_VALUE:
            index += 2
        elif re.fullmatch(r"-[A-Za-z]*[mc]", argument):
            if argument.endswith("m"):
                return (arguments[index + 1] if index + 1 < len(arguments) else None), None, arguments[index + 2 :]
            return None, None, arguments[index:]
        elif argument.startswith("-"):
            index += 1
        else:
            return None, argument, arguments[index + 1 :]
    return None, None, ()


def _role_of_command(arguments: Sequence[str]) -> Role:
    module, script, rest = _python_target(arguments)
    if module is None and script is None:
        if rest and re.search(r"multiprocessing\.resource_tracker\b", " ".join(rest[:4])):
            return "resource_tracker"
        if not rest and arguments and PurePosixPath(arguments[0]).name == "vllm":
            script, rest = arguments[0], arguments[1:]
    if module is not None:
        is_cli = module in ("vllm", "vllm.entrypoints.cli.main")
        return "api_server" if module in _API_SERVER_MODULES and (not is_cli or "serve" in rest[:1]) else "other"
    if script is not None:
        path = PurePosixPath(script)
        if path.name == "vllm" and "serve" in rest[:1]:
            return "api_server"
        if path.name == "api_server.py" and "entrypoints" in path.parts:
            return "api_server"
    return "other"


def printable(text: str, *, limit: int) -> str:
    """``text`` without control, bidirectional and other invisible characters, cut at ``limit`` characters."""
    cleaned = _UNPRINTABLE.sub("\ufffd", text[: limit + 1])
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def shown_title(cmdline: Sequence[str]) -> str:
    """The command line for people: secrets removed, unprintable characters replaced, cut."""
    shown: list[str] = []
    characters = 0
    hiding: Literal["no", "next", "more"] = "no"
    arguments = [argument for argument in cmdline[:_MOST_ARGUMENTS] if argument]
    if len(arguments) == 1:
        arguments = arguments[0].split()
    for argument in arguments:
        if characters > TITLE_CHARACTERS:
            break
        if hiding == "next" or (hiding == "more" and not argument.startswith("-")):
            # --api-key takes several values, so hiding goes on up to the next option.
            hiding, part = "more", REMOVED
        else:
            hiding, part = ("next" if _announces_secret(argument) else "no"), _without_secrets(argument)
        shown.append(part)
        characters += len(part) + 1
    text = _SECRET_SCHEME.sub(lambda match: f"{match['scheme']} {REMOVED}", " ".join(shown))
    return printable(text, limit=TITLE_CHARACTERS)


def _announces_secret(argument: str) -> bool:
    return _SECRET_OPTION.fullmatch(argument) is not None or argument.lower().rstrip(":") == "authorization"


def _without_secrets(argument: str) -> str:
    text = argument[: 4 * TITLE_CHARACTERS]
    text = _SECRET_SCHEME.sub(lambda match: f"{match['scheme']} {REMOVED}", text)
    text = _SECRET_ASSIGNMENT.sub(lambda match: match["name"] + REMOVED, text)
    text = _SECRET_SHAPE.sub(REMOVED, text)
    return _USER_INFO.sub(lambda match: match["scheme"] + REMOVED + "@", text)
