"""The request under test, sent from its own thread so that watching never waits for it."""

import threading
from collections.abc import Callable

from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.outcome import fold
from sparkdiag.driving.prompt import BuiltPrompt
from sparkdiag.evidence.client import ClientEvent, ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.scenario.model import Scenario

Sink = Callable[[ClientEvent], None]


class Driver:
    """Sends one prompt and keeps what came back; ``cancel`` closes the connection, which aborts the request."""

    def __init__(
        self,
        client: ServerClient,
        prompt: BuiltPrompt,
        *,
        scenario: Scenario,
        nonce: str,
        clock: Callable[[], float],
        sink: Sink,
    ) -> None:
        self._client = client
        self._prompt = prompt
        self._scenario = scenario
        self._nonce = nonce
        self._clock = clock
        self._sink = sink
        self._events: list[ClientEvent] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._send, name="sparkdiag-driver", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, *, timeout_s: float) -> None:
        """Close the connection and wait for the thread, at most ``timeout_s``."""
        self._client.cancel()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def outcome(self) -> ClientOutcome:
        """The request so far, scored once it has ended by itself."""
        with self._lock:
            return fold(self._events)

    def _keep(self, event: ClientEvent) -> None:
        with self._lock:
            self._events.append(event)
        self._sink(event)

    def _send(self) -> None:
        settings = self._scenario.prompt
        self._keep(
            PromptSent(
                t_s=self._clock(),
                kind=settings.kind,
                tokens=self._prompt.tokens,
                depth=settings.depth,
                seed=settings.seed,
                nonce=self._nonce,
                expected=self._prompt.expected,
                max_output_tokens=settings.max_output_tokens,
            )
        )
        try:
            self._client.stream(
                self._prompt.text,
                model=self._scenario.server.served_model_name,
                max_tokens=settings.max_output_tokens,
                clock=self._clock,
                on_event=self._keep,
            )
        except Exception as error:  # a thread's exception is lost unless it becomes evidence
            self._keep(ResponseEnd(t_s=self._clock(), how="error", error=f"{type(error).__name__}: {error}"[:300]))
