"""What the client sent, when what came back, and how the answer scored."""

from typing import Literal

from sparkdiag.evidence.base import Value

NeedleScore = Literal["retrieved", "wrong", "truncated", "degenerate"]


class PromptSent(Value):
    """The prompt as sent. The text itself is rebuilt from kind, seed, nonce and length; it is not stored."""

    event: Literal["sent"] = "sent"
    t_s: float
    kind: Literal["needle", "reasoning"]
    tokens: int
    """By the server's own /tokenize."""
    depth: float
    seed: int
    nonce: str
    expected: str
    max_output_tokens: int
    control: bool = False


class TokenChunk(Value):
    event: Literal["chunk"] = "chunk"
    t_s: float
    text: str


class ResponseEnd(Value):
    """The last thing the client saw of the request."""

    event: Literal["end"] = "end"
    t_s: float
    how: Literal["finished", "cancelled", "error"]
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    error: str | None = None


class AnswerScored(Value):
    """The verdict on the answer's text, written once the response ended."""

    event: Literal["score"] = "score"
    t_s: float
    score: NeedleScore
    because: str = ""


ClientEvent = PromptSent | TokenChunk | ResponseEnd | AnswerScored


class ClientOutcome(Value):
    """The request so far, folded from its events."""

    sent: PromptSent | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    text: str = ""
    end: ResponseEnd | None = None
    score: NeedleScore | None = None
    score_because: str = ""

    @property
    def in_flight(self) -> bool:
        return self.sent is not None and self.end is None

    @property
    def time_to_first_token_s(self) -> float | None:
        if self.sent is None or self.first_token_s is None:
            return None
        return self.first_token_s - self.sent.t_s

    def after(self, event: ClientEvent) -> "ClientOutcome":
        """This outcome with one more event seen. A new ``PromptSent`` starts afresh: only the last request counts."""
        match event:
            case PromptSent():
                return ClientOutcome(sent=event)
            case TokenChunk():
                first = event.t_s if self.first_token_s is None else self.first_token_s
                changes: dict[str, object] = {
                    "first_token_s": first,
                    "last_token_s": event.t_s,
                    "text": self.text + event.text,
                }
            case ResponseEnd():
                changes = {"end": event}
            case AnswerScored():
                changes = {"score": event.score, "score_because": event.because}
        return self.model_copy(update=changes)
