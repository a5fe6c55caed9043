import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.observing.metrics import Exported, MetricsFormatError, parse_metrics

TEXT = """# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.75
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 240000.0
vllm:prompt_tokens_total{engine="1",model_name="tiny"} 10.0
vllm:prompt_tokens_created{engine="0",model_name="tiny"} 1.7e+09
vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 99.0
vllm:generation_tokens_total{engine="0",model_name="tiny"} 20.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0"} 3.0
vllm:iteration_tokens_total_count{engine="0"} 20.0
vllm:iteration_tokens_total_sum{engine="0"} 474020.0
vllm:num_requests_running{engine="0"} 1.0
vllm:num_requests_waiting{engine="0"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 5.0
vllm:cache_config_info{block_size="64",cache_dtype="auto",engine="0",num_cpu_blocks="None",num_gpu_blocks="5012"} 1.0
vllm:cache_config_info{block_size="64",cache_dtype="auto",engine="1",num_cpu_blocks="None",num_gpu_blocks="5000"} 1.0
"""


def test_engines_are_summed_and_the_fullest_counts() -> None:
    assert parse_metrics(TEXT) == Exported(
        kv_cache_usage=0.75,
        prompt_tokens_total=240010,
        generation_tokens_total=20,
        iterations_total=20,
        requests_running=1,
        requests_waiting=2,
        num_blocks=5000,
        block_size_tokens=64,
    )


def test_the_older_name_of_kv_usage_is_known() -> None:
    assert parse_metrics('vllm:gpu_cache_usage_perc{model_name="x"} 0.5\n').kv_cache_usage == 0.5


def test_the_cpu_backends_block_count() -> None:
    text = 'vllm:cache_config_info{block_size="16",num_cpu_blocks="77",num_gpu_blocks="None"} 1.0'
    found = parse_metrics(text)
    assert (found.num_blocks, found.block_size_tokens) == (77, 16)


@pytest.mark.parametrize(
    "text", ["", "up 1\n", "# nothing", "vllm:kv_cache_usage_perc NaN", 'vllm:cache_config_info{block_size="x"} 1']
)
def test_what_is_missing_is_none(text: str) -> None:
    assert parse_metrics(text) == Exported()


@pytest.mark.parametrize(
    "text", ["vllm:kv_cache_usage_perc{", "vllm:kv_cache_usage_perc x", "vllm:num_requests_running"]
)
def test_a_broken_line_that_matters_is_an_error(text: str) -> None:
    with pytest.raises(MetricsFormatError):
        parse_metrics(text)


@given(st.text(), st.sampled_from(["", "vllm:kv_cache_usage_perc", "vllm:cache_config_info{"]))
def test_any_text_is_parsed_or_refused(text: str, head: str) -> None:
    try:
        parse_metrics(head + text)
    except MetricsFormatError:
        return


def test_sglangs_names_are_read_too() -> None:
    labels = '{engine_type="unified",model_name="m",tp_rank="0"}'
    text = "\n".join(
        f"sglang:{name}{labels} {value}"
        for name, value in (
            ("num_running_reqs", 3.0),
            ("num_queue_reqs", 2.0),
            ("token_usage", 0.28),
            ("prompt_tokens_total", 8128902.0),
            ("generation_tokens_total", 7557572.0),
            ("time_to_first_token_seconds_count", 11008.0),
        )
    )
    exported = parse_metrics(text)
    assert (exported.requests_running, exported.requests_waiting, exported.kv_cache_usage) == (3, 2, 0.28)
    assert (exported.prompt_tokens_total, exported.generation_tokens_total) == (8128902, 7557572)
    assert exported.num_blocks is None
