"""Values of a scenario that are each fine and contradict each other. Pure."""

import re
from collections.abc import Hashable, Iterable, Iterator

from sparkdiag.scenario.environment_names import refused_variable
from sparkdiag.scenario.model import Scenario, Signature
from sparkdiag.scenario.parallel import misfit
from sparkdiag.scenario.problem import Problem
from sparkdiag.scenario.shown import shown
from sparkdiag.scenario.vllm_flags import distrusted_flag, flag_name, owned_flag

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def contradictions(scenario: Scenario, *, typed_args: int = 0) -> tuple[Problem, ...]:
    """Every cross-field problem of a scenario whose single values are right.

    ``typed_args``: how many of the last ``server.args`` the user typed; the others come from a file that people pass
    on, and may ask for less.
    """
    return (
        *_server(scenario),
        *_arguments(scenario, from_file=len(scenario.server.args) - typed_args),
        *_environment(scenario),
        *_signatures(scenario),
        *_names(scenario),
        *_suspect(scenario),
        *_times(scenario),
    )


def fits(scenario: Scenario) -> bool:
    """Whether prompt and answer fit the model length that the scenario asks for."""
    limit = scenario.server.max_model_len
    return limit is None or scenario.prompt.tokens + scenario.prompt.max_output_tokens <= limit


def _server(scenario: Scenario) -> Iterator[Problem]:
    server, prompt = scenario.server, scenario.prompt
    if misfit(tp=server.tp, dcp=server.dcp) is not None:
        yield Problem(
            key="server.dcp", found=f"{server.dcp} with server.tp {server.tp}", allowed="a divisor of server.tp"
        )
    for name, text in (("model", server.model), ("served_model_name", server.served_model_name)):
        if text is not None and (not text.strip() or text.startswith("-")):
            allowed = "a name or path; what begins with - would be read as an option"
            yield Problem(key=f"server.{name}", found=shown(text), allowed=allowed)
    if not fits(scenario):
        total = prompt.tokens + prompt.max_output_tokens
        yield Problem(
            key="server.max_model_len",
            found=f"{server.max_model_len}",
            allowed=f"at least {total}: {prompt.tokens} prompt tokens + {prompt.max_output_tokens} output tokens",
        )
    if scenario.lab and server.model is not None:
        yield Problem(
            key="server.model",
            found=shown(server.model),
            allowed="nothing in a lab scenario: sparkdiag writes the model",
        )


def _arguments(scenario: Scenario, *, from_file: int) -> Iterator[Problem]:
    arguments = scenario.server.args
    for index, argument in enumerate(arguments):
        flag = owned_flag(argument)
        if flag is not None:
            allowed = f"the key {flag.key} instead" if flag.key else f"nothing; {flag.remedy}"
            # By its name alone: what an option such as --api-key is set to is nobody's to read.
            yield Problem(key=f"server.args[{index}]", found=shown(flag_name(argument)), allowed=allowed)
            continue
        distrusted = distrusted_flag(argument, "".join(arguments[index + 1 : index + 2]))
        if distrusted is not None and index < from_file:
            found = f"{shown(flag_name(argument))}, which {distrusted.does}"
            other = f"only {', '.join(distrusted.harmless)}" if distrusted.harmless else "not"
            allowed = f"{other} in a file that people pass on; if you trust it, give it after --"
            yield Problem(key=f"server.args[{index}]", found=found, allowed=allowed)


def _environment(scenario: Scenario) -> Iterator[Problem]:
    for name, value in scenario.server.env.items():
        if not _ENV_NAME.fullmatch(name):
            yield Problem(key="server.env", found=shown(name), allowed="names of letters, digits and _")
        elif (refused := refused_variable(name, value)) is not None:
            yield Problem(key=f"server.env.{name}", found=refused.found, allowed=refused.allowed)


def _signatures(scenario: Scenario) -> Iterator[Problem]:
    for index, signature in enumerate(scenario.signatures):
        key = f"signature[{index}]"
        for name, local in _locals_of(signature):
            if not local.isidentifier():
                yield Problem(key=f"{key}.{name}", found=shown(local), allowed="the name of a local variable")
        if not signature.function.isidentifier():
            yield Problem(key=f"{key}.function", found=shown(signature.function), allowed="a bare function name")
        moving = {loop.index for loop in signature.loop}
        for place, local in enumerate(signature.call_identity):
            if local in moving:
                allowed = "locals that stay the same within one call; this one is a loop's index"
                yield Problem(key=f"{key}.call_identity[{place}]", found=shown(local), allowed=allowed)
        for place, loop in enumerate(signature.loop):
            if loop.index in (loop.stop, loop.step):
                yield Problem(
                    key=f"{key}.loop[{place}]", found=shown(loop.index), allowed="another local for step and stop"
                )
    fallbacks = [signature for signature in scenario.signatures if signature.kind == "torch-fallback"]
    if fallbacks and not any(signature.loop for signature in fallbacks):
        allowed = "at least one torch-fallback signature with its loop: without it crawling cannot be told from stuck"
        yield Problem(key="signature", found="no [[signature.loop]]", allowed=allowed)


def _locals_of(signature: Signature) -> Iterator[tuple[str, str]]:
    for index, loop in enumerate(signature.loop):
        for name, local in (("index", loop.index), ("step", loop.step), ("stop", loop.stop)):
            if local is not None:
                yield f"loop[{index}].{name}", local
    for index, local in enumerate(signature.call_identity):
        yield f"call_identity[{index}]", local
    for name, local in (("rows", signature.rows), ("keys", signature.keys), ("heads", signature.heads)):
        if local is not None:
            yield name, local


def _names(scenario: Scenario) -> Iterator[Problem]:
    yield from _twice("signature", "function", (signature.function for signature in scenario.signatures))
    yield from _twice("watch", "function", (watched.function for watched in scenario.watch))
    references = scenario.baseline.references
    yield from _twice(
        "baseline.reference", "prompt_tokens", ((item.prompt_tokens, item.hardware) for item in references)
    )
    for index, signature in enumerate(scenario.signatures):
        loops = (loop.index for loop in signature.loop)
        yield from _twice(f"signature[{index}].loop", "index", loops)
    for index, watched in enumerate(scenario.watch):
        for place, module in enumerate(watched.modules):
            if not _MODULE.fullmatch(module):
                allowed = "a dotted module name"
                yield Problem(key=f"watch[{index}].modules[{place}]", found=shown(module), allowed=allowed)


def _twice(array: str, field: str, names: Iterable[Hashable]) -> Iterator[Problem]:
    first_at: dict[Hashable, int] = {}
    for index, name in enumerate(names):
        if name in first_at:
            found = f"{shown(name)} a second time"
            yield Problem(
                key=f"{array}[{index}].{field}", found=found, allowed=f"each once; first in {array}[{first_at[name]}]"
            )
        first_at.setdefault(name, index)


def _suspect(scenario: Scenario) -> Iterator[Problem]:
    suspect = scenario.suspect
    commits = [("suspect.commit", suspect.commit)] if suspect.commit is not None else []
    commits += [(f"suspect.twins[{index}]", twin) for index, twin in enumerate(suspect.twins)]
    for key, commit in commits:
        if not _COMMIT.fullmatch(commit):
            yield Problem(key=key, found=shown(commit), allowed="7 to 40 lower-case hex digits of a commit")
    for index, path in enumerate(suspect.paths):
        if path.startswith(("/", "-")) or ".." in path.split("/") or not path:
            yield Problem(key=f"suspect.paths[{index}]", found=shown(path), allowed="a path inside the repository")


def _times(scenario: Scenario) -> Iterator[Problem]:
    patience, sampling = scenario.patience, scenario.sampling
    for key, small, large_key, large in (
        ("patience.settle_s", patience.settle_s, "patience.timeout_s", patience.timeout_s),
        ("sampling.min_period_s", sampling.min_period_s, "sampling.max_period_s", sampling.max_period_s),
    ):
        if small > large:
            yield Problem(key=key, found=f"{small:g}", allowed=f"at most {large_key}, {large:g}")
