"""The one HTTP client of the server under test: counts tokens, sends the prompt, takes the answer, lets go at once."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx

from sparkdiag.driving.address import checked_base_url
from sparkdiag.driving.completion import CompletionReader, error_message
from sparkdiag.driving.sse import StreamFault
from sparkdiag.errors import ServerError, UsageError
from sparkdiag.evidence.client import ResponseEnd, TokenChunk
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.secrets import REDACTED
from sparkdiag.tls import verifies

MAX_TOKENIZE_BYTES = 256 * 1024 * 1024
"""/tokenize answers with every token's id: some 4 MB for half a million."""
MAX_ERROR_BYTES = 64 * 1024

_Result = TypeVar("_Result")
OnEvent = Callable[[TokenChunk | ResponseEnd], None]


class Cancelled(Exception):
    """``cancel()`` was called."""


class ServerClient:
    """Talks to one vLLM server; to this machine only, unless ``allow_remote``. Raises ``UsageError`` for another.

    Every call blocks its thread; ``cancel()`` from any other thread ends all of them by closing their connections,
    which is also how vLLM learns that a request is to be aborted. A cancelled client stays cancelled. ``api_key`` goes
    into the requests' header, and nowhere else: an answer that repeats it is told without it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        allow_remote: bool = False,
        connect_timeout_s: float = 10,
        tokenize_timeout_s: float = 120,
        api_key: str | None = None,
    ) -> None:
        self.base_url = checked_base_url(base_url, allow_remote=allow_remote)
        self.max_model_len: int | None = None
        """As the server told with its last token count."""
        self._model = model
        self._api_key = api_key
        self._connect_timeout_s = connect_timeout_s
        self._tokenize_timeout_s = tokenize_timeout_s
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()

    def tokenize_count(self, text: str) -> int:
        """Tokens of ``text`` as a completion prompt, special tokens included: what usage.prompt_tokens will say.

        Raises ``ServerError`` where the server does not tell within the time limit.
        """
        body = {"prompt": text, "add_special_tokens": True} | ({"model": self._model} if self._model else {})
        try:
            answer = self._run(self._post_json("/tokenize", body))
        except Cancelled:
            raise ServerError(f"counting tokens at {self.base_url} was cancelled") from None
        count, limit = answer.get("count"), answer.get("max_model_len")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ServerError(f"{self.base_url}/tokenize answered without a token count")
        self.max_model_len = limit if isinstance(limit, int) else self.max_model_len
        return count

    def ensure_fits(self, *, prompt_tokens: int, max_output_tokens: int) -> None:
        """Raises ``UsageError`` when the server would refuse the prompt as too long; asks for its limit if need be."""
        if self.max_model_len is None:
            self.tokenize_count("a")
        limit = self.max_model_len
        needed = prompt_tokens + max_output_tokens
        if limit is not None and needed > limit:
            raise UsageError(
                f"{prompt_tokens} prompt tokens and {max_output_tokens} output tokens exceed the server's model length "
                f"of {limit}",
                remedy=f"--prompt-tokens {max(1, limit - max_output_tokens)}, or -- --max-model-len {needed}",
            )

    def stream(
        self,
        prompt_text: str,
        *,
        model: str,
        max_tokens: int,
        clock: Callable[[], float],
        on_event: OnEvent,
    ) -> ResponseEnd:
        """Sends the prompt and tells each piece of the answer as it comes, then the end, which is also returned.

        Waits for the first token as long as it takes: a stall is what we are here for, and ``cancel()`` ends it. What
        goes wrong on the way is the ``error`` of the end, not an exception. ``on_event`` runs in the calling thread.
        """
        reader = CompletionReader(clock=clock, on_chunk=on_event)
        body = {
            "model": model,
            "prompt": prompt_text,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "add_special_tokens": True,
        }
        try:
            self._run(self._post_stream("/v1/completions", body, reader))
            end = reader.end("finished")
        except Cancelled:
            end = reader.end("cancelled")
        except (StreamFault, ServerError) as fault:
            end = reader.end("error", error=str(fault))
        on_event(end)
        return end

    def cancel(self) -> None:
        """Ends every call at once, now and later; safe from any thread, any number of times."""
        with self._lock:
            self._cancelled = True
            running = tuple(self._running)
        for loop, task in running:
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # that call ended on its own in the meantime, and its loop with it
                continue

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs ``work`` in an event loop of this thread: a waiting task can be cancelled, a blocking read cannot."""

        async def cancellable() -> _Result:
            entry = (asyncio.get_running_loop(), asyncio.ensure_future(work))
            with self._lock:
                self._running.add(entry)
                if self._cancelled:
                    entry[1].cancel()
            try:
                return await entry[1]
            finally:
                with self._lock:
                    self._running.discard(entry)

        try:
            return asyncio.run(cancellable())
        except asyncio.CancelledError:
            raise Cancelled from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerError(f"{self.base_url}: {_cause(error)}") from None

    def _connection(self, *, read_timeout_s: float | None) -> httpx.AsyncClient:
        """Straight to the server: no proxy or netrc of the environment, no redirect to anywhere else."""
        limits = httpx.Timeout(self._connect_timeout_s, write=60, read=read_timeout_s)
        return httpx.AsyncClient(
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {self._api_key}"} if self._api_key else None,
            timeout=limits,
            verify=verifies(self.base_url),
            trust_env=False,
            follow_redirects=False,
        )

    async def _post_json(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        limit_s = self._tokenize_timeout_s
        try:
            async with (
                asyncio.timeout(limit_s),
                self._connection(read_timeout_s=limit_s) as http,
                http.stream("POST", path, json=body) as response,
            ):
                await _raise_for_status(response, path, secret=self._api_key)
                content = await _bounded(response, MAX_TOKENIZE_BYTES)
        except TimeoutError:
            raise ServerError(f"{self.base_url}{path} did not answer within {limit_s:g} s") from None
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ServerError(f"{self.base_url}{path} did not answer with a JSON object")
        return answer

    async def _post_stream(self, path: str, body: dict[str, Any], reader: CompletionReader) -> None:
        async with (
            self._connection(read_timeout_s=None) as http,
            http.stream("POST", path, json=body) as response,
        ):
            await _raise_for_status(response, path, secret=self._api_key)
            async for data in response.aiter_bytes():
                reader.feed(data)
                if reader.done:
                    return


async def _raise_for_status(response: httpx.Response, path: str, *, secret: str | None) -> None:
    if response.status_code == httpx.codes.OK:
        return
    content = await _bounded(response, MAX_ERROR_BYTES, cut=True)
    content = content.replace(secret.encode(), REDACTED.encode()) if secret else content
    try:
        said = error_message(json.loads(content))
    except (ValueError, RecursionError):
        said = one_line(content.decode("utf-8", "replace"), limit=120)
    raise ServerError(f"{path} answered HTTP {response.status_code}: {said}")


async def _bounded(response: httpx.Response, limit: int, *, cut: bool = False) -> bytes:
    content = bytearray()
    async for data in response.aiter_bytes():
        content += data
        if len(content) > limit:
            if cut:
                break
            raise ServerError(f"{response.url.path} answered with more than {limit // 1024 // 1024} MiB")
    return bytes(content[:limit])


def _cause(error: Exception) -> str:
    """What went wrong with the connection; httpx leaves the text of some of its errors empty."""
    names = {
        "ConnectError": "cannot connect",
        "ConnectTimeout": "cannot connect in time",
        "ReadError": "the connection was reset",
        "WriteError": "the connection was reset while sending",
        "RemoteProtocolError": "the server closed the connection in the middle of its answer",
    }
    name = type(error).__name__
    text = one_line(str(error), limit=160)
    return ": ".join(filter(None, (names.get(name, name), text)))
