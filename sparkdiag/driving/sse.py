"""Server-sent events as vLLM streams them: ``data: {...}`` lines, ended by ``data: [DONE]``. Pure."""

import codecs

MAX_LINE_BYTES = 1024 * 1024


class StreamFault(ValueError):
    """What came is no event stream."""


class EventLines:
    """Bytes in, the payloads of complete ``data:`` lines out; what is half there waits for the next bytes."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._pending = ""

    def feed(self, data: bytes) -> list[str]:
        """Payloads completed by ``data``. Raises ``StreamFault`` for what is not UTF-8, not SSE, or an endless line."""
        try:
            text = self._pending + self._decode(data)
        except UnicodeDecodeError:
            raise StreamFault("the response is not UTF-8") from None
        *lines, self._pending = text.split("\n")
        if len(self._pending) > MAX_LINE_BYTES:
            raise StreamFault(f"a line of the response is longer than {MAX_LINE_BYTES // 1024} KiB")
        return [payload for line in lines if (payload := _payload(line)) is not None]


def _payload(line: str) -> str | None:
    line = line.removesuffix("\r")
    name, colon, value = line.partition(":")
    if not line or not name:  # a blank between events, or a comment that keeps the connection alive
        return None
    if not colon or name not in ("data", "event", "id", "retry"):
        raise StreamFault("the response is not a stream of events")
    return value.strip() if name == "data" else None
