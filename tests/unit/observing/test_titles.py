import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.processes import Ranks
from sparkdiag.harmless.secrets import REDACTED
from sparkdiag.observing.titles import TITLE_CHARACTERS, classify, is_sampled, is_sparkdiag, shown_title


@pytest.mark.parametrize(
    ("title", "role", "ranks"),
    [
        ("VLLM::EngineCore", "engine_core", Ranks()),
        ("VLLM::EngineCore_DP0", "engine_core", Ranks(dp=0)),
        ("VLLM::Worker", "worker", Ranks()),
        ("VLLM::Worker_TP0_DCP0", "worker", Ranks(tp=0, dcp=0)),
        ("VLLM::Worker_DP0_PP1_TP3_EP3", "worker", Ranks(dp=0, pp=1, tp=3, ep=3)),
        ("VLLM::Worker_DP1_PP0_PCP2_TP15_DCP7_EP3", "worker", Ranks(dp=1, pp=0, pcp=2, tp=15, dcp=7, ep=3)),
        ("VLLM::APIServer_2", "api_server", Ranks()),
        ("VLLM::DPCoordinator", "dp_coordinator", Ranks()),
        ("team-a prod::Worker_TP1_DCP1", "worker", Ranks(tp=1, dcp=1)),
        ("::EngineCore", "engine_core", Ranks()),
        ("VLLM::Worker_TP0_DCP0 tail", "other", Ranks()),
        ("cat /tmp/VLLM::EngineCore", "other", Ranks()),
        ("VLLM::EngineCoreX", "other", Ranks()),
    ],
)
def test_a_title_names_role_and_ranks(title: str, role: str, ranks: Ranks) -> None:
    assert classify([title]) == (role, ranks)
    assert classify([*title.split(" "), "", ""]) == (role, ranks)


@pytest.mark.parametrize(
    ("cmdline", "role"),
    [
        ("python3 -m vllm.entrypoints.openai.api_server --model x", "api_server"),
        ("/venv/bin/python3.11 -u -X dev -m vllm.entrypoints.openai.api_server", "api_server"),
        ("/venv/bin/python -Im vllm.entrypoints.cli.main serve m", "api_server"),
        ("/venv/bin/vllm serve model --api-key k", "api_server"),
        ("/venv/bin/python /venv/bin/vllm serve model", "api_server"),
        ("python /src/vllm/entrypoints/openai/api_server.py", "api_server"),
        ("/venv/bin/vllm bench latency", "other"),
        ("python -m vllm.entrypoints.cli.main bench serve", "other"),
        ("sh -c vllm serve model", "other"),
        ("python -m sparkdiag.serving.guardian -- python -m vllm.entrypoints.openai.api_server", "other"),
        ("grep vllm serve", "other"),
        ("python", "other"),
        ("", "other"),
    ],
)
def test_a_command_line_names_the_api_server(cmdline: str, role: str) -> None:
    assert classify(cmdline.split(" "))[0] == role


def test_multiprocessing_helpers() -> None:
    tracker = ["python3", "-c", "from multiprocessing.resource_tracker import main;main(48)"]
    spawned = ["python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"]
    assert classify(tracker)[0] == "resource_tracker"
    assert classify(spawned)[0] == "other"
    assert not is_sampled("resource_tracker")
    assert is_sampled("dp_coordinator")


def test_sparkdiags_own_processes_are_known() -> None:
    assert is_sparkdiag(["/venv/bin/python", "-m", "sparkdiag.serving.guardian", "--", "vllm", "serve"])
    assert is_sparkdiag(["/venv/bin/py-spy", "dump"])
    assert is_sparkdiag(["python", "/venv/bin/sparkdiag", "repro"])
    assert not is_sparkdiag(["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "sparkdiag"])
    assert not is_sparkdiag([])


@pytest.mark.parametrize(
    "cmdline",
    [
        ["vllm", "serve", "--api-key", "s3cr3tvalue", "otherS3cr3tvalue", "--port", "1"],
        ["vllm", "serve", "--api-key", "-s3cr3tvalue", "--port", "1"],
        ["vllm", "serve", "--api-key=s3cr3tvalue", "--port", "1"],
        ["vllm", "serve", "--hf-token", "s3cr3tvalue", "--port", "1"],
        ["env", "HF_TOKEN=s3cr3tvalue", "vllm", "--port", "1"],
        ["env", "AWS_SECRET_ACCESS_KEY='s3cr3tvalue'", "vllm", "--port", "1"],
        ["curl", "-H", "Authorization: Bearer s3cr3tvalue", "--port", "1"],
        ["curl", "-H", "authorization:", "s3cr3tvalue", "--port", "1"],
        ["vllm", "--config", '{"api_key": "s3cr3tvalue", "a": 1}', "--port", "1"],
        ["vllm", "https://me:s3cr3tvalue@host/x", "--port", "1"],
        ["vllm", "hf_s3cr3tvalue", "--port", "1"],
        ["curl -H Bearer s3cr3tvalue --port 1"],
        ["vllm serve --api-key s3cr3tvalue --port 1"],
    ],
)
def test_secrets_are_not_shown(cmdline: list[str]) -> None:
    shown = shown_title(cmdline)
    assert "3cr3tvalue" not in shown
    assert REDACTED in shown
    assert shown.endswith("--port 1")


def test_harmless_options_that_look_like_secrets_stay() -> None:
    title = "vllm serve m --tokenizer path --max-num-batched-tokens 512 -tp 2 -dcp 2"
    assert shown_title(title.split()) == title


@given(st.lists(st.text(max_size=400), max_size=30))
def test_any_command_line_gives_a_short_printable_line(cmdline: list[str]) -> None:
    classify(cmdline)
    is_sparkdiag(cmdline)
    shown = shown_title(cmdline)
    assert len(shown) <= TITLE_CHARACTERS
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2028\u200b")


@given(
    st.sampled_from(["--api-key", "--hf-token", "--my-password", "--db.secret"]),
    st.text(alphabet="abcdefghijklmnop0123456789-_.", min_size=12, max_size=40),
    st.booleans(),
)
def test_no_value_of_a_secret_option_is_shown(option: str, value: str, joined: bool) -> None:
    cmdline = ["vllm", "serve", *([f"{option}={value}"] if joined else [option, value]), "--port", "1"]
    assert value not in shown_title(cmdline)


@pytest.mark.parametrize(
    ("cmdline", "role", "label"),
    [
        (["sglang::scheduler_PP2_TP1"], "worker", "PP2_TP1"),
        (["sglang::scheduler_DP10_TP10_EP10"], "worker", "DP10_TP10_EP10"),
        (["sglang::scheduler"], "worker", ""),
        (["sglang::data_parallel_controller"], "dp_coordinator", ""),
        (["sglang::detokenizer"], "other", ""),
        (["python3", "-m", "sglang.launch_server", "--model", "x"], "api_server", ""),
        (["sglang", "serve", "x"], "api_server", ""),
        (["python", "-m", "sglang.bench_serving"], "other", ""),
    ],
)
def test_sglang_names_its_processes_too(cmdline: list[str], role: str, label: str) -> None:
    found, ranks = classify(cmdline)
    assert (found, ranks.label) == (role, label)
