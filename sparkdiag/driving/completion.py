"""A streamed completion, read piece by piece: what vLLM's JSON says, as client events. Pure but for the callback."""

import json
from collections.abc import Callable
from typing import Any, Literal

from sparkdiag.driving.sse import EventLines, StreamFault
from sparkdiag.evidence.client import ResponseEnd, TokenChunk
from sparkdiag.harmless.excerpt import one_line

MAX_TEXT_CHARACTERS = 8 * 1024 * 1024


class CompletionReader:
    """Takes the body's bytes as they come; tells each piece of text at once and the end when asked for it."""

    def __init__(self, *, clock: Callable[[], float], on_chunk: Callable[[TokenChunk], None]) -> None:
        self._clock = clock
        self._on_chunk = on_chunk
        self._lines = EventLines()
        self._characters = 0
        self._finish_reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.done = False
        """True once the server said that nothing more comes."""

    def feed(self, data: bytes) -> None:
        """Raises ``StreamFault`` for anything that is no completion stream, or is the server's own error."""
        for payload in self._lines.feed(data):
            if payload == "[DONE]":
                self.done = True
                return
            self._take(_object(payload))

    def end(self, how: Literal["finished", "cancelled", "error"], *, error: str | None = None) -> ResponseEnd:
        """The end as far as it was told; a stream that stopped before its last word is an error."""
        if how == "finished" and self._finish_reason is None:
            how, error = "error", "the stream ended without a finish_reason"
        elif how == "finished" and self._finish_reason in ("abort", "error"):
            how, error = "error", f"the server gave the request up (finish_reason {self._finish_reason})"
        details = self._usage.get("prompt_tokens_details")
        return ResponseEnd(
            t_s=self._clock(),
            how=how,
            finish_reason=self._finish_reason,
            prompt_tokens=_count(self._usage.get("prompt_tokens")),
            completion_tokens=_count(self._usage.get("completion_tokens")),
            cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
            error=error,
        )

    def _take(self, event: dict[str, Any]) -> None:
        if "error" in event:
            raise StreamFault(f"the server reported: {error_message(event)}")
        if isinstance(event.get("usage"), dict):
            self._usage = event["usage"]
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = choices[0]
        if not isinstance(choice, dict) or not isinstance(choice.get("text", ""), str):
            raise StreamFault("a choice of the response is no text completion")
        if text := choice.get("text", ""):
            self._characters += len(text)
            if self._characters > MAX_TEXT_CHARACTERS:
                raise StreamFault(f"the answer is longer than {MAX_TEXT_CHARACTERS} characters")
            self._on_chunk(TokenChunk(t_s=self._clock(), text=text))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = one_line(reason, limit=40)


def error_message(body: Any) -> str:
    """What an OpenAI-like or FastAPI-like error body says, as one safe line; never the prompt it may quote."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message", inner.get("detail", "no reason given"))
        return one_line(inner if isinstance(inner, str) else json.dumps(inner, default=str))
    return one_line(str(body))


def _object(payload: str) -> dict[str, Any]:
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        raise StreamFault(f"an event is no JSON: {one_line(payload, limit=80)}") from None
    if not isinstance(event, dict):
        raise StreamFault("an event is no JSON object")
    return event


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
