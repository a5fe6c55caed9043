"""How one pattern is written and what it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.patterns import bare_name, compile_sets, is_native, parse_pattern, path_parts


def fits(pattern: str, function: str, path: str | None = None) -> bool:
    index = compile_sets({"one": [pattern]})
    return bool(index.look_up(function, path, False)[0] & index.bit("one"))


@pytest.mark.parametrize(
    ("pattern", "function", "path"),
    [
        ("acquire_read", "acquire_read", None),
        ("acquire_read", "MessageQueue.acquire_read", "vllm/distributed/device_communicators/shm_broadcast.py"),
        ("_local_scalar_dense_cuda", "at::native::_local_scalar_dense_cuda(at::Tensor const&)", "libtorch_cuda.so"),
        ("pthread_cond_wait", "pthread_cond_wait@@GLIBC_2.3.2", "libpthread-2.31.so"),
        ("do_futex_wait", "do_futex_wait.constprop.0", "libpthread-2.31.so"),
        ("enqueue", "ns::Plugin::enqueue(int) [clone .isra.100]", None),
        ("*_torch", "_fp8_mqa_logits_torch", None),
        ("_fp8_*_torch", "_fp8_mqa_logits_torch", "a.py"),
        ("gloo::", "gloo::transport::tcp::UnboundBuffer::waitRecv", None),
        ("all_reduce@torch/distributed", "all_reduce", "/usr/lib/site-packages/torch/distributed/distributed_c10d.py"),
        ("__init__@device_communicators/pynccl.py", "__init__", "pynccl.py"),
        ("synchronize@?torch/cuda", "synchronize", None),
        ("@torch/_inductor", "anything", "C:\\env\\torch\\_inductor\\graph.py"),
        ("@libcuda.so", "??", "/usr/lib/libcuda.so.550.54.15"),
        ("@libcuda.so", "cuCtxSynchronize", "libcuda"),
        ("capture@*graph*", "capture", "sglang/srt/model_executor/cuda_graph_runner.py"),
        ("<module>", "<module>", "a.py"),
        ("gc.collect", "gc.collect", None),
        ("torch.", "torch.cuda.synchronize", None),
        ("synchronize@torch/cuda", "torch.cuda.synchronize", None),
        ("step@vllm/v1/engine/core.py", "vllm.v1.engine.core.EngineCore.step", None),
        ("waitUntilCompleted", "-[_MTLCommandBuffer waitUntilCompleted]", "Metal"),
    ],
)
def test_fits(pattern: str, function: str, path: str | None) -> None:
    assert fits(pattern, function, path)


@pytest.mark.parametrize(
    ("pattern", "function", "path"),
    [
        ("acquire_read", "acquire_reader", None),
        ("all_reduce@torch/distributed", "all_reduce", None),
        ("all_reduce@torch/distributed", "all_reduce", "torch/distributed_extra/x.py"),
        ("all_reduce@torch/distributed", "all_reduce", "vllm/distributed/parallel_state.py"),
        ("@torch/_inductor", "f", "_inductor.py"),
        ("gloo::", "waitRecv", None),
        ("*_torch", "torch_all", None),
        ("@pynccl.py", "f", None),
        ("wait@torch/cuda/streams.py", "wait", "cuda"),
        ("gc.collect", "collect", "gc.py"),
        ("gc.collect", "magic.collect", None),
        ("torch.", "mytorch.cuda", None),
    ],
)
def test_does_not_fit(pattern: str, function: str, path: str | None) -> None:
    assert not fits(pattern, function, path)


def test_what_a_set_leaves_out_wins_and_sets_hold_sets() -> None:
    index = compile_sets({"named": ["*_torch", "!from_torch"], "all": ["$named", "forward", "!$not"], "not": ["@ray"]})
    assert index.look_up("logits_torch", None, False)[0] == index.bit("named") | index.bit("all")
    assert index.look_up("from_torch", None, False)[0] == 0
    assert index.look_up("forward", "ray/x.py", False)[0] == index.bit("not")


@pytest.mark.parametrize("text", ["", "*", "@", "!", "f:12", "f@a.py:12", "a b", "f@", "$", "$Set"])
def test_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|names"):
        parse_pattern(text)


def test_names_paths_and_native_frames_are_read_as_the_tools_print_them() -> None:
    assert bare_name("<lambda>") == "<lambda>"
    assert bare_name("operator()") == "operator"
    assert path_parts(".../shm_broadcast.py") == ("shm_broadcast.py",)
    assert path_parts("libpthread-2.31.so") == ("libpthread.so",)
    assert is_native("gloo::barrier", None, said=False)
    assert is_native("read", "libc.so.6", said=False)
    assert not is_native("forward", "model.py", said=False)
    assert not is_native("<module>", "<string>", said=False)


@given(st.text(max_size=60), st.none() | st.text(max_size=60))
def test_any_frame_has_an_answer(function: str, path: str | None) -> None:
    bare_name(function)
    fits("a_*", function, path)


@given(st.text(max_size=30))
def test_any_pattern_is_read_or_refused(text: str) -> None:
    try:
        parse_pattern(text)
    except ValueError as error:
        assert str(error)
