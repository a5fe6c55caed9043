"""What the environment, the clone and the options are worth for a run. Pure."""

from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.need import Asked
from sparkdiag.environment.interrogate import Findings
from sparkdiag.environment.plan import BuildPlan
from sparkdiag.environment.spec import LAB_RELEASE
from sparkdiag.errors import SparkdiagError, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override

_WHY_ENVIRONMENT = "the server under test is launched from it"


def judge_sizes(asked: Asked) -> Finding:
    """DCP against TP, by the same check that ``repro`` makes."""
    why = "DCP reuses the TP ranks; vLLM itself says so only after minutes of loading"
    try:
        server = override(asked.scenario, dcp=asked.dcp, tp=asked.tp).server
    except UsageError as error:
        seen = "; ".join((error.message, *error.details))
        return Finding(
            name="dcp-tp", status="fail", seen=seen, why=why, next_step=error.remedy or "sparkdiag scenario show NAME"
        )
    return Finding(name="dcp-tp", status="ok", seen=f"DCP {server.dcp} divides TP {server.tp}", why=why)


def from_error(name: str, error: SparkdiagError, *, why: str) -> Finding:
    """A refusal of one of sparkdiag's own parts, with its remedy."""
    return Finding(
        name=name,
        status="fail",
        seen="; ".join((error.message, *error.details[-2:])),
        why=why,
        next_step=error.remedy or "sparkdiag repro --help",
    )


def judge_built(spec: str, *, vllm_version: str, installed_bytes: int) -> Finding:
    return Finding(
        name="environment",
        status="ok",
        seen=f"{spec}: vLLM {vllm_version}, built, {installed_bytes / 1e9:.1f} GB in the cache",
        why=_WHY_ENVIRONMENT,
    )


def judge_unbuilt(spec: str, plan: BuildPlan | None) -> Finding:
    """Not built is no fault: the first run builds it. ``plan`` is None where its packages are not resolved yet."""
    forecast = plan.forecast if plan is not None else "its packages are resolved first, which needs the network"
    return Finding(
        name="environment",
        status="ok",
        seen=f"{spec} is not built yet; the first repro builds it: {forecast}",
        why=_WHY_ENVIRONMENT,
        next_step=f"sparkdiag env build {spec}    (to have it over with)",
    )


class ExistingLook(Value):
    """An interpreter that was asked."""

    python: str
    findings: Findings
    notes: tuple[str, ...] = ()


def judge_existing(look: ExistingLook, *, lab: bool) -> Finding:
    found = look.findings
    python = ".".join(map(str, found.python_version))
    if found.package_path is None:
        return Finding(
            name="environment",
            status="fail",
            seen=f"{look.python} (Python {python}) has no vllm",
            why=_WHY_ENVIRONMENT,
            next_step=f"{look.python} -m pip install vllm, or name another: --env existing:PYTHON",
        )
    seen = f"vLLM {found.vllm_version or 'of unknown version'}, torch {found.torch_version or '?'}, Python {python}"
    seen = "; ".join((seen, *look.notes))
    if found.torch_version is None:
        return Finding(
            name="environment",
            status="warn",
            seen=f"{seen}: no torch that says its version",
            why=_WHY_ENVIRONMENT,
            next_step=f"{look.python} -c 'import torch'",
        )
    if lab and (found.vllm_version or "").split("+")[0] != LAB_RELEASE:
        return Finding(
            name="environment",
            status="warn",
            seen=f"{seen}; the lab is written for vLLM {LAB_RELEASE}",
            why="the lab replaces parts of vLLM that change between releases",
            next_step="sparkdiag repro --env lab",
        )
    return Finding(name="environment", status="ok", seen=seen, why=_WHY_ENVIRONMENT)


def judge_model(model: str | None, *, is_path: bool) -> Finding:
    """A model that could be looked up, where it is a path, was found."""
    why = "a server without its model ends after its first minute"
    if model is None:
        return Finding(
            name="model",
            status="fail",
            seen="neither the scenario nor your config file names a model, and the environment brings none",
            why="repro starts nothing without a model",
            next_step='sparkdiag doctor --model PATH (repro takes the same), or model = "PATH" in your config file',
        )
    seen = f"{model} is there" if is_path else f"{model}: a hub's name; whether it can be had is not tried here"
    return Finding(name="model", status="ok", seen=seen, why=why)


class CodeLook(Value):
    """Where the scenario's functions are, in the vLLM under test."""

    defined: dict[str, str] = {}
    """File (relative to the import root) by function."""
    absent: tuple[str, ...] = ()
    """Functions of a signature that no watched file defines."""
    suspect_files: tuple[str, ...] = ()
    """Those of the suspect commit's paths that are there."""


def judge_code(look: CodeLook, scenario: Scenario, *, vllm_version: str | None) -> Finding:
    why = "a stall is named by these functions; where they are missing none can be found"
    if not look.defined and look.absent:
        names = ", ".join(look.absent)
        return Finding(
            name="suspect-code",
            status="fail",
            seen=f"vLLM {vllm_version or '(unknown version)'} defines none of {names} where the scenario looks",
            why=why,
            next_step="--env existing:PYTHON of the revision in question, or another scenario: sparkdiag scenario list",
        )
    if not look.defined:
        return Finding(name="suspect-code", status="ok", seen="the scenario names no module to look into", why=why)
    first = next(iter(look.defined.items()))
    more = f" and {len(look.defined) - 1} more" if len(look.defined) > 1 else ""
    files = (
        f"; {len(look.suspect_files)} of {len(scenario.suspect.paths)} suspect files" if scenario.suspect.paths else ""
    )
    return Finding(name="suspect-code", status="ok", seen=f"{first[0]} in {first[1]}{more}{files}", why=why)


class CloneLook(Value):
    """A clone that was asked."""

    folder: str
    readable: bool = True
    shallow: bool = False
    partial: bool = False
    held: str | None = None
    """The suspect commit or the twin of it that the clone has."""
    contained: str | None = None
    """Whether the checked-out revision contains it, in words; None where no revision is known."""


def judge_clone(look: CloneLook, scenario: Scenario) -> tuple[Finding, ...]:
    why = "whether the running revision contains the suspect commit is proved from this clone"
    git = f"git -C {look.folder}"
    if not look.readable:
        seen = f"{look.folder} is no git clone that can be read"
        step = f"{git} status    (git says why; a clone of another user needs safe.directory)"
        return (Finding(name="clone", status="fail", seen=seen, why=why, next_step=step),)
    commits = tuple(filter(None, (scenario.suspect.commit, *scenario.suspect.twins)))
    found: list[Finding] = []
    if look.shallow:
        seen = f"{look.folder} is shallow: its history is cut off"
        found.append(Finding(name="clone", status="warn", seen=seen, why=why, next_step=f"{git} fetch --unshallow"))
    if look.partial:
        seen = f"{look.folder} is partial: file contents were left at the remote, and nothing is fetched during a run"
        step = f"{git} fetch --refetch --no-filter; {git} config --unset remote.origin.promisor"
        found.append(
            Finding(name="clone", status="warn", seen=seen, why="the source that runs cannot be proved", next_step=step)
        )
    if commits and look.held is None:
        names = " nor its twin ".join(commit[:10] for commit in commits)
        seen = f"{look.folder} holds {'neither ' if len(commits) > 1 else 'no '}{names}"
        found.append(Finding(name="clone", status="warn", seen=seen, why=why, next_step=f"{git} fetch --all"))
    if found:
        return tuple(found)
    holds = f"holds the suspect commit {look.held[:10]}" if look.held else "the scenario names no suspect commit"
    contained = f"; {look.contained}" if look.contained else ""
    return (Finding(name="clone", status="ok", seen=f"{look.folder}: whole, {holds}{contained}", why=why),)


def judge_git(version: str | None, *, lab: bool) -> Finding:
    why = "the lab's source is a git history, and a revision is proved by git"
    if version is not None:
        return Finding(name="git", status="ok", seen=version, why=why)
    step = "sudo apt-get install git (or your system's way)"
    return Finding(name="git", status="fail" if lab else "warn", seen="git is not on PATH", why=why, next_step=step)


def judge_uv(version: str | None, *, problem: str = "", remedy: str | None = None) -> Finding:
    why = "it builds the environment"
    if version is not None:
        seen = f"{version}; whether a package index answers is not tried here (no network use)"
        return Finding(name="uv", status="ok", seen=seen, why=why)
    return Finding(name="uv", status="fail", seen=problem, why=why, next_step=remedy or "python -m pip install uv")
