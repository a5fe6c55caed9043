"""Which process a look is at: from its title, from what stands above it, from a log's prefix, from its frames. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sparkdiag.dumps.kept import kept_id, kept_name, kept_title
from sparkdiag.evidence.dump import DumpThread, ProcessDump
from sparkdiag.evidence.processes import Ranks, Role
from sparkdiag.evidence.titles import classify

NO_RANKS = Ranks()
_CAPTION = 400
_SHORT = 32
_FIRST_PID = 100
"""Below it a container's: the same number in every container."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of a process from beside its stack."""

    pid: int | None = None
    title: str | None = None
    role: Role | None = None
    ranks: Ranks = NO_RANKS
    host: str | None = None

    @property
    def known(self) -> bool:
        return self != _NOBODY


_NOBODY = Identity()
_PID = re.compile(r"(?:\b[Pp][Ii][Dd]\b|--pid|(?<=py-spy dump )-p)[ =:]{1,3}(?P<pid>\d{1,10})\b")
_TITLE = re.compile(r"(?<![\w:])(?:VLLM|vllm|sglang|ray)::[\w.-]{1,100}")
_ROLE = re.compile(
    r"\b(?:EngineCore|APIServer|VllmWorker|Worker|DPCoordinator)(?:Proc\b)?"
    r"(?:[_ ](?:TP|DCP|PP|DP|EP|PCP)\d{1,4})*(?![\w.])"
)
_RANKS = re.compile(
    r"(?<![A-Za-z])(?P<name>TP|DCP|PP|DP|EP|PCP)[ _=:-]?(?:rank[ _=:-]?)?(?P<rank>\d{1,4})(?![\w.])", re.IGNORECASE
)
_RANK = re.compile(r"\b(?:rank|worker)[ _#=:-]{0,2}(?P<rank>\d{1,4})(?![\w.])", re.IGNORECASE)
_AT_HOST = re.compile(r"(?<![\w.@])[a-z_][\w.-]{0,31}@(?P<host>[A-Za-z0-9][\w.-]{0,80})")
_HOST = re.compile(
    r"\b(?:node|host|hostname|pod|container)(?:[ =:]{1,2}|(?=[-_]?\d))(?P<host>[A-Za-z0-9_-][\w.-]{0,80})",
    re.IGNORECASE,
)
_DECORATED = re.compile(r"[=\-#*<>+~]{2,}|# ")
_FRAME_ROLES: dict[str, Role] = {
    "worker_busy_loop": "worker",
    "worker_main": "worker",
    "async_output_busy_loop": "worker",
    "death_pipe_monitor": "worker",
    "monitor_death_pipe": "worker",
    "run_scheduler_process": "worker",
    "event_loop_overlap": "worker",
    "event_loop_normal": "worker",
    "execute_model_ray": "worker",
    "run_busy_loop": "engine_core",
    "run_engine_core": "engine_core",
    "process_input_sockets": "engine_core",
    "process_output_sockets": "engine_core",
    "step_with_batch_queue": "engine_core",
    "_process_engine_step": "engine_core",
    "run_coordinator_process": "dp_coordinator",
    "process_input_socket": "dp_coordinator",
    "monitor_engine_cores": "api_server",
    "run_server": "api_server",
    "run_server_worker": "api_server",
    "run_api_server_worker_proc": "api_server",
}
"""Functions that only one kind of process runs (vLLM's v1, SGLang's scheduler)."""
_API_SERVER_FILES = ("entrypoints/openai/api_server.py", "entrypoints/launcher.py", "sglang/launch_server.py")


def names_process(caption: str) -> bool:
    """Whether a line between two stacks says that another process follows."""
    return identified((caption,)) != _NOBODY


def identified(captions: Iterable[str]) -> Identity:
    """What the lines above a look say of its process; the nearest counts most."""
    found = _NOBODY
    for caption in captions:
        found = _read(caption.strip()[:_CAPTION], found)
    return found


def _read(text: str, found: Identity) -> Identity:
    if (pid := _PID.search(text)) is not None:
        found = replace(found, pid=kept_id(pid["pid"]))
    if (title := _TITLE.search(text)) is not None:
        role, ranks = classify([title[0]])
        return replace(found, title=kept_title(title[0]), role=role, ranks=ranks)
    decorated = _DECORATED.match(text) is not None
    if len(text) > _SHORT and not decorated:
        return found
    if (at := _AT_HOST.search(text) or _HOST.search(text)) is not None:
        found = replace(found, host=kept_name(at["host"].strip("-_")))
    if (named := _ROLE.search(text)) is not None:
        role, ranks = classify(["VLLM::" + named[0].replace("Proc", "").replace(" ", "_")])
        found = replace(found, role=role, ranks=ranks)
    if found.ranks == NO_RANKS:
        found = replace(found, ranks=ranks_in(text))
    return found


def ranks_in(text: str) -> Ranks:
    """``TP0 DP1``, ``rank 3`` (of which nothing says of what: with tensor parallelism alone it is TP's)."""
    ranks = {match["name"].lower(): int(match["rank"]) for match in _RANKS.finditer(text)}
    if not ranks and (rank := _RANK.search(text)) is not None:
        ranks = {"tp": int(rank["rank"])}
    return Ranks(**ranks) if ranks else NO_RANKS


def named(dump: ProcessDump, *, above: Identity, prefix: Identity) -> ProcessDump:
    """``dump`` with what is known of its process from elsewhere, where it does not say so itself."""
    own_pid, title = dump.pid, dump.title or above.title
    pid = own_pid or above.pid
    # The prefix names who wrote the lines: another process may have been dumped by it.
    beside = prefix if pid is None or prefix.pid is None or prefix.pid == pid else Identity(host=prefix.host)
    pid = pid or beside.pid or _pid_of_main(dump)
    role, ranks = (dump.role, dump.ranks) if title is None else classify([title])
    titled_role = role
    if role in (None, "other"):
        role = above.role or beside.role or role_of_frames(dump.threads) or role
    if ranks == NO_RANKS:
        ranks = above.ranks if above.ranks != NO_RANKS else beside.ranks
    if titled_role not in (None, "other", "worker", "engine_core"):
        ranks = NO_RANKS if dump.title is not None else ranks
    return dump.model_copy(
        update={
            "pid": pid,
            "title": title,
            "role": role,
            "ranks": ranks,
            "host": dump.host or above.host or prefix.host,
        }
    )


def _pid_of_main(dump: ProcessDump) -> int | None:
    """On Linux the main thread's id is the process's."""
    if dump.tool not in ("py-spy dump", "py-spy json"):
        return None
    for thread in dump.threads:
        if thread.name == "MainThread":
            found = thread.os_thread_id
            return found if found is not None and _FIRST_PID <= found < 2**31 else None
    return None


def role_of_frames(threads: Sequence[DumpThread]) -> Role | None:
    """The role whose functions run in the process; the innermost decides, because a forked child keeps its parent's
    frames below its own."""
    for thread in sorted(threads, key=lambda one: one.name != "MainThread"):
        for frame in thread.frames:
            if (role := _FRAME_ROLES.get(frame.name)) is not None:
                return role
            if frame.path is not None and frame.path.endswith(_API_SERVER_FILES):
                return "api_server"
    return None
