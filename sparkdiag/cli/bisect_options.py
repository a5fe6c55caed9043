"""The options of ``bisect``, in the groups that its help shows."""

from typing import Annotated, Any

import typer

from sparkdiag.cli import completion

RANGE = "What is searched"
QUESTION = "What counts as a trial's answer"
RUN = "How each trial is run"
SEARCH = "The search itself"


def _option(help_: str, *names: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names, help=help_, rich_help_panel=panel, **more)


Repo = Annotated[
    str | None, _option("vLLM clone to search; without it the lab's own history is searched.", panel=RANGE)
]
Good = Annotated[
    str | None, _option("One end of the range.", panel=RANGE, metavar="REV", autocompletion=completion.revisions)
]
Bad = Annotated[
    str | None,
    _option(
        "The other end; which of the two stalls is found out.",
        panel=RANGE,
        metavar="REV",
        autocompletion=completion.revisions,
    ),
]
Around = Annotated[
    str | None,
    _option(
        "Search on both sides of this commit; default: the scenario's suspect commit.",
        panel=RANGE,
        metavar="REV",
        autocompletion=completion.revisions,
    ),
]
Span = Annotated[int | None, _option("First-parent steps to each side of --around.", panel=RANGE)]
FirstParent = Annotated[bool, _option("Take a merge as one commit.", "--first-parent", panel=RANGE)]
OnlyWatchedPaths = Annotated[
    bool, _option("Only commits that change a file which the scenario watches.", "--only-watched-paths", panel=RANGE)
]
Axis = Annotated[
    str | None,
    _option(
        "Search values instead of commits: dcp=1,2,4 or prompt-tokens=16K..468K, also A..B/STEP; K is 1,024.",
        panel=RANGE,
        metavar="NAME=VALUES",
        autocompletion=completion.axes,
    ),
]
Releases = Annotated[
    str | None,
    _option("Search published releases: 0.27.1..0.32.0; then the commits between two.", panel=RANGE, metavar="A..B"),
]
LooksFor = Annotated[
    str,
    _option(
        "stall | frame:NAME (a function in the stacks) | wrong-needle | crash.",
        panel=QUESTION,
        autocompletion=completion.looks_for,
    ),
]
Repeat = Annotated[int, _option("Run each point so often; the runs must agree.", panel=QUESTION)]
Confidence = Annotated[
    float | None,
    _option("Verdicts may be wrong: search until one point has this probability, such as 0.95.", panel=QUESTION),
]
Controls = Annotated[
    bool, _option("Run each end once more without sampling.", "--controls/--no-controls", panel=QUESTION)
]
Confirm = Annotated[
    bool, _option("Run the culprit once more under CUDA_LAUNCH_BLOCKING=1.", "--confirm", panel=QUESTION)
]
Suspect = Annotated[
    list[str],
    _option(
        "Try this commit first; default: the scenario's suspect commit.",
        panel=SEARCH,
        metavar="REV",
        autocompletion=completion.revisions,
    ),
]
Reuse = Annotated[
    bool, _option("Commits with the same watched files share one result.", "--reuse/--no-reuse", panel=SEARCH)
]
GoodRun = Annotated[
    str | None,
    _option(
        "Folder of an earlier run that stands for an end.",
        panel=SEARCH,
        metavar="RUN",
        autocompletion=completion.runs,
    ),
]
BadRun = Annotated[
    str | None, _option("The same for the other end.", panel=SEARCH, metavar="RUN", autocompletion=completion.runs)
]
DryRun = Annotated[bool, _option("Print the plan and the forecast; start nothing.", "--dry-run", panel=SEARCH)]
Resume = Annotated[bool, _option("Go on with the newest search that has not ended.", "--resume", panel=SEARCH)]
Folder = Annotated[str | None, _option("The search to resume or to export.", panel=SEARCH, metavar="DIR")]
ExportLog = Annotated[
    str | None, _option("Write the trials as a git bisect log.", "--export", panel=SEARCH, metavar="FILE")
]
ImportLog = Annotated[
    str | None, _option("Begin with the marks of a git bisect log.", "--import", panel=SEARCH, metavar="FILE")
]
Scenario = Annotated[
    str | None,
    _option(
        "Name of a built-in scenario, or a TOML file (see: sparkdiag scenario list).",
        panel=RUN,
        autocompletion=completion.scenarios,
    ),
]
Env = Annotated[
    str | None,
    _option(
        "lab | existing:PYTHON | release:VERSION; for a clone the base its commits are laid over.",
        panel=RUN,
        autocompletion=completion.environments,
    ),
]
Dcp = Annotated[
    int | None,
    _option("Decode context parallel size; default: the scenario's.", panel=RUN, autocompletion=completion.dcp_sizes),
]
Tp = Annotated[int | None, _option("Tensor parallel size; DCP must divide it.", panel=RUN)]
Model = Annotated[str | None, _option("Model path or name for the server.", panel=RUN)]
PromptTokens = Annotated[int | None, _option("Length of the prompt in tokens.", panel=RUN)]
BaselineS = Annotated[
    float | None, _option("Healthy time to first token in seconds; default: the healthy end's own.", panel=RUN)
]
TimeoutS = Annotated[float | None, _option("Give up on a trial's request after this many seconds.", panel=RUN)]
KeepPriority = Annotated[
    bool, _option("Do not let the server yield to samplers (see the report).", "--keep-priority", panel=RUN)
]
Wait = Annotated[bool, _option("Wait while another run holds this machine.", panel=RUN)]
Out = Annotated[str, _option("Folder that the bisection's folder is made in.", panel=RUN, metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")]
