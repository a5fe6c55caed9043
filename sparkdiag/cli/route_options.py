"""The options of ``route``, in the groups that its help shows."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from sparkdiag.cli import completion

WHERE = "Which source"
CONFIG = "Which configuration"
MANY = "Many at once"
RAN = "Beside what really runs"
SHOWN = "How it is told"


class Format(StrEnum):
    """What ``--format`` takes."""

    TEXT = "text"
    MD = "md"


def _option(help_: str, *names: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names, help=help_, rich_help_panel=panel, **more)


Repo = Annotated[
    str | None,
    _option("vLLM clone to read; without it the lab's own history is read.", panel=WHERE, metavar="PATH"),
]
Rev = Annotated[
    str | None,
    _option(
        "Revision; default: HEAD of the clone, or the lab's.",
        panel=WHERE,
        metavar="REV",
        autocompletion=completion.revisions,
    ),
]
Scenario = Annotated[
    str | None,
    _option(
        "Name of a built-in scenario, or a TOML file; default: sm12x-mqa-prefill for a clone, else lab.",
        panel=WHERE,
        autocompletion=completion.scenarios,
    ),
]
Dcp = Annotated[
    str | None,
    _option(
        "Decode context parallel size; default: the scenario's.",
        panel=CONFIG,
        metavar="N",
        autocompletion=completion.dcp_sizes,
    ),
]
Arch = Annotated[
    str | None,
    _option(
        "CUDA capability, such as sm121; default: the scenario's, else unknown.",
        panel=CONFIG,
        metavar="SM",
        autocompletion=completion.architectures,
    ),
]
Platform = Annotated[
    str | None,
    _option(
        "cuda | rocm | xpu | cpu; default: cuda.",
        panel=CONFIG,
        metavar="NAME",
        autocompletion=completion.platforms,
    ),
]
Cache = Annotated[
    str | None,
    _option(
        "Data type of the indexer's cache: fp8 | fp4; default: fp8.",
        panel=CONFIG,
        metavar="TYPE",
        autocompletion=completion.caches,
    ),
]
Phase = Annotated[str, _option("prefill | decode.", panel=CONFIG, metavar="NAME", autocompletion=completion.phases)]
PromptTokens = Annotated[
    int | None, _option("Length of the prompt; default: the scenario's.", panel=CONFIG, metavar="N")
]
ChunkTokens = Annotated[
    int | None, _option("Rows of a prefill chunk; default: the scenario's.", panel=CONFIG, metavar="N")
]
Heads = Annotated[int | None, _option("Indexer heads; default: the scenario's, else 64.", panel=CONFIG, metavar="N")]
CompressRatio = Annotated[
    int | None, _option("Prompt tokens an indexer key; default: the scenario's.", panel=CONFIG, metavar="N")
]
Set = Annotated[
    list[str],
    _option(
        "What a name of the source holds: chunk.local_total_seq_lens=0, clean_logits=unknown; repeatable.",
        panel=CONFIG,
        metavar="NAME=VALUE",
    ),
]
Matrix = Annotated[bool, _option("A table: --dcp, --arch, --cache and --rev take lists, 1,2.", "--matrix", panel=MANY)]
History = Annotated[
    str | None, _option("Every commit between two at which the route changes.", panel=MANY, metavar="A..B")
]
Execute = Annotated[
    bool,
    _option(
        "Also call that revision's dispatch over stubs and tiny tensors, in a sandbox: this runs its code.",
        "--execute",
        panel=RAN,
    ),
]
Env = Annotated[
    str | None,
    _option(
        "Environment whose torch --execute uses: lab | existing:PYTHON | release:VERSION.",
        panel=RAN,
        autocompletion=completion.environments,
    ),
]
Form = Annotated[Format, _option("text, or md to paste into a pull request.", "--format", panel=SHOWN)]
FailOnStall = Annotated[
    bool,
    _option(
        "Exit 1 where the stall path is reached whatever is unknown, 3 where it may be.", "--fail-on-stall", panel=SHOWN
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")]
