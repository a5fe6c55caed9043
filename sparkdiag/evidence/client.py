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


ClientEvent = PromptSent | TokenChunk | ResponseEnd


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
