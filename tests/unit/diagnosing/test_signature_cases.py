# ruff: noqa: E501
"""Stacks of every kind, as the engines of several years show them, and what they are called."""

from typing import get_args

import pytest
from signature_stacks import (
    ASK,
    CORE,
    DEQUEUE,
    HELPERS,
    LOAD,
    MODEL,
    RUN,
    SERVER,
    SGL,
    SGL_LOOP,
    SGL_MODEL,
    WARM,
    WORKER,
    frames,
    look,
)

from sparkdiag.diagnosing.signatures import match_look
from sparkdiag.evidence.diagnosis import DiagnosisKind
from sparkdiag.evidence.dump import DumpThread, ProcessDump

CASES = [  # one stack a line, however long: they are read as a table
    # ------------------------------------------------------------------------------------------------ torch-fallback
    ("torch-fallback", f"matmul (torch/functional.py) < _fp8_mqa_logits_torch (vllm/v1/attention/ops/x.py) < {MODEL}"),
    ("torch-fallback", f"fp8_mqa_logits_torch (vllm/v1/attention/ops/rocm_aiter_mla_sparse.py) < {MODEL}"),
    ("torch-fallback", f"synchronize (torch/cuda/streams.py) < _fp8_mqa_logits_torch (indexer.py) < {MODEL}"),
    ("torch-fallback", f"torch_chunk_gated_delta_rule (transformers/models/qwen3_next/modeling_qwen3_next.py) < {MODEL}"),
    ("torch-fallback", f"w8a8_block_fp8_matmul_torch (sglang/srt/layers/quantization/fp8_kernel.py) < {SGL_MODEL}"),
    ("torch-fallback", f"selective_scan_ref (vllm/model_executor/layers/mamba/ops/ssm.py) < {MODEL}"),
    ("torch-fallback", f"einsum (torch/functional.py) < fused_experts_naive (vllm/model_executor/layers/moe.py) < {MODEL}"),
    # --------------------------------------------------------------------------------------------------- jit-compile
    ("jit-compile", f"make_cubin (triton/backends/nvidia/compiler.py) < compile (triton/compiler/compiler.py) < _do_compile (triton/runtime/jit.py) < run (triton/runtime/jit.py) < unified_attention (vllm/v1/attention/ops/triton_unified_attention.py) < {MODEL}"),
    ("jit-compile", f"wait (subprocess.py) < communicate (subprocess.py) < run (subprocess.py) < make_cubin (triton/backends/nvidia/compiler.py) < {MODEL}"),
    ("jit-compile", f"do_bench (triton/testing.py) < _bench (triton/runtime/autotuner.py) < run (triton/runtime/autotuner.py) < {MODEL}"),
    ("jit-compile", f"poll (selectors.py) < communicate (subprocess.py) < run_ninja (flashinfer/jit/cpp_ext.py) < build_and_load (flashinfer/jit/core.py) < get_batch_prefill_module (flashinfer/prefill.py) < {MODEL}"),
    ("jit-compile", f"acquire (filelock/_api.py) < __enter__ (filelock/_api.py) < load_cuda_ops (flashinfer/jit/core.py) < {SGL_MODEL}"),
    ("jit-compile", f"wait (torch/utils/file_baton.py) < _jit_compile (torch/utils/cpp_extension.py) < load (torch/utils/cpp_extension.py) < {MODEL}"),
    ("jit-compile", f"compile (deep_gemm/jit/compiler.py) < build (deep_gemm/jit/compiler.py) < fp8_gemm_nt (deep_gemm/__init__.py) < {SGL_MODEL}"),
    ("jit-compile", f"codegen (torch/_inductor/scheduler.py) < compile_to_fn (torch/_inductor/graph.py) < compile_fx_inner (torch/_inductor/compile_fx.py) < compile (vllm/compilation/compiler_interface.py) < {WARM}"),
    ("jit-compile", f"inline_call_ (torch/_dynamo/symbolic_convert.py) < _compile (torch/_dynamo/convert_frame.py) < {MODEL}"),
    ("jit-compile", f"result (concurrent/futures/_base.py) < wait (torch/_inductor/async_compile.py) < _compile_fx_inner (torch/_inductor/compile_fx.py) < {WARM}"),
    ("jit-compile", f"choose_one (flashinfer/autotuner.py) < trtllm_fp4_block_scale_moe (flashinfer/fused_moe/core.py) < {MODEL}"),
    ("jit-compile", f"llvm::SelectionDAGISel::runOnMachineFunction (libtriton.so) < _PyEval_EvalFrameDefault (python3.12) < {MODEL}"),
    ("jit-compile", f"cuModuleLoadData (libcuda.so.1) < {MODEL}"),
    ("jit-compile", f"compile_and_cache (cutlass/base_dsl/dsl.py) < __call__ (cutlass/base_dsl/compiler.py) < {MODEL}"),
    ("jit-compile", f"nvrtcCompileProgram (libnvrtc.so.12) < {MODEL}"),
    # ----------------------------------------------------------------------------------------------- collective-wait
    ("collective-wait", f"all_reduce (torch/distributed/distributed_c10d.py) < wrapper (torch/distributed/c10d_logger.py) < all_reduce (vllm/distributed/parallel_state.py) < {MODEL}"),
    ("collective-wait", f"all_gather (vllm/distributed/device_communicators/pynccl.py) < all_gather (vllm/distributed/device_communicators/cuda_communicator.py) < {MODEL}"),
    ("collective-wait", f"ncclAllReduce (libnccl.so.2) < all_reduce (vllm/distributed/device_communicators/pynccl.py) < {MODEL}"),
    ("collective-wait", f"all_reduce (vllm/distributed/device_communicators/custom_all_reduce.py) < custom_all_reduce (vllm/distributed/device_communicators/custom_all_reduce.py) < {MODEL}"),
    ("collective-wait", f"broadcast (torch/distributed/distributed_c10d.py) < broadcast_pyobj (sglang/srt/utils.py) < recv_requests (scheduler.py) < {SGL_LOOP}"),
    ("collective-wait", f"recv (torch/distributed/distributed_c10d.py) < recv_object (vllm/distributed/parallel_state.py) < recv_tensor_dict (vllm/distributed/parallel_state.py) < {RUN}"),
    ("collective-wait", f"all_gather_object (torch/distributed/distributed_c10d.py) < register_graph_buffers (vllm/distributed/device_communicators/custom_all_reduce.py) < capture (vllm/distributed/device_communicators/custom_all_reduce.py) < capture_model (vllm/v1/worker/gpu_model_runner.py) < {WORKER}"),
    ("collective-wait", f"all_reduce (torch/distributed/distributed_c10d.py) < _run_ar (vllm/v1/worker/dp_utils.py) < coordinate_batch_across_dp (vllm/v1/worker/dp_utils.py) < {RUN}"),
    ("collective-wait", f"all_gather_into_tensor (torch/distributed/distributed_c10d.py) < prepare_mlp_sync_batch_raw (scheduler.py) < {SGL_LOOP}"),
    ("collective-wait", "pthread_cond_wait (libc.so.6) < gloo::transport::tcp::UnboundBuffer::waitRecv (libtorch_cpu.so) < c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so) < recv (torch/distributed/distributed_c10d.py) < point_to_point_pyobj (sglang/srt/utils/common.py) < event_loop_pp (scheduler.py)"),
    ("collective-wait", f"low_latency_dispatch (deep_ep/buffer.py) < dispatch_a (sglang/srt/layers/moe/token_dispatcher/deepep.py) < {SGL_MODEL}"),
    ("collective-wait", f"barrier (torch/distributed/distributed_c10d.py) < barrier (vllm/distributed/parallel_state.py) < {LOAD}"),
    # ----------------------------------------------------------------------------------------------- collective-init
    ("collective-init", "ncclCommInitRank (vllm/distributed/device_communicators/pynccl_wrapper.py) < __init__ (vllm/distributed/device_communicators/pynccl.py) < __init__ (vllm/distributed/parallel_state.py) < init_model_parallel_group (vllm/distributed/parallel_state.py) < initialize_model_parallel (vllm/distributed/parallel_state.py) < init_worker_distributed_environment (vllm/v1/worker/gpu_worker.py) < init_device (vllm/v1/worker/gpu_worker.py)"),
    ("collective-init", "_create_c10d_store (torch/distributed/rendezvous.py) < _tcp_rendezvous_handler (torch/distributed/rendezvous.py) < init_process_group (torch/distributed/distributed_c10d.py) < init_distributed_environment (vllm/distributed/parallel_state.py)"),
    ("collective-init", "all_reduce (torch/distributed/distributed_c10d.py) < init_torch_distributed (sglang/srt/model_executor/model_runner.py) < __init__ (sglang/srt/model_executor/model_runner.py)"),
    ("collective-init", "barrier (torch/distributed/distributed_c10d.py) < new_group (torch/distributed/distributed_c10d.py) < initialize_model_parallel (sglang/srt/distributed/parallel_state.py)"),
    ("collective-init", "poll (libc.so.6) < bootstrapAllGather (libnccl.so.2) < initTransportsRank (libnccl.so.2) < ncclCommInitRankFunc (libnccl.so.2)"),
    ("collective-init", f"__init__ (deep_ep/buffer.py) < get_deepep_buffer (sglang/srt/layers/moe/token_dispatcher/deepep.py) < {SGL_MODEL}"),
    # ------------------------------------------------------------------------------------------------------ gpu-wait
    ("gpu-wait", f"_to_list (vllm/v1/worker/gpu_model_runner.py) < _bookkeeping_sync (vllm/v1/worker/gpu_model_runner.py) < sample_tokens (vllm/v1/worker/gpu_model_runner.py) < {WORKER}"),
    ("gpu-wait", f"synchronize (torch/cuda/__init__.py) < {RUN}"),
    ("gpu-wait", f"cuEventSynchronize (libcuda.so.550.54.15) < cudaEventSynchronize (libcudart.so.12) < _to_list (vllm/v1/worker/gpu_model_runner.py) < {RUN}"),
    ("gpu-wait", f"cudaStreamSynchronize (libcudart.so.12) < at::native::_local_scalar_dense_cuda(at::Tensor const&) (libtorch_cuda.so) < sample (vllm/v1/sample/sampler.py) < {RUN}"),
    ("gpu-wait", f"synchronize (torch/cuda/streams.py) < process_batch_result_decode (scheduler_output_processor_mixin.py) < process_batch_result (scheduler.py) < {SGL_LOOP}"),
    ("gpu-wait", f"?? (libcuda.so.1) < ?? (libcuda.so.1) < _PyEval_EvalFrameDefault (python3.12) < {RUN}"),
    ("gpu-wait", f"synchronize (torch_npu/npu/streams.py) < execute_model (vllm_ascend/worker/model_runner_v1.py) < {WORKER}"),
    ("gpu-wait", f"hipStreamSynchronize (libamdhip64.so.6) < {RUN}"),
    ("gpu-wait", f"cuGraphLaunch (libcuda.so.1) < replay (torch/cuda/graphs.py) < {RUN}"),
    # ---------------------------------------------------------------------------------------------------- queue-wait
    ("queue-wait", f"{DEQUEUE} < {ASK}"),
    ("queue-wait", f"poll (zmq/sugar/poll.py) < recv (shm_broadcast.py) < dequeue (shm_broadcast.py) < {ASK}"),
    ("queue-wait", f"acquire_write (vllm/distributed/device_communicators/shm_broadcast.py) < enqueue (vllm/distributed/device_communicators/shm_broadcast.py) < collective_rpc (vllm/v1/executor/multiproc_executor.py) < step (vllm/v1/engine/core.py) < {CORE}"),
    ("queue-wait", f"wait (threading.py) < result (concurrent/futures/_base.py) < result (vllm/v1/executor/multiproc_executor.py) < step_with_batch_queue (vllm/v1/engine/core.py) < {CORE}"),
    ("queue-wait", "wait (threading.py) < get (vllm/executor/multiproc_worker_utils.py) < _run_workers (vllm/executor/multiproc_gpu_executor.py) < execute_model (vllm/executor/distributed_gpu_executor.py) < step (vllm/engine/llm_engine.py)"),
    ("queue-wait", "poll (zmq/sugar/poll.py) < wait_for_engine_startup (vllm/v1/engine/utils.py) < launch_core_engines (vllm/v1/engine/utils.py) < __init__ (vllm/v1/engine/core_client.py)"),
    ("queue-wait", "_recv (multiprocessing/connection.py) < recv (multiprocessing/connection.py) < wait_for_ready (vllm/v1/executor/multiproc_executor.py) < _init_executor (vllm/v1/executor/multiproc_executor.py)"),
    # ------------------------------------------------------------------------------------------------ scheduler-loop
    ("scheduler-loop", f"schedule (vllm/v1/core/sched/scheduler.py) < step (vllm/v1/engine/core.py) < {CORE}"),
    ("scheduler-loop", f"find_longest_cache_hit (vllm/v1/core/single_type_kv_cache_manager.py) < get_computed_blocks (vllm/v1/core/kv_cache_manager.py) < schedule (vllm/v1/core/sched/scheduler.py) < {CORE}"),
    ("scheduler-loop", f"_match_prefix_helper (sglang/srt/mem_cache/radix_cache.py) < match_prefix (sglang/srt/mem_cache/radix_cache.py) < get_new_batch_prefill (scheduler.py) < {SGL_LOOP}"),
    ("scheduler-loop", "_schedule_prefills (vllm/core/scheduler.py) < _schedule (vllm/core/scheduler.py) < step (vllm/engine/llm_engine.py)"),
    # --------------------------------------------------------------------------------------------------- kv-transfer
    ("kv-transfer", f"wait (threading.py) < wait_for_layer_load (vllm/distributed/kv_transfer/kv_connector/v1/lmcache_connector.py) < unified_attention (vllm/attention/layer.py) < {MODEL}"),
    ("kv-transfer", f"get_num_new_matched_tokens (vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py) < schedule (vllm/v1/core/sched/scheduler.py) < {CORE}"),
    ("kv-transfer", f"recv_tensor (vllm/distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_engine.py) < start_load_kv (vllm/distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_connector.py) < {RUN}"),
    ("kv-transfer", "all_reduce (torch/distributed/distributed_c10d.py) < poll_and_all_reduce (sglang/srt/disaggregation/utils.py) < pop_transferred (sglang/srt/disaggregation/decode.py) < event_loop_normal_disagg_decode (sglang/srt/disaggregation/decode.py)"),
    ("kv-transfer", f"get_finished (vllm/distributed/kv_transfer/kv_connector/v1/nixl/worker.py) < {RUN}"),
    ("kv-transfer", f"loading_check (sglang/srt/mem_cache/hiradix_cache.py) < check_hicache_events (sglang/srt/mem_cache/hiradix_cache.py) < get_new_batch_prefill (scheduler.py) < {SGL_LOOP}"),
    # ------------------------------------------------------------------------------------------------------ ray-wait
    ("ray-wait", "get_objects (ray/_private/worker.py) < get (ray/_private/worker.py) < wrapper (ray/_private/client_mode_hook.py) < _run_ray_workers (vllm/v1/executor/ray_executor.py) < collective_rpc (vllm/v1/executor/ray_executor.py)"),
    ("ray-wait", f"begin_read (ray/experimental/channel/shared_memory_channel.py) < get (ray/experimental/compiled_dag_ref.py) < execute_model (vllm/v1/executor/ray_distributed_executor.py) < step (vllm/v1/engine/core.py) < {CORE}"),
    ("ray-wait", "ray::core::CoreWorker::Get (ray/_raylet.so) < get_objects (ray/_raylet.so) < get (ray/_private/worker.py) < main (train.py)"),
    # ------------------------------------------------------------------------------------------------------ dp-dummy
    ("dp-dummy", f"all_reduce (torch/distributed/distributed_c10d.py) < _dummy_run (vllm/v1/worker/gpu_model_runner.py) < execute_dummy_batch (vllm/v1/worker/gpu_worker.py) < {WORKER}"),
    ("dp-dummy", "all_reduce (torch/distributed/distributed_c10d.py) < has_unfinished_dp (vllm/config/parallel.py) < _has_global_unfinished_reqs (vllm/v1/engine/core.py) < run_busy_loop (vllm/v1/engine/core.py)"),
    # ------------------------------------------------------------------------------------------------------ the starts
    ("warmup", f"forward (vllm/model_executor/models/llama.py) < {WARM}"),
    ("warmup", f"synchronize (torch/cuda/__init__.py) < {WARM}"),
    ("warmup", "select (selectors.py) < request (requests/api.py) < _execute_server_warmup (sglang/srt/entrypoints/http_server.py)"),
    ("weight-load", f"safetensors_weights_iterator (vllm/model_executor/model_loader/weight_utils.py) < load_weights (vllm/model_executor/models/llama.py) < {LOAD}"),
    ("weight-load", "read (libc.so.6) < http_get (huggingface_hub/file_download.py) < hf_hub_download (huggingface_hub/file_download.py) < snapshot_download (huggingface_hub/_snapshot_download.py)"),
    ("weight-load", f"acquire (filelock/_api.py) < download_weights_from_hf (vllm/model_executor/model_loader/weight_utils.py) < {LOAD}"),
    ("weight-load", f"process_weights_after_loading (vllm/model_executor/layers/quantization/fp8.py) < {LOAD}"),
    ("graph-capture", f"capture_end (torch/cuda/graphs.py) < __exit__ (torch/cuda/graphs.py) < _capture_cudagraphs (vllm/v1/worker/gpu_model_runner.py) < capture_model (vllm/v1/worker/gpu_model_runner.py) < compile_or_warm_up_model (vllm/v1/worker/gpu_worker.py) < {WORKER}"),
    ("graph-capture", "forward (sglang/srt/models/llama.py) < run_once (sglang/srt/model_executor/cuda_graph_runner.py) < capture_one_batch_size (sglang/srt/model_executor/cuda_graph_runner.py) < capture (sglang/srt/model_executor/cuda_graph_runner.py) < init_cuda_graphs (sglang/srt/model_executor/model_runner.py)"),
    # ----------------------------------------------------------------------------------------------------- tokenizer
    ("tokenizer", f"_batch_encode_plus (transformers/tokenization_utils_fast.py) < __call__ (transformers/tokenization_utils_base.py) < create_chat_completion (vllm/entrypoints/openai/serving_chat.py) < {SERVER}"),
    ("tokenizer", f"render (jinja2/environment.py) < apply_chat_template (transformers/tokenization_utils_base.py) < {SERVER}"),
    ("tokenizer", "compile_json_schema (xgrammar/compiler.py) < compile_grammar (vllm/v1/structured_output/backend_xgrammar.py) < grammar_init (vllm/v1/structured_output/__init__.py) < preprocess_add_request (vllm/v1/engine/core.py)"),
    ("tokenizer", f"fill_bitmask (vllm/v1/structured_output/backend_outlines.py) < grammar_bitmask (vllm/v1/structured_output/__init__.py) < step (vllm/v1/engine/core.py) < {CORE}"),
    ("tokenizer", f"convert_ids_list_to_tokens (vllm/transformers_utils/detokenizer_utils.py) < update (vllm/v1/engine/detokenizer.py) < process_outputs (vllm/v1/engine/output_processor.py) < {SERVER}"),
    ("tokenizer", "batch_decode (transformers/tokenization_utils_base.py) < handle_batch_token_id_out (sglang/srt/managers/detokenizer_manager.py) < event_loop (sglang/srt/managers/detokenizer_manager.py)"),
    # ------------------------------------------------------------------------------------------------- gc, gil, exits
    ("gc", f"deduce_unreachable (python3.12) < gc_collect_main (python3.12) < _PyObject_GC_NewVar (python3.12) < {RUN}"),
    ("gc", f"visit_reachable (Modules/gcmodule.c) < subtract_refs (Modules/gcmodule.c) < {SGL}"),
    ("gil", f"pthread_cond_timedwait (libc.so.6) < take_gil (python3.12) < PyEval_RestoreThread (python3.12) < {RUN}"),
    ("shutdown", "_wait_for_tstate_lock (threading.py) < _shutdown (threading.py)"),
    ("shutdown", "wait (multiprocessing/popen_fork.py) < join (multiprocessing/process.py) < _exit_function (multiprocessing/util.py)"),
    ("shutdown", f"ncclCommAbort (libnccl.so.2) < destroy_process_group (torch/distributed/distributed_c10d.py) < {WORKER}"),
    ("shutdown", "wait (threading.py) < join (threading.py) < shutdown (vllm/v1/executor/multiproc_executor.py) < shutdown (vllm/v1/engine/core.py)"),
    # ------------------------------------------------------------------------------------------------ forward and idle
    ("forward", f"forward (vllm/model_executor/layers/rotary_embedding.py) < {MODEL}"),
    ("forward", f"run (triton/runtime/jit.py) < rms_norm (vllm/model_executor/layers/layernorm.py) < {MODEL}"),
    ("forward", f"_apply (penaltylib/min_new_tokens.py) < verify (eagle_info.py) < forward_batch_generation (eagle_worker.py) < {SGL_LOOP}"),
    ("forward", f"_prepare_inputs (vllm/v1/worker/gpu_model_runner.py) < {RUN}"),
    ("idle", f"{DEQUEUE} < {WORKER}"),
    ("idle", f"poll (zmq/sugar/poll.py) < recv (shm_broadcast.py) < dequeue (shm_broadcast.py) < {WORKER}"),
    ("idle", "wait (threading.py) < get (queue.py) < _process_input_queue (vllm/v1/engine/core.py) < run_busy_loop (vllm/v1/engine/core.py)"),
    ("idle", f"recv_pyobj (zmq/sugar/socket.py) < recv_requests (scheduler.py) < {SGL_LOOP}"),
    ("idle", f"select (selectors.py) < _run_once (asyncio/base_events.py) < run_forever (asyncio/base_events.py) < {SERVER}"),
    ("idle", "poll (zmq/sugar/poll.py) < run_engine_loop (vllm/engine/multiprocessing/engine.py) < wait_for_new_input (vllm/engine/multiprocessing/engine.py)"),
    ("idle", "recv_bytes (multiprocessing/connection.py) < get (multiprocessing/queues.py) < _run_worker_process (vllm/executor/multiproc_worker_utils.py)"),
    ("idle", "recv_pyobj (zmq/sugar/socket.py) < event_loop (sglang/srt/managers/detokenizer_manager.py)"),
    ("idle", "main_loop (ray/_private/worker.py) < <module> (ray/_private/workers/default_worker.py)"),
    ("idle", "read (libc.so.6) < main (multiprocessing/resource_tracker.py) < <module> (<string>)"),
    # ----------------------------------------------------------------------------------------- the watchers' own words
    ("collective-wait", "c10::Error::Error (libc10.so) < c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout (libtorch_cuda.so) < c10d::ProcessGroupNCCL::watchdogHandler (libtorch_cuda.so) < c10d::ProcessGroupNCCL::ncclCommWatchdog (libtorch_cuda.so)"),
    ("collective-wait", f"?? (libnccl.so.2) < ncclGroupEndInternal (libnccl.so.2) < _PyEval_EvalFrameDefault (python3.12) < {RUN}"),
    ("tokenizer", "trim_matched_stop (sglang/srt/managers/detokenizer_manager.py) < event_loop (sglang/srt/managers/detokenizer_manager.py)"),
    ("idle", "event_loop (sglang/srt/managers/detokenizer_manager.py) < run_detokenizer_process (sglang/srt/managers/detokenizer_manager.py)"),
    ("not-an-engine", "acquire (filelock/_api.py) < synchronize (backup/files.py) < shutdown (backup/main.py)"),
    ("not-an-engine", "render (jinja2/environment.py) < index (shop/views.py) < __call__ (flask/app.py)"),
    ("idle", "event_loop_overlap (scheduler.py) < run_scheduler_process (scheduler.py)"),
    ("scheduler-loop", "_process_engine_step (vllm/v1/engine/core.py) < run_busy_loop (vllm/v1/engine/core.py)"),
    ("dp-dummy", f"all_gather (torch/distributed/distributed_c10d.py) < forward_idle (sglang/srt/model_executor/model_runner.py) < {SGL}"),
    ("forward", f"<lambda> (cutlass/base_dsl/jit_executor.py) < gemm (sglang/srt/layers/gemm.py) < {SGL_MODEL}"),
    ("tokenizer", f"_call_hf_processor (vllm/multimodal/processing.py) < apply (vllm/multimodal/processing.py) < {SERVER}"),
    ("idle", "wait (multiprocessing/connection.py) < wait_for_completion_or_failure (vllm/v1/utils.py) < run_multi_api_server (vllm/entrypoints/cli/serve.py)"),
    ("idle", "poll (multiprocessing/popen_fork.py) < join (multiprocessing/process.py) < _launch_subprocesses (sglang/srt/entrypoints/engine.py)"),
    ("ray-wait", "wait (ray/_private/worker.py) < wait (ray/util/placement_group.py) < initialize_ray_cluster (vllm/v1/executor/ray_utils.py)"),
    ("gpu-wait", f"rocr::core::InterruptSignal::WaitRelaxed (libhsa-runtime64.so.1) < hipStreamSynchronize (libamdhip64.so) < {RUN}"),
    # ---------------------------------------------------------------------------------------------------- cannot tell
    ("not-an-engine", "wait (threading.py) < get (queue.py) < fetch (crawler/jobs.py) < main (crawler/__main__.py)"),
    ("not-an-engine", "handle (shop/views.py) < __call__ (django/core/handlers/wsgi.py)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "stack"), CASES, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(CASES)])
def test_stack_is_called_by_its_kind(kind: str, stack: str) -> None:
    found = match_look(look(stack, *HELPERS))
    assert found.kind == kind, f"{found.kind} by {found.signature}: {found.because}"


def test_every_kind_has_a_case() -> None:
    assert {kind for kind, _ in CASES} | {"garbled", "helper-threads-only"} == set(get_args(DiagnosisKind))


@pytest.mark.parametrize("stack", HELPERS)
def test_helper_threads_alone_decide_nothing(stack: str) -> None:
    only = ProcessDump(threads=(DumpThread(name=None, frames=frames(stack)),))
    assert match_look(only).kind == "helper-threads-only"
