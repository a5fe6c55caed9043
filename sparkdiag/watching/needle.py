"""One prompt of ours in a server that others use: sent, watched, and told apart from their traffic."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.prompt import BuiltPrompt, build_prompt
from sparkdiag.errors import ServerError, SparkdiagError, UsageError
from sparkdiag.evidence.client import AnswerScored
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, EvidenceItem, Verdict
from sparkdiag.judging.baseline import reference_baseline
from sparkdiag.judging.judge import NO_BASELINE
from sparkdiag.observing.observer import Observer
from sparkdiag.reproducing.driver import Driver
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.watch import watch
from sparkdiag.scenario.model import Scenario
from sparkdiag.watching.foreign import ForeignServer
from sparkdiag.watching.request import WatchRequest
from sparkdiag.watching.served import served_model
from sparkdiag.watching.traffic import Company, company_of, metrics_words

BEFORE_S, AFTER_S = 3.0, 2.0
"""How long the server is looked at without our prompt, before and after: a few scrapes."""
CANCEL_TIMEOUT_S = 5.0
NO_BASELINE_HERE = (
    "no healthy time to compare with: --baseline-s SECONDS, the time of the same prompt where all is well"
)


@dataclass(frozen=True, slots=True)
class Needle:
    """The prompt that is going to be sent, and to whom."""

    client: ServerClient
    scenario: Scenario
    prompt: BuiltPrompt
    nonce: str


def prepare_needle(
    run: RunInProgress, request: WatchRequest, *, base_url: str | None, scenario: Scenario, api_key: str | None
) -> Needle:
    """Which model, and a prompt of the right length by its own tokenizer. Raises ``UsageError`` or ``ServerError``."""
    if base_url is None:
        raise UsageError(
            "--send-needle needs the server's address, and none is known", remedy="--url http://127.0.0.1:8000"
        )
    model = request.model or served_model(base_url, api_key=api_key)
    if model is None:
        raise UsageError(f"{base_url}/v1/models names no model", remedy="--model NAME, as the server names it")
    server = scenario.server.model_copy(update={"served_model_name": model})
    scenario = scenario.model_copy(update={"server": server})
    run.update(scenario=scenario.model_dump(mode="json", by_alias=True))
    client = ServerClient(base_url, model=model, allow_remote=True, api_key=api_key)  # the address was checked before
    settings, nonce = scenario.prompt, secrets.token_hex(8)
    run.phase("prompting", f"building a prompt of {settings.tokens} tokens for {model}")
    try:
        client.ensure_fits(prompt_tokens=settings.tokens, max_output_tokens=settings.max_output_tokens)
        prompt = build_prompt(settings, nonce=nonce, count_tokens=client.tokenize_count)
    except ServerError as error:
        raise SparkdiagError(
            f"no prompt can be built: {error.message}",
            remedy="--send-needle needs the server's /tokenize; without it: leave out --send-needle",
        ) from error
    return Needle(client=client, scenario=scenario, prompt=prompt, nonce=nonce)


def drive_needle(
    run: RunInProgress, request: WatchRequest, needle: Needle, *, observer: Observer, server: ForeignServer
) -> tuple[Observation, Verdict]:
    """Send it, watch it, take it back where it is not answered; the verdict says whether others used the server."""
    _before(run, request, needle, observer=observer)
    driver = Driver(
        needle.client,
        needle.prompt,
        scenario=needle.scenario,
        nonce=needle.nonce,
        clock=run.clock,
        sink=run.folder.append,
    )
    baseline = _baseline(request, needle)
    run.phase("observing", f"{needle.prompt.tokens} tokens sent")
    driver.start()
    try:
        observation, verdict = watch(
            observer, driver, server, scenario=needle.scenario, baseline=baseline, view=run.view, wait=time.sleep
        )
    finally:
        if driver.outcome().in_flight:
            run.phase("cancelling", "closing the connection, so that the server drops our request")
        driver.cancel(timeout_s=CANCEL_TIMEOUT_S)
    client = observation.client
    if client.score is not None:
        run.folder.append(AnswerScored(t_s=observation.now_s, score=client.score, because=client.score_because))
    company = _company(observation, observer, wait=time.sleep)
    run.note("metrics", company.words)
    item = EvidenceItem(source="metrics", text=company.words)
    side = "evidence_for" if company.shared is False else "evidence_against"
    changes = {
        side: (*getattr(verdict, side), item),
        "decided_at_s": observation.now_s,
        "reason": verdict.reason.replace(NO_BASELINE, NO_BASELINE_HERE) if verdict.reason else None,
    }
    return observation, verdict.model_copy(update=changes)


def _before(run: RunInProgress, request: WatchRequest, needle: Needle, *, observer: Observer) -> None:
    """What the server does without us, and what sending it will cost it."""
    run.phase("observing", f"the server without our prompt, for {BEFORE_S:.0f} s")
    time.sleep(BEFORE_S)
    run.note("metrics", f"before our prompt: {metrics_words(observer.snapshot().metrics)}")
    out = needle.scenario.prompt.max_output_tokens
    run.note(
        "client",
        f"estimate: one prompt of {needle.prompt.tokens} tokens and at most {out} tokens of answer, which a healthy "
        f"server prefills in seconds; it is taken back after {request.patience_s:.0f} s without an answer",
    )


def _baseline(request: WatchRequest, needle: Needle) -> Baseline | None:
    if request.baseline_s is not None:
        return Baseline(kind="given", seconds=request.baseline_s, source="--baseline-s, as given by the user")
    return reference_baseline(needle.scenario, prompt_tokens=needle.prompt.tokens)


def _company(observation: Observation, observer: Observer, *, wait: Callable[[float], None]) -> Company:
    wait(AFTER_S)
    client = observation.client
    end = client.end
    came = client.first_token_s is not None
    generated = end.completion_tokens if end is not None else None
    return company_of(
        observer.snapshot().metrics,
        sent_s=client.sent.t_s if client.sent is not None else observation.now_s,
        ended_s=end.t_s if end is not None else observation.now_s,
        own_prompt_tokens=client.sent.tokens if client.sent is not None and came else 0,
        own_generated_tokens=generated or len(client.text),
    )
