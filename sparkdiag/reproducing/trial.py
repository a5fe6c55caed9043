"""A server is ready: prove what it is, send the prompt, watch, conclude, cancel what is still in flight."""

import secrets
import time
from pathlib import Path

from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.prompt import BuiltPrompt, build_prompt
from sparkdiag.environment.dcp_proof import prove_dcp
from sparkdiag.environment.model import Environment
from sparkdiag.environment.proof import prove_revision
from sparkdiag.errors import ServerError
from sparkdiag.evidence.client import AnswerScored
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.observing.dispatch import DispatchFollower
from sparkdiag.observing.observer import Observer
from sparkdiag.reproducing.driver import Driver
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.watch import watch
from sparkdiag.reproducing.yielding import Yielding
from sparkdiag.scenario.model import Scenario
from sparkdiag.serving.identity import read_identity
from sparkdiag.serving.launch import LaunchedServer
from sparkdiag.serving.readiness import failed_request

CANCEL_TIMEOUT_S = 5.0


def prompt_and_judge(
    run: RunInProgress,
    request: ReproRequest,
    *,
    server: LaunchedServer,
    probe_dir: Path | None,
    environment: Environment,
    baseline: Baseline | None,
) -> None:
    """The whole of a run between "ready" and "stopping"; the record holds the verdict afterwards."""
    scenario = request.scenario
    client = ServerClient(server.base_url, model=scenario.server.served_model_name)
    yielding = Yielding(server.root_pid, priority=run.record.server_priority, clock=run.clock, note=run.note)
    observer = _observer(run, request, server=server, probe_dir=probe_dir, yielding=yielding)
    observer.start()
    ledger = DispatchFollower(probe_dir, clock=run.clock, sink=run.observed) if probe_dir is not None else None
    if ledger is not None:
        ledger.start()
    try:
        observer.require_stacks()
        _prove(run, request, server=server, probe_dir=probe_dir, observer=observer, environment=environment)
        run.phase("prompting", f"building a prompt of {scenario.prompt.tokens} tokens")
        prompt, nonce = _prompt(run, client=client, scenario=scenario, server=server)
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
                wait=time.sleep,
            )
            _conclude(run, observation, verdict)
        finally:
            if driver.outcome().in_flight:
                run.phase("cancelling", "closing the connection, so that the server drops the request")
            driver.cancel(timeout_s=CANCEL_TIMEOUT_S)
    finally:
        observer.stop()
        if ledger is not None:
            ledger.finish()
        if yielding.priority is not run.record.server_priority:
            run.update(server_priority=yielding.priority)


def _observer(
    run: RunInProgress, request: ReproRequest, *, server: LaunchedServer, probe_dir: Path | None, yielding: Yielding
) -> Observer:
    return Observer(
        server.root_pid,
        scenario=request.scenario,
        base_url=server.base_url,
        clock=run.clock,
        sink=run.observed,
        in_process_dir=probe_dir,
        server_is_ours=True,
        take_stacks=request.take_stacks,
        look_at_cpu=yielding.look,
    )


def _prove(
    run: RunInProgress,
    request: ReproRequest,
    *,
    server: LaunchedServer,
    probe_dir: Path | None,
    observer: Observer,
    environment: Environment,
) -> None:
    """Read back what is running, before anything is asked of it."""
    scenario = request.scenario
    identity = read_identity(
        base_url=server.base_url,
        root_pid=server.root_pid,
        probe_dir=probe_dir,
        workers=scenario.server.tp,
    )
    repo = environment.repo or request.repo
    run.update(
        revision=prove_revision(environment, identity, suspect=scenario.suspect, repo=Path(repo) if repo else None),
        dcp=prove_dcp(asked=scenario.server.dcp, processes=observer.snapshot().processes, identity=identity),
    )


def _prompt(
    run: RunInProgress, *, client: ServerClient, scenario: Scenario, server: LaunchedServer
) -> tuple[BuiltPrompt, str]:
    settings = scenario.prompt
    nonce = secrets.token_hex(8)
    try:
        client.ensure_fits(prompt_tokens=settings.tokens, max_output_tokens=settings.max_output_tokens)
        prompt = build_prompt(settings, nonce=nonce, count_tokens=client.tokenize_count)
    except ServerError as error:
        raise failed_request(error, server) from error
    if not prompt.exact:
        run.note("client", f"the tokenizer allows no exact fit: {prompt.tokens} tokens, {settings.tokens} asked for")
    return prompt, nonce


def _conclude(run: RunInProgress, observation: Observation, verdict: Verdict) -> None:
    sent = observation.client.sent
    run.folder.append(observation.sampling)
    if observation.server_exit is not None:
        run.folder.append(observation.server_exit)
    if observation.client.score is not None:
        run.folder.append(
            AnswerScored(
                t_s=observation.now_s, score=observation.client.score, because=observation.client.score_because
            )
        )
    run.update(verdict=verdict.model_copy(update={"decided_at_s": observation.now_s}))
    if sent is not None:
        run.time(
            prompt_to_verdict_s=observation.now_s - sent.t_s,
            prompt_to_first_token_s=observation.client.time_to_first_token_s,
        )
