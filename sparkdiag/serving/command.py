"""The server's command line and environment, decided without starting anything.

Who wins: the scenario's own arguments (the user's extra ones are part of it by now) come after those that sparkdiag
derives from it, so a later one overrides; options that are sparkdiag's own (``scenario.vllm_flags``) are refused there.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import FileProof
from sparkdiag.probe.locate import PLUGIN, package_folder, probe_environment
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.vllm_flags import first_owned, flag_name

LOOPBACK = "127.0.0.1"
SPREAD_CORES = "{cores-per-rank}"
"""In a scenario's ``[server.env]``: replaced by the machine's cores dealt out to the TP ranks (``0,1|2,3``)."""
LONGEST_SOCKET_FOLDER = 60
"""sun_path holds 107 characters, and vLLM appends a 36-character name to the folder (zmq another suffix)."""


class ServingEnvironment(Protocol):
    """What the command needs of ``sparkdiag.environment.model.Environment``."""

    @property
    def serve_prefix(self) -> tuple[str, ...]: ...
    @property
    def pythonpath(self) -> tuple[str, ...]: ...
    @property
    def env(self) -> dict[str, str]: ...
    @property
    def drop_env(self) -> tuple[str, ...]: ...
    @property
    def model_path(self) -> str | None: ...
    @property
    def expected_files(self) -> tuple[FileProof, ...]: ...


class ServerCommand(Value):
    """How the server is started. ``env`` is laid over sparkdiag's own environment, ``drop_env`` is taken out of it."""

    argv: tuple[str, ...]
    env: dict[str, str]
    drop_env: tuple[str, ...] = ()
    host: str = LOOPBACK
    port: int

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}"


DROPPED = ("VLLM_API_KEY", "VLLM_PORT", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT")
"""A key would lock sparkdiag's own client out; the rest would change which Python runs, or which port."""


def server_command(
    *,
    scenario: Scenario,
    environment: ServingEnvironment,
    port: int,
    probe_dir: Path | None,
    run_private_dir: Path,
    inherited: Mapping[str, str] | None = None,
    cores: Sequence[int] = (0,),
    ptracer_pid: int | None = None,
) -> ServerCommand:
    """Put the command together.

    ``probe_dir``: where the probe writes, None for no probe. ``run_private_dir``: the server's temporary folder.
    ``inherited``: the environment that ``env`` will be laid over (for PYTHONPATH and VLLM_PLUGINS). ``cores``: those
    the server may use. ``ptracer_pid``: who may sample it, with its descendants, where Yama asks.

    Raises ``UsageError`` for arguments that contradict, ``EnvironmentFault`` when the folder's path is too long for
    the server's sockets.
    """
    server = scenario.server
    model = server.model or environment.model_path
    if model is None:
        raise UsageError(
            f"scenario {scenario.name} names no model and the environment brings none",
            remedy="sparkdiag repro --model PATH_OR_NAME",
        )
    _check_arguments(scenario)
    own = _own_arguments(scenario, prefix=environment.serve_prefix, model=model, port=port)
    return ServerCommand(
        argv=(*environment.serve_prefix, *own, *server.args),
        env=_environment(
            scenario,
            environment,
            probe_dir=probe_dir,
            private_dir=run_private_dir,
            inherited=inherited or {},
            cores=cores,
            ptracer_pid=ptracer_pid,
        ),
        drop_env=(*DROPPED, *environment.drop_env),
        port=port,
    )


def _check_arguments(scenario: Scenario) -> None:
    """The last look before a process is started, for scenarios that no file and no command line made."""
    found = first_owned(scenario.server.args)
    if found is not None:
        index, flag = found
        name = flag_name(scenario.server.args[index])
        raise UsageError(
            f"scenario {scenario.name}, server.args[{index}]: {name} is sparkdiag's own to set", remedy=flag.remedy
        )


def cores_per_rank(cores: Sequence[int], *, ranks: int) -> str:
    """Deal cores out to ranks in ``VLLM_CPU_OMP_THREADS_BIND``'s form; with fewer cores than ranks they are shared."""
    share = max(1, len(cores) // ranks)
    ordered = sorted(cores)
    return "|".join(
        ",".join(str(core) for core in (ordered * ranks)[rank * share : (rank + 1) * share]) for rank in range(ranks)
    )


def _own_arguments(scenario: Scenario, *, prefix: tuple[str, ...], model: str, port: int) -> tuple[str, ...]:
    server = scenario.server
    by_position = prefix[-1:] == ("serve",)
    lengths = ("--max-model-len", str(server.max_model_len)) if server.max_model_len else ()
    return (
        *((model,) if by_position else ("--model", model)),
        "--served-model-name",
        server.served_model_name,
        "--host",
        LOOPBACK,
        "--port",
        str(port),
        "--tensor-parallel-size",
        str(server.tp),
        "--decode-context-parallel-size",
        str(server.dcp),
        "--max-num-batched-tokens",
        str(server.chunk_tokens),
        *lengths,
    )


def _environment(
    scenario: Scenario,
    environment: ServingEnvironment,
    *,
    probe_dir: Path | None,
    private_dir: Path,
    inherited: Mapping[str, str],
    cores: Sequence[int],
    ptracer_pid: int | None,
) -> dict[str, str]:
    if len(str(private_dir)) > LONGEST_SOCKET_FOLDER:
        raise EnvironmentFault(
            f"the path of the server's temporary folder is too long for its sockets: {private_dir}",
            remedy="TMPDIR=/tmp sparkdiag repro",
        )
    asked = {**environment.env, **scenario.server.env}
    spread = cores_per_rank(cores, ranks=scenario.server.tp)
    probing = probe_dir is not None
    path = (
        *environment.pythonpath,
        *((str(package_folder()),) if probing else ()),
        *filter(None, (asked.get("PYTHONPATH", inherited.get("PYTHONPATH")),)),
    )
    env = {
        "PYTHONUNBUFFERED": "1",
        **{name: value.replace(SPREAD_CORES, spread) for name, value in asked.items()},
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "TMPDIR": str(private_dir),
        "VLLM_RPC_BASE_PATH": str(private_dir),
    }
    if "TORCHINDUCTOR_CACHE_DIR" not in {*env, *inherited}:
        # Its default lies in TMPDIR: with a private one every start would compile again.
        env["TORCHINDUCTOR_CACHE_DIR"] = _inductor_cache(inherited)
    if path:
        env["PYTHONPATH"] = ":".join(path)
    if probe_dir is not None:
        also = tuple(file.module for file in environment.expected_files)
        env |= probe_environment(scenario, folder=probe_dir, ptracer_pid=ptracer_pid, also=also)
        allowed = env.get("VLLM_PLUGINS", inherited.get("VLLM_PLUGINS"))
        if allowed is not None and PLUGIN not in allowed.split(","):
            env["VLLM_PLUGINS"] = ",".join(filter(None, (allowed, PLUGIN)))
    return env


def _inductor_cache(inherited: Mapping[str, str]) -> str:
    """The folder torch would use without a private TMPDIR."""
    user = next((inherited[name] for name in ("LOGNAME", "USER") if inherited.get(name)), "sparkdiag")
    return f"{inherited.get('TMPDIR', '/tmp')}/torchinductor_{user.replace('/', '_')}"  # noqa: S108 - torch's own choice
