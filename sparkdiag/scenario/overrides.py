"""What the command line changes in a scenario: a new one, checked again as a whole. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

from sparkdiag.errors import UsageError
from sparkdiag.scenario.check import check
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.parallel import misfit
from sparkdiag.scenario.shown import shown
from sparkdiag.scenario.vllm_flags import flag_name, owned_flag

MIN_REASONING_OUTPUT_TOKENS = 1024
"""Room for a derivation by a byte-level tokenizer; a needle's answer needs a hundredth of it."""

_OPTIONS = {
    "server.dcp": "--dcp",
    "server.tp": "--tp",
    "server.model": "--model",
    "server.chunk_tokens": "--chunk-tokens",
    "server.max_model_len": "-- --max-model-len",
    "prompt.tokens": "--prompt-tokens",
    "prompt.kind": "--prompt-kind",
    "prompt.seed": "--seed",
    "prompt.depth": "--depth",
    "patience.timeout_s": "--timeout-s",
}


def override(
    scenario: Scenario,
    *,
    dcp: int | None = None,
    tp: int | None = None,
    prompt_tokens: int | None = None,
    prompt_kind: Literal["needle", "reasoning"] | None = None,
    seed: int | None = None,
    depth: float | None = None,
    model: str | None = None,
    chunk_tokens: int | None = None,
    timeout_s: float | None = None,
    extra_args: Sequence[str] = (),
    typed_args: int = 0,
) -> Scenario:
    """``scenario`` with what was given in place of its own values; None leaves a value as it is.

    ``extra_args`` go to vLLM as they are, but for those that sparkdiag writes itself: these change the scenario, so
    that what is recorded is what runs. ``typed_args``: how many of the last of ``scenario``'s own arguments were given
    so before, and are the user's and not a file's. Raises ``UsageError`` where the result makes no sense.
    """
    rest, absorbed = _absorb(extra_args, given={"dcp": dcp, "tp": tp, "chunk_tokens": chunk_tokens})
    server = {"dcp": dcp, "tp": tp, "model": model, "chunk_tokens": chunk_tokens} | absorbed
    prompt: dict[str, Any] = {"tokens": prompt_tokens, "kind": prompt_kind, "seed": seed, "depth": depth}
    if prompt_kind == "reasoning":
        prompt["max_output_tokens"] = max(scenario.prompt.max_output_tokens, MIN_REASONING_OUTPUT_TOKENS)
    if scenario.lab and model is not None:
        raise UsageError(
            f"the scenario {scenario.name} runs on the lab's own model, --model {shown(model)} cannot replace it",
            remedy=f"sparkdiag repro --scenario sm12x-mqa-prefill --env existing:PYTHON --model {shown(model)}",
        )
    data = _plain(scenario.model_dump(mode="python", by_alias=True, exclude_none=True))
    _put(data["server"], server)
    _put(data["prompt"], prompt)
    _put(data["patience"], {"timeout_s": timeout_s})
    data["server"]["args"] = [*scenario.server.args, *rest]
    _check_parallel(data["server"], dcp_given=server["dcp"] is not None, tp_given=server["tp"] is not None)
    return _validated(data, scenario, typed_args=typed_args + len(rest))


def _check_parallel(server: dict[str, Any], *, dcp_given: bool, tp_given: bool) -> None:
    """Sizes that do not fit, in the words of the options that gave them (a file's are told by ``check``)."""
    dcp, tp = server["dcp"], server["tp"]
    wrong = misfit(tp=tp, dcp=dcp)
    if wrong is None:
        return
    if dcp_given and not tp_given:
        message = f"--dcp {dcp} does not divide the scenario's tensor parallel size {tp}"
    elif tp_given and not dcp_given:
        message = f"--tp {tp} is not a multiple of the scenario's DCP size {dcp}"
    else:
        message = f"--dcp {dcp} does not divide --tp {tp}"
    raise UsageError(
        message,
        remedy=f"--dcp {dcp} --tp {wrong.larger_tp}, which needs {wrong.larger_tp} ranks; "
        f"or --dcp {wrong.smaller_dcp} --tp {tp}",
    )


def _validated(data: dict[str, Any], scenario: Scenario, *, typed_args: int) -> Scenario:
    changed, problems = check(data, typed_args=typed_args)
    if changed is not None:
        return changed
    details = tuple(f"{_OPTIONS.get(problem.key, problem.key)}: {problem}" for problem in problems)
    remedy = f"sparkdiag scenario show {scenario.name}"
    prompt, length = data["prompt"], data["server"].get("max_model_len", 0)
    needed = prompt["tokens"] + prompt["max_output_tokens"]
    if [problem.key for problem in problems] == ["server.max_model_len"] and length < needed:
        details = (
            f"{prompt['tokens']} prompt tokens and {prompt['max_output_tokens']} output tokens need more than the "
            f"model length of {length}",
        )
        remedy = f"a shorter --prompt-tokens, or a longer model length: -- --max-model-len {needed}"
    if len(details) == 1:
        raise UsageError(details[0], remedy=remedy)
    raise UsageError("the options do not fit together", remedy=remedy, details=details)


def _absorb(extra_args: Sequence[str], *, given: dict[str, int | None]) -> tuple[list[str], dict[str, Any]]:
    """``extra_args`` without those that the scenario holds, and what these say."""
    rest: list[str] = []
    absorbed: dict[str, Any] = {}
    remaining = list(extra_args)
    while remaining:
        argument = remaining.pop(0)
        flag, written = owned_flag(argument), flag_name(argument)
        if flag is None:
            rest.append(argument)
            continue
        if flag.key is None or not flag.number:
            raise UsageError(f"{shown(written)} after -- is sparkdiag's own to choose", remedy=flag.remedy)
        name = flag.key.removeprefix("server.")
        text = argument.split("=", 1)[1] if "=" in argument else remaining.pop(0) if remaining else ""
        if not (text.isascii() and text.isdecimal() and len(text) <= 12):
            raise UsageError(f"{written} needs an integer, found {shown(text)}", remedy=f"-- {written} N")
        if given.get(name) not in (None, int(text)):
            option = _OPTIONS[flag.key]
            raise UsageError(f"{written} {text} contradicts {option} {given[name]}", remedy=f"give {option} only")
        absorbed[name] = int(text)
    return rest, absorbed


def _put(table: dict[str, Any], changes: dict[str, Any]) -> None:
    table.update({key: value for key, value in changes.items() if value is not None})


def _plain(value: Any) -> Any:
    """Tuples as lists, as TOML would have them."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
