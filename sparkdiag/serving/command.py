"""The server's command line and environment, decided without starting anything.

Who wins: the scenario's own arguments come after those that sparkdiag derives from it, the user's extra arguments last,
so a later one overrides. Six options are not the user's to set this way, because sparkdiag itself depends on them:
host, port, served name and API key (``--api-key``) are refused; the model, the sizes and the chunk may be repeated with
the value they already have, a different value is refused with the sparkdiag option that sets it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.probe.locate import PLUGIN, package_folder, probe_environment
from sparkdiag.scenario.model import Scenario

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


class _Fixed(NamedTuple):
    """A server option that sparkdiag sets."""

    names: tuple[str, ...]
    value: str | None
    remedy: str


DROPPED = ("VLLM_API_KEY", "VLLM_PORT", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT")
"""A key would lock sparkdiag's own client out; the rest would change which Python runs, or which port."""


def server_command(
    *,
    scenario: Scenario,
    environment: ServingEnvironment,
    port: int,
    extra_args: Sequence[str] = (),
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
    check_sizes(tp=server.tp, dcp=server.dcp)
    fixed = _fixed_options(scenario, model)
    own = _own_arguments(scenario, prefix=environment.serve_prefix, model=model, port=port)
    scenario_args = _without_fixed(server.args, fixed, where=f"scenario {scenario.name}, server.args")
    user_args = _without_fixed(extra_args, fixed, where="the arguments after --")
    return ServerCommand(
        argv=(*environment.serve_prefix, *own, *scenario_args, *user_args),
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


def check_sizes(*, tp: int, dcp: int) -> None:
    """vLLM finds this out only after a long model load (it shards KV over the TP ranks' own processes)."""
    if tp % dcp:
        raise UsageError(
            f"decode context parallel size {dcp} does not divide tensor parallel size {tp}: DCP reuses the TP ranks",
            remedy=f"sparkdiag repro --dcp {dcp} --tp {dcp}",
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


def _fixed_options(scenario: Scenario, model: str) -> tuple[_Fixed, ...]:
    server = scenario.server
    ask = "sparkdiag repro {} VALUE"
    return (
        _Fixed(("--port",), None, "leave it out: sparkdiag picks a free port on the loopback interface"),
        _Fixed(("--host", "--uds"), None, "leave it out: the server listens on the loopback interface only"),
        _Fixed(("--served-model-name",), server.served_model_name, "leave it out"),
        _Fixed(("--api-key",), None, "leave it out: the server listens on the loopback interface only"),
        _Fixed(("--model",), model, ask.format("--model")),
        _Fixed(("--tensor-parallel-size", "-tp"), str(server.tp), ask.format("--tp")),
        _Fixed(("--decode-context-parallel-size", "-dcp"), str(server.dcp), ask.format("--dcp")),
        _Fixed(("--max-num-batched-tokens",), str(server.chunk_tokens), ask.format("--chunk-tokens")),
    )


def _without_fixed(args: Sequence[str], fixed: tuple[_Fixed, ...], *, where: str) -> tuple[str, ...]:
    """``args`` less the options that repeat what is set anyway. vLLM takes ``--a-b``, ``--a_b`` and ``--a=b``."""
    kept: list[str] = []
    rest = list(args)
    while rest:
        item = rest.pop(0)
        name, has_value, value = item.partition("=")
        option = next((option for option in fixed if _same_option(name, option)), None)
        if option is None:
            kept.append(item)
            continue
        if not has_value:
            value = rest.pop(0) if rest else ""
        if option.value is None or value != option.value:
            # A value that none may have (an API key) is not repeated on a terminal either.
            given, set_to = (f"{name} {value}", f" (it is {option.value})") if option.value is not None else (name, "")
            raise UsageError(f"{where}: {given} contradicts what sparkdiag sets{set_to}", remedy=option.remedy)
    return tuple(kept)


def _same_option(name: str, option: _Fixed) -> bool:
    return name.startswith("-") and name.replace("_", "-") in option.names


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
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        **{name: value.replace(SPREAD_CORES, spread) for name, value in asked.items()},
        "TMPDIR": str(private_dir),
        "VLLM_RPC_BASE_PATH": str(private_dir),
    }
    if "TORCHINDUCTOR_CACHE_DIR" not in {*env, *inherited}:
        # Its default lies in TMPDIR: with a private one every start would compile again.
        env["TORCHINDUCTOR_CACHE_DIR"] = _inductor_cache(inherited)
    if path:
        env["PYTHONPATH"] = ":".join(path)
    if probe_dir is not None:
        env |= probe_environment(scenario, folder=probe_dir, ptracer_pid=ptracer_pid)
        allowed = env.get("VLLM_PLUGINS", inherited.get("VLLM_PLUGINS"))
        if allowed is not None and PLUGIN not in allowed.split(","):
            env["VLLM_PLUGINS"] = ",".join(filter(None, (allowed, PLUGIN)))
    return env


def _inductor_cache(inherited: Mapping[str, str]) -> str:
    """The folder torch would use without a private TMPDIR."""
    user = next((inherited[name] for name in ("LOGNAME", "USER") if inherited.get(name)), "sparkdiag")
    return f"{inherited.get('TMPDIR', '/tmp')}/torchinductor_{user.replace('/', '_')}"  # noqa: S108 - torch's own choice
