"""What the server says about itself over HTTP: ``/metrics`` and ``/health``, bounded in time and size.

During a long prefill most of these lie (``prompt_tokens_total`` moves only at the first token, ``/health`` stays 200
through real wedges); only ``kv_cache_usage_perc`` moves, once a chunk. They are evidence, never the verdict.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint
from sparkdiag.harmless.excerpt import excerpt
from sparkdiag.tls import verifies

BODY_LIMIT_BYTES = 8 * 2**20
REQUEST_TIMEOUT_S = 5.0
"""For a whole answer, not only for the pause between two of its pieces."""
HEALTH_EVERY_S = 5.0
"""It tells little and costs as much as the rest: asked seldom, and whenever ``/metrics`` fails."""

# Each by its names, vLLM's first; SGLang's are those of https://docs.sglang.ai/references/production_metrics.html,
# which a server started with --enable-metrics exports.
_KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_CACHE_CONFIG = "vllm:cache_config_info"
_PROMPT_TOKENS = ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")
_GENERATION_TOKENS = ("vllm:generation_tokens_total", "sglang:generation_tokens_total")
_ITERATIONS = "vllm:iteration_tokens_total_count"
_FINISHED = "vllm:request_success_total"
"""One series a reason. Aborted ones do not count: clients that give up are no sign that an engine works."""
_RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
_WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
_WANTED = (
    *_KV_USAGE,
    *_PROMPT_TOKENS,
    *_GENERATION_TOKENS,
    *_RUNNING,
    *_WAITING,
    _CACHE_CONFIG,
    _ITERATIONS,
    _FINISHED,
)
_LINES_REMEMBERED = 128
"""Each engine has some fifteen lines, of which a long prefill moves one or two."""
_LONGEST_REMEMBERED = 4096


class Exported(Value):
    """The metrics that matter, over all engines; None where the server does not export one."""

    kv_cache_usage: float | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    iterations_total: float | None = None
    requests_finished_total: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    num_blocks: int | None = None
    block_size_tokens: int | None = None


class MetricsFormatError(ValueError):
    """The text is not in Prometheus' format."""


def parse_metrics(text: str) -> Exported:
    """Reads the exposition text; a missing or renamed metric is None. Raises ``MetricsFormatError``."""
    # A server exports hundreds of series; parsing only the few that matter keeps a scrape cheap.
    lines = [line for line in text.splitlines() if line.startswith(_WANTED) and _metric_name(line) in _WANTED]
    samples = [sample for line in lines for sample in _samples(line)]
    usage = next((values for name in _KV_USAGE if (values := _values(samples, name))), [])
    capacity = _capacity(samples)
    return Exported(
        kv_cache_usage=max(usage) if usage else None,
        prompt_tokens_total=_sum(samples, *_PROMPT_TOKENS),
        generation_tokens_total=_sum(samples, *_GENERATION_TOKENS),
        iterations_total=_sum(samples, _ITERATIONS),
        requests_finished_total=_sum(
            [sample for sample in samples if sample.labels.get("finished_reason") != "abort"], _FINISHED
        ),
        requests_running=_sum(samples, *_RUNNING),
        requests_waiting=_sum(samples, *_WAITING),
        num_blocks=capacity[0] if capacity else None,
        block_size_tokens=capacity[1] if capacity else None,
    )


def _metric_name(line: str) -> str:
    return line.split("{", 1)[0].split(" ", 1)[0]


def _samples(line: str) -> tuple[Sample, ...]:
    return _remembered(line) if len(line) <= _LONGEST_REMEMBERED else _parsed(line)


def _parsed(line: str) -> tuple[Sample, ...]:
    try:
        return tuple(sample for family in text_string_to_metric_families(line + "\n") for sample in family.samples)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise MetricsFormatError("/metrics is not in Prometheus' format") from error


_remembered = lru_cache(maxsize=_LINES_REMEMBERED)(_parsed)


def _values(samples: Iterable[Sample], name: str) -> list[float]:
    return [sample.value for sample in samples if sample.name == name and math.isfinite(sample.value)]


def _sum(samples: Sequence[Sample], *names: str) -> float | None:
    """Over all engines, by the first of the names that is exported."""
    return next((sum(values) for name in names if (values := _values(samples, name))), None)


def _capacity(samples: Iterable[Sample]) -> tuple[int, int] | None:
    """Blocks and tokens a block of the smallest engine; the CPU backend may fill either count."""
    found = []
    for sample in samples:
        if sample.name != _CACHE_CONFIG:
            continue
        blocks = _count(sample.labels.get("num_gpu_blocks")) or _count(sample.labels.get("num_cpu_blocks"))
        size = _count(sample.labels.get("block_size"))
        if blocks and size:
            found.append((blocks, size))
    return min(found) if found else None


def _count(label: str | None) -> int | None:
    return int(label) if label is not None and label.isascii() and label.isdigit() and len(label) < 16 else None


class MetricsReader:
    """Scrapes one server. Ignores proxy settings of the environment: the server is addressed directly."""

    def __init__(self, base_url: str, *, clock: Callable[[], float], timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._health_due_s = float("-inf")
        # A transport follows no redirect, keeps no cookie, and costs half of what a client around it does.
        self._transport = httpx.HTTPTransport(verify=verifies(base_url), trust_env=False)
        self._requests = {path: _request(base_url, path, timeout_s=timeout_s) for path in ("/metrics", "/health")}

    def close(self) -> None:
        """Close the connections; a read that is under way ends with an error."""
        self._transport.close()

    def read(self) -> tuple[MetricPoint, KvCapacity | None]:
        """One scrape; what went wrong is in ``MetricPoint.error``, never raised."""
        began_s = self._clock()
        exported, error = Exported(), None
        try:
            status, text = self._get("/metrics")
            if status == httpx.codes.OK:
                exported = parse_metrics(text)
            else:
                error = f"/metrics answered {status}"
        except (httpx.HTTPError, MetricsFormatError, _AnswerRefused, RuntimeError, ValueError) as failure:
            error = excerpt(f"/metrics: {failure or type(failure).__name__}", limit=200)
        latency_s = self._clock() - began_s
        health_status, health_error = None, None
        if error is not None or began_s >= self._health_due_s:
            self._health_due_s = began_s + HEALTH_EVERY_S
            health_status, health_error = self._health()
        at_s = began_s + latency_s
        point = MetricPoint(
            t_s=at_s,
            health_status=health_status,
            latency_s=latency_s,
            error=error or health_error,
            **exported.model_dump(exclude={"num_blocks", "block_size_tokens"}),
        )
        if exported.num_blocks is None or exported.block_size_tokens is None:
            return point, None
        return point, KvCapacity(t_s=at_s, num_blocks=exported.num_blocks, block_size_tokens=exported.block_size_tokens)

    def _health(self) -> tuple[int | None, str | None]:
        try:
            return self._get("/health")[0], None
        except (httpx.HTTPError, _AnswerRefused, RuntimeError, ValueError) as failure:
            return None, excerpt(f"/health: {failure or type(failure).__name__}", limit=200)

    def _get(self, path: str) -> tuple[int, str]:
        deadline_s = time.monotonic() + self._timeout_s
        body = bytearray()
        response = self._transport.handle_request(self._requests[path])
        try:
            # As they arrive (a chunk size would gather pieces past the deadline) and as sent (nothing to unpack).
            for piece in response.iter_raw():
                body.extend(piece)
                if len(body) > BODY_LIMIT_BYTES:
                    raise _AnswerRefused(f"the answer is larger than {BODY_LIMIT_BYTES // 2**20} MiB")
                if time.monotonic() > deadline_s:
                    raise _AnswerRefused(f"the answer took longer than {self._timeout_s:g} s")
        finally:
            response.close()
        return response.status_code, body.decode("utf-8", "replace")


def _request(base_url: str, path: str, *, timeout_s: float) -> httpx.Request:
    return httpx.Request(
        "GET",
        base_url.rstrip("/") + path,
        headers={"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "sparkdiag"},
        extensions={"timeout": httpx.Timeout(timeout_s).as_dict()},
    )


class _AnswerRefused(Exception):
    """The answer broke a bound."""
