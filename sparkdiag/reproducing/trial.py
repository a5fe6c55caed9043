"""A server is ready: prove what it is, send the prompt, watch, conclude, cancel what is still in flight."""

import secrets
import time
from pathlib import Path

from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.prompt import BuiltPrompt, build_prompt
from sparkdiag.environment.model import Environment
from sparkdiag.environment.proof import prove_dcp, prove_revision
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.observing.observer import Observer
from sparkdiag.reproducing.driver import Driver
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.watch import observe_once, watch
from sparkdiag.serving.identity import read_identity
from sparkdiag.serving.launch import LaunchedServer

CANCEL_TIMEOUT_S = 5.0


def prompt_and_judge(
    run: RunInProgress,
    request: ReproRequest,
    *,
    server: LaunchedServer,
    environment: Environment,
    baseline: Baseline | None,
) -> None:
    """The whole of a run between "ready" and "stopping"; the record holds the verdict afterwards."""
    scenario = request.scenario
    client = ServerClient(server.command.base_url)
    observer = Observer(
        server.root_pid,
        scenario=scenario,
        base_url=server.command.base_url,
        clock=run.clock,
        sink=run.folder.append,
        in_process_dir=server.probe_dir,
        server_is_ours=True,
    )
    observer.start()
    try:
        _prove(run, request, server=server, observer=observer, environment=environment)
        prompt, nonce = _prompt(run, client=client, scenario_request=request)
        driver = Driver(client, prompt, scenario=scenario, nonce=nonce, clock=run.clock, sink=run.folder.append)
        run.phase("prompting", f"{prompt.tokens} tokens")
        driver.start()
        try:
            observation, verdict = watch(
                observer,
                driver,
                server,
                scenario=scenario,
                baseline=baseline,
                view=run.view,
                clock=run.clock,
                wait=time.sleep,
            )
            _conclude(run, observation, verdict)
        finally:
            if driver.outcome().in_flight:
                run.phase("cancelling", "closing the connection, so that the server drops the request")
                driver.cancel(timeout_s=CANCEL_TIMEOUT_S)
            else:
                client.cancel()
    finally:
        observer.stop()


def _prove(
    run: RunInProgress,
    request: ReproRequest,
    *,
    server: LaunchedServer,
    observer: Observer,
    environment: Environment,
) -> None:
    """Read back what is running, before anything is asked of it."""
    identity = read_identity(server)
    repo = environment.repo or request.repo
    run.update(
        revision=prove_revision(
            environment, identity, suspect=request.scenario.suspect, repo=Path(repo) if repo else None
        ),
        dcp=prove_dcp(
            asked=request.scenario.server.dcp, processes=observer.snapshot().processes, identity=identity
        ),
    )


def _prompt(
    run: RunInProgress, *, client: ServerClient, scenario_request: ReproRequest
) -> tuple[BuiltPrompt, str]:
    scenario = scenario_request.scenario
    nonce = secrets.token_hex(8)
    model = scenario.server.served_model_name
    prompt = build_prompt(
        scenario.prompt, nonce=nonce, count_tokens=lambda text: client.tokenize_count(text, model=model)
    )
    if prompt.tokens != scenario.prompt.tokens:
        run.note("client", f"the tokenizer allows no exact fit: {prompt.tokens} tokens, {scenario.prompt.tokens} asked")
    return prompt, nonce


def _conclude(run: RunInProgress, observation: Observation, verdict: Verdict) -> None:
    sent = observation.client.sent
    run.update(verdict=verdict)
    if sent is not None:
        run.time(
            prompt_to_verdict_s=observation.now_s - sent.t_s,
            prompt_to_first_token_s=observation.client.time_to_first_token_s,
        )


__all__ = ["observe_once", "prompt_and_judge"]
