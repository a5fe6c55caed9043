"""The probe's own modules, run in this process."""

import importlib
import json
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from sparkdiag.evidence.identity import ProcessIdentity
from sparkdiag.evidence.stacks import ThreadStack
from sparkdiag.probe.locate import CONTROL_FILE, package_folder, probe_environment, stacks_file
from sparkdiag.scenario.model import LayerClock, PromptSettings, Scenario, ServerSettings, Signature, WatchedFunction


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(package_folder()))
    package = importlib.import_module("sparkdiag_probe")
    for name in ("agent", "identity", "stacks"):
        importlib.import_module(f"sparkdiag_probe.{name}")
    return package


def _suspect_loop(entered: threading.Event, leave: threading.Event) -> None:
    head_start, clean_logits, k_cache_prefix = 3, False, "model.layers.1"
    prompt, scores = "a secret prompt", [1.0, 2.0]
    entered.set()
    leave.wait(10)
    assert (head_start, clean_logits, k_cache_prefix, prompt, scores) == (
        3,
        False,
        "model.layers.1",
        "a secret prompt",
        [1.0, 2.0],
    )


def sample_in_loop(probe: Any, folder: Path, **settings: Any) -> dict[str, Any]:
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=_suspect_loop, args=(entered, leave), name="worker-thread")
    thread.start()
    try:
        assert entered.wait(10)
        assert probe.stacks.Sampler(str(folder), **settings).sample()
    finally:
        leave.set()
        thread.join()
    (path,) = folder.glob("stacks-*.jsonl")
    assert path == stacks_file(folder, json.loads(path.read_text())["pid"])
    line: dict[str, Any] = json.loads(path.read_text())
    return line


def test_a_sample_has_the_shape_of_a_stack_and_only_locals_that_may_be_kept(probe: Any, tmp_path: Path) -> None:
    line = sample_in_loop(
        probe, tmp_path, kept_locals=frozenset({"k_cache_prefix"}), functions=frozenset({"_suspect_loop"})
    )
    threads = [ThreadStack.model_validate(thread) for thread in line["threads"]]
    (thread,) = [thread for thread in threads if thread.thread_name == "worker-thread"]
    found = thread.find("_suspect_loop")
    assert found is not None
    assert found[1].locals == {"head_start": 3, "clean_logits": False, "k_cache_prefix": "model.layers.1"}
    assert found[1].filename == __file__
    assert thread.frames[-1].name == "_bootstrap"
    assert line["started_monotonic_s"] <= line["ended_monotonic_s"]
    assert "secret" not in json.dumps(line)


def test_functions_nobody_named_keep_no_locals(probe: Any, tmp_path: Path) -> None:
    line = sample_in_loop(probe, tmp_path, kept_locals=frozenset(), functions=frozenset())
    assert all(frame["locals"] == {} for thread in line["threads"] for frame in thread["frames"])


def test_the_function_goes_on_with_its_locals_untouched(probe: Any, tmp_path: Path) -> None:
    """``_suspect_loop`` itself asserts over its locals after the sample; and the sampler holds on to nothing."""
    sampler = probe.stacks.Sampler(str(tmp_path), kept_locals=frozenset(), functions=frozenset({"held"}))
    entered, leave = threading.Event(), threading.Event()
    results: list[object] = []

    class Tensor:
        pass

    alive: list[Any] = []

    def held() -> None:
        import weakref

        tensor, step = Tensor(), 7
        alive.append(weakref.ref(tensor))
        entered.set()
        leave.wait(10)
        results.append((tensor is not None, step))
        del tensor
        results.append(alive[0]() is None)

    thread = threading.Thread(target=held)
    thread.start()
    assert entered.wait(10)
    sampler.sample()
    leave.set()
    thread.join()
    assert results == [(True, 7), True]


def test_the_file_is_bounded(probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.stacks, "LARGEST_FILE_BYTES", 1)
    sampler = probe.stacks.Sampler(str(tmp_path), kept_locals=frozenset(), functions=frozenset())
    assert not sampler.sample()
    assert not sampler.sample()
    (path,) = tmp_path.glob("stacks-*.jsonl")
    assert [json.loads(line).get("full", False) for line in path.read_text().splitlines()] == [False, True]


def test_identity_waits_for_vllm_then_tells_and_tells_more(
    probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "deep_gemm.py"
    source.write_text("x = 1\n")
    teller = probe.identity.Teller(str(tmp_path), ["vllm.utils.deep_gemm", "vllm.never"])
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    teller.tell()
    assert not list(tmp_path.glob("identity-*"))

    vllm = types.ModuleType("vllm")
    vllm.__dict__.update(__version__="0.32.0", __file__="/site/vllm/__init__.py", __getattr__=pytest.fail)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    teller.tell()
    (path,) = tmp_path.glob("identity-*.json")
    first = ProcessIdentity.model_validate_json(path.read_text())
    assert (first.vllm_version, first.vllm_path, first.files) == ("0.32.0", "/site/vllm/__init__.py", ())
    assert first.dcp_world_size is None

    module = types.ModuleType("vllm.utils.deep_gemm")
    module.__file__ = str(source)
    state = types.ModuleType("vllm.distributed.parallel_state")
    state.__dict__["_DCP"] = types.SimpleNamespace(world_size=2, rank_in_group=1)
    state.__dict__["_TP"] = types.SimpleNamespace(world_size=4, rank_in_group=3)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, state.__name__, state)
    teller.tell()
    second = ProcessIdentity.model_validate_json(path.read_text())
    assert (second.dcp_world_size, second.dcp_rank, second.tp_world_size, second.tp_rank) == (2, 1, 4, 3)
    assert [(proof.module, proof.path, len(proof.sha256)) for proof in second.files] == [
        ("vllm.utils.deep_gemm", str(source), 64)
    ]


@pytest.mark.parametrize("value", ["", "{", "5", '{"a": 1}', "[1, 2]"])
def test_nonsense_in_the_environment_is_an_empty_list(probe: Any, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKDIAG_PROBE_WATCH", value)
    assert probe.agent.names("SPARKDIAG_PROBE_WATCH") == []


def test_without_its_folder_the_probe_starts_nothing(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKDIAG_PROBE_DIR", raising=False)
    before = threading.active_count()
    probe.load()
    assert threading.active_count() == before


def test_the_environment_names_what_the_scenario_watches(tmp_path: Path) -> None:
    scenario = Scenario(
        name="x",
        title="t",
        server=ServerSettings(),
        prompt=PromptSettings(tokens=100),
        signatures=(Signature(function="slow", kind="torch-fallback"),),
        layer_clock=LayerClock(function="indexer", variable="prefix"),
        watch=(WatchedFunction(function="dispatch", modules=("b", "a")), WatchedFunction(function="f", modules=("a",))),
    )
    env = probe_environment(scenario, folder=tmp_path, ptracer_pid=7)
    assert json.loads(env["SPARKDIAG_PROBE_WATCH"]) == ["b", "a"]
    assert json.loads(env["SPARKDIAG_PROBE_FUNCTIONS"]) == ["dispatch", "f", "indexer", "slow"]
    assert json.loads(env["SPARKDIAG_PROBE_LOCALS"]) == ["prefix"]
    assert env["SPARKDIAG_PROBE_PTRACER"] == "7"
    assert "SPARKDIAG_PROBE_PTRACER" not in probe_environment(scenario, folder=tmp_path)


def test_what_both_sides_must_agree_on(probe: Any) -> None:
    assert probe.agent.CONTROL_FILE == CONTROL_FILE
    (metadata,) = package_folder().glob("*.dist-info/entry_points.txt")
    assert metadata.read_text() == "[vllm.general_plugins]\nsparkdiag_probe = sparkdiag_probe:load\n"
