"""Who a process is, from its title or command line alone. Pure.

vLLM names its processes with setproctitle (``vllm/utils/system_utils.py``, ``set_process_title``): prefix (environment
``VLLM_PROCESS_NAME_PREFIX``, "VLLM" by default), two colons, name, ranks. A single API server keeps its command line.
The kernel's ``comm`` is cut at 15 characters, so ``VLLM::Worker_TP0`` is not in it: read the command line.

SGLang does the same (``sglang::scheduler_DP0_TP1``). Its scheduler schedules *and* runs the model, one process a rank:
it is told here as a worker, because what it does is compared rank with rank. Its detokenizer is nobody in a stall.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from sparkdiag.evidence.processes import Ranks, Role
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.harmless.printable import printable

TITLE_CHARACTERS = 300
"""A title longer than this is cut: it is there to be recognised, not to be run again."""
_MOST_ARGUMENTS = 2000
_MOST_CHARACTERS = 16 * 1024

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
_SGLANG_TITLE = re.compile(
    r"sglang::(?P<name>scheduler|data_parallel_controller|tokenizer_worker|http_server)(?P<ranks>(?:[_-][A-Za-z]+\d+)*)"
)
_SGLANG_ROLES: dict[str, Role] = {
    "scheduler": "worker",
    "data_parallel_controller": "dp_coordinator",
    "tokenizer_worker": "api_server",
    "http_server": "api_server",
}
_SGLANG_MODULES = frozenset({"sglang.launch_server", "sglang.srt.entrypoints.http_server"})
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


def classify(cmdline: Sequence[str]) -> tuple[Role, Ranks]:
    """Role and ranks of the process with this command line; ``other`` for everything that is no engine's."""
    arguments = [argument for argument in cmdline[:_MOST_ARGUMENTS] if argument]
    title = " ".join(arguments[:16]).strip()
    titled = _TITLE.fullmatch(title)
    if titled is not None:
        return _ROLES[titled["name"]], _ranks(titled["ranks"])
    sglang = _SGLANG_TITLE.match(title)
    if sglang is not None:
        return _SGLANG_ROLES[sglang["name"]], _ranks(sglang["ranks"])
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
        if not rest and arguments and PurePosixPath(arguments[0]).name in ("vllm", "sglang"):
            script, rest = arguments[0], arguments[1:]
    if module is not None:
        if module in _SGLANG_MODULES:
            return "api_server"
        is_cli = module in ("vllm", "vllm.entrypoints.cli.main")
        return "api_server" if module in _API_SERVER_MODULES and (not is_cli or "serve" in rest[:1]) else "other"
    if script is not None:
        path = PurePosixPath(script)
        if path.name in ("vllm", "sglang") and "serve" in rest[:1]:
            return "api_server"
        if path.name == "api_server.py" and "entrypoints" in path.parts:
            return "api_server"
    return "other"


def shown_title(cmdline: Sequence[str]) -> str:
    """The command line for people: secrets removed, unseen characters made visible, cut."""
    arguments = [argument for argument in cmdline[:_MOST_ARGUMENTS] if argument]
    if len(arguments) == 1:
        arguments = arguments[0][:_MOST_CHARACTERS].split()
    return printable(" ".join(redact_argv(arguments)), limit=TITLE_CHARACTERS)
