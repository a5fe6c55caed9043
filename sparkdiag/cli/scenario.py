"""``sparkdiag scenario``: the known stalls, as data."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparkdiag.cli import completion
from sparkdiag.errors import ExitCode, ScenarioError

if TYPE_CHECKING:
    from sparkdiag.scenario.model import Scenario

app = typer.Typer(
    name="scenario",
    no_args_is_help=True,
    help="Look at the known stalls and check one of your own.\n\nExample: sparkdiag scenario show lab > mine.toml",
)

NameOrFile = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A built-in name, or a path to a TOML file.",
        autocompletion=completion.scenarios,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]


@app.command("list")
def list_scenarios(json_output: Json = False) -> None:
    """Name the scenarios that come with sparkdiag.

    Example: sparkdiag scenario list
    """
    from sparkdiag.scenario.load import builtin_names, load_scenario

    scenarios = [load_scenario(name) for name in builtin_names()]
    if json_output:
        _write_json({"scenarios": [_summary(scenario) for scenario in scenarios]})
        return
    width = max((len(scenario.name) for scenario in scenarios), default=0)
    for scenario in scenarios:
        typer.echo(f"{scenario.name:<{width}}  {'lab' if scenario.lab else 'GPU'}  {scenario.title}")


@app.command(short_help="Print a scenario: its commented TOML, or JSON.")
def show(scenario: NameOrFile, json_output: Json = False) -> None:
    """Print a scenario: its commented TOML, or as JSON with every default filled in.

    Example: sparkdiag scenario show sm12x-mqa-prefill > mine.toml
    """
    from sparkdiag.harmless.printable import escaped
    from sparkdiag.scenario.load import load_scenario, scenario_text

    loaded = load_scenario(scenario)
    if json_output:
        _write_json({"scenario": loaded.model_dump(mode="json", by_alias=True)})
    else:
        typer.echo(escaped(scenario_text(scenario), allowed="\n\t"), nl=False)


@app.command(short_help="Check a scenario file, every problem at once.")
def check(scenario: NameOrFile, json_output: Json = False) -> None:
    """Check a scenario file and report every problem at once, with key, what was found and what is allowed.

    Example: sparkdiag scenario check ./mine.toml
    """
    from sparkdiag.scenario.load import load_scenario

    try:
        loaded = load_scenario(scenario)
    except ScenarioError as error:
        if not json_output:
            raise
        _write_json({"ok": False, "error": error.message, "problems": list(error.details)})
        raise typer.Exit(int(ExitCode.USAGE)) from None
    if json_output:
        _write_json({"ok": True, "name": loaded.name, "problems": []})
    else:
        typer.echo(f"{loaded.name}: fine ({loaded.title})")


def _summary(scenario: "Scenario") -> dict[str, Any]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "lab": scenario.lab,
        "hardware": scenario.hardware,
        "dcp": scenario.server.dcp,
        "tp": scenario.server.tp,
        "prompt_tokens": scenario.prompt.tokens,
        "functions": [signature.function for signature in scenario.signatures],
    }


def _write_json(document: dict[str, Any]) -> None:
    from sparkdiag.evidence.base import SCHEMA

    typer.echo(json.dumps({"schema": SCHEMA} | document, indent=2))
