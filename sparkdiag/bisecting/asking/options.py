"""What was typed after ``sparkdiag bisect``, and which of it contradicts itself."""

import re
from pathlib import Path

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Target

LOOKS_FOR = "stall, frame:NAME, wrong-needle, crash"
LONGEST_S = 1e7
MOST_REPEATS = 100
HELP = "sparkdiag bisect --help"
_NAME = r"(?:[^\W\d]\w{0,199}|<(?:lambda|listcomp|dictcomp|genexpr|module|locals)>)"
_FUNCTION = re.compile(rf"{_NAME}(?:\.{_NAME}){{0,9}}")
"""As py-spy writes it: bare, or from Python 3.11 on with its class."""


class Asked(Value):
    """The options of ``bisect``, as typed."""

    scenario: str | None = None
    env: str | None = None
    dcp: int | None = None
    tp: int | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    baseline_s: float | None = None
    timeout_s: float | None = None
    keep_priority: bool = False
    extra_args: tuple[str, ...] = ()
    repo: str | None = None
    good: str | None = None
    bad: str | None = None
    around: str | None = None
    span: int | None = None
    first_parent: bool = False
    only_watched_paths: bool = False
    suspect: tuple[str, ...] = ()
    axis: str | None = None
    releases: str | None = None
    looks_for: str = "stall"
    good_run: str | None = None
    bad_run: str | None = None
    repeat: int = 1
    confidence: float | None = None
    reuse: bool = True
    controls: bool = True
    confirm: bool = False
    dry_run: bool = False
    resume: bool = False
    folder: str | None = None
    export_log: str | None = None
    import_log: str | None = None
    out: str = "runs"
    wait: bool = True

    @property
    def exports_only(self) -> bool:
        """The log of an earlier bisection is wanted, and nothing is searched."""
        return self.export_log is not None and self.folder is not None and not self.resume


COMMIT_OPTIONS = ("repo", "good", "bad", "around", "span", "first_parent", "only_watched_paths", "suspect")
"""They choose or search commits, and mean nothing on another axis."""
KEPT_ON_RESUME = frozenset({"resume", "folder", "out", "wait", "export_log"})
"""They do not decide the answer."""


def typed(asked: Asked) -> tuple[str, ...]:
    """Names of the options that are not at their default, in the order of the help."""
    return tuple(name for name, field in Asked.model_fields.items() if getattr(asked, name) != field.default)


def option(name: str) -> str:
    """``good_run`` as it is typed."""
    special = {"export_log": "--export", "import_log": "--import", "reuse": "--no-reuse", "controls": "--no-controls"}
    if name == "extra_args":
        return "--"
    return special.get(name, "--" + name.replace("_", "-"))


def check(asked: Asked) -> None:
    """Raises ``UsageError`` for options that contradict each other or hold what they cannot hold."""
    given = typed(asked)
    if asked.extra_args and not asked.extra_args[0].startswith("-"):
        raise UsageError(
            f"bisect takes no argument {asked.extra_args[0]!r}; what stands after -- are vLLM's options",
            remedy=f"a scenario is named with --scenario {asked.extra_args[0]}; see: {HELP}",
        )
    _check_numbers(asked)
    target_of(asked.looks_for)
    _check_kept_search(asked, given)
    _check_what_is_searched(asked, given)


def target_of(looks_for: str) -> Target:
    """``--looks-for``. Raises ``UsageError`` that names what is allowed."""
    kind, colon, name = looks_for.partition(":")
    match kind:
        case "stall" | "wrong-needle" | "crash" if not colon:
            return Target(what=kind)
        case "frame" if _FUNCTION.fullmatch(name):
            return Target(what="frame", frame=name)
        case "frame":
            raise UsageError(
                f"--looks-for {looks_for!r}: {name!r} is no name of a function",
                remedy="--looks-for frame:_fp8_mqa_logits_torch (the bare name, or with its class; no module)",
            )
    raise UsageError(f"--looks-for {looks_for!r} is not known; allowed: {LOOKS_FOR}", remedy="--looks-for stall")


def _check_numbers(asked: Asked) -> None:
    if not 1 <= asked.repeat <= MOST_REPEATS:
        raise UsageError(
            f"--repeat: found {asked.repeat}; allowed: an integer from 1 to {MOST_REPEATS}", remedy="--repeat 2"
        )
    if asked.confidence is not None and not 0.5 < asked.confidence < 1:
        raise UsageError(
            f"--confidence: found {asked.confidence:g}; allowed: a probability between 0.5 and 1, neither of them",
            remedy="--confidence 0.95",
        )
    if asked.confidence is not None and asked.repeat > 1:
        raise UsageError(
            "--repeat and --confidence: one asks for runs that agree, the other decides by itself what to run again",
            remedy="give one of them",
        )
    if asked.span is not None and asked.span < 1:
        raise UsageError(f"--span: found {asked.span}; allowed: an integer, at least 1", remedy="--span 32")
    if asked.baseline_s is not None and not 0 < asked.baseline_s < LONGEST_S:
        raise UsageError(
            f"--baseline-s: found {asked.baseline_s:g}; allowed: seconds, greater than 0, below {LONGEST_S:g}",
            remedy="leave it out: the healthy end gives the baseline",
        )


def _check_kept_search(asked: Asked, given: tuple[str, ...]) -> None:
    """Options about a bisection that is there already."""
    if asked.dry_run and asked.resume:
        raise UsageError("--dry-run plans a new search, --resume goes on with one", remedy="give one of them")
    if asked.dry_run and asked.export_log is not None:
        raise UsageError("--dry-run runs no trial, so there is nothing to --export", remedy="give one of them")
    if asked.export_log is not None and not Path(asked.export_log).parent.is_dir():
        raise UsageError(f"--export {asked.export_log}: there is no such folder", remedy="name a file in a folder")
    if asked.resume and asked.import_log is not None:
        raise UsageError("--resume reads its own journal, --import another's log", remedy="give one of them")
    if asked.folder is not None and not asked.resume and asked.export_log is None:
        raise UsageError(
            "--folder names an earlier bisection, and nothing is asked of it",
            remedy=f"sparkdiag bisect --resume --folder {asked.folder}",
        )
    if asked.exports_only and (more := [name for name in given if name not in KEPT_ON_RESUME]):
        raise UsageError(
            f"--export with --folder searches nothing, so {_names(more)} would be ignored",
            remedy=f"sparkdiag bisect --export {asked.export_log} --folder {asked.folder}",
        )


def _check_what_is_searched(asked: Asked, given: tuple[str, ...]) -> None:
    commits = [name for name in given if name in COMMIT_OPTIONS]
    if asked.axis is not None and asked.releases is not None:
        raise UsageError("--axis and --releases are two searches", remedy="give one of them")
    if asked.axis is not None and commits:
        raise UsageError(
            f"--axis searches values on one revision, {_names(commits)} would search commits",
            remedy=f"sparkdiag bisect --axis {asked.axis}",
        )
    if asked.releases is not None and (more := [name for name in commits if name != "repo"]):
        raise UsageError(
            f"--releases names both ends by itself, {_names(more)} would name commits",
            remedy=f"sparkdiag bisect --releases {asked.releases}",
        )
    if asked.releases is not None and asked.env is not None:
        raise UsageError(
            f"--releases makes an environment of each release, --env {asked.env} is another",
            remedy=f"sparkdiag bisect --releases {asked.releases}",
        )
    for kind, name in (("dcp", "dcp"), ("prompt-tokens", "prompt_tokens")):
        if asked.axis is not None and asked.axis.startswith(kind + "=") and name in given:
            raise UsageError(f"--axis {asked.axis} gives each trial its --{kind}", remedy=f"leave --{kind} out")
    if asked.around is not None and (asked.good is not None or asked.bad is not None):
        raise UsageError(
            "--around makes a range of its own, --good and --bad another", remedy="give --good and --bad, or --around"
        )
    if asked.span is not None and (asked.good is not None or asked.bad is not None):
        raise UsageError("--span widens --around; with --good and --bad it means nothing", remedy="leave --span out")
    if asked.good is not None and asked.good == asked.bad:
        raise UsageError(f"--good and --bad are both {asked.good}", remedy="name two different revisions")


def _names(names: list[str]) -> str:
    typed_ = [option(name) for name in names]
    return typed_[0] if len(typed_) == 1 else f"{', '.join(typed_[:-1])} and {typed_[-1]}"
