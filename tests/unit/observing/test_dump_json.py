import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.dump_json import (
    KEPT_TEXT_CHARACTERS,
    MOST_DIGITS,
    MOST_FRAMES,
    MOST_LOCALS,
    MOST_THREADS,
    RECORDED,
    DumpFormatError,
    kept_value,
    parse_dump,
)
from sparkdiag.probe.locate import package_folder

KEPT = frozenset({"k_cache_prefix"})


def local(name: str, shown: str) -> dict[str, Any]:
    return {"name": name, "addr": 1, "arg": False, "repr": shown}


def dump(*locals_: dict[str, Any], **frame: Any) -> str:
    frames = [
        {
            "name": "_fp8_mqa_logits_torch",
            "filename": "/x/vllm/ops.py",
            "module": None,
            "short_filename": "vllm/ops.py",
            "line": 39,
            "locals": list(locals_),
            **frame,
        }
    ]
    thread = {
        "pid": 7,
        "thread_id": 140,
        "thread_name": "MainThread",
        "os_thread_id": 7,
        "active": True,
        "owns_gil": True,
        "frames": frames,
    }
    return json.dumps([thread])


def parse(text: str | bytes) -> StackSample:
    return parse_dump(text, pid=7, started_s=1.0, ended_s=1.5, kept_names=KEPT)


def test_the_incidents_frame_keeps_its_loop_variables_and_nothing_else() -> None:
    sample = parse(
        dump(
            local("q_values", "<Tensor at 0x7fb3e1e5f110>"),
            local("head_start", "5"),
            local("k_start", "15363"),
            local("clean_logits", "False"),
            local("q_scale", "None"),
            local("ratio", "1.5"),
            local("prompt", '"my bank account is"'),
            local("k_cache_prefix", '"model.layers.5.self_attn.indexer.k_cache"'),
            local("prompt_token_ids", "[1, 2, 3]"),
        )
    )
    assert sample.usable
    assert sample.at_s == 1.25
    assert sample.main_thread is not None
    frame = sample.main_thread.frames[0]
    assert frame.locals == {
        "head_start": 5,
        "k_start": 15363,
        "clean_logits": False,
        "k_cache_prefix": "model.layers.5.self_attn.indexer.k_cache",
    }
    assert type(frame.locals["clean_logits"]) is bool
    assert (frame.function, frame.line, frame.short_filename) == ("_fp8_mqa_logits_torch", 39, "vllm/ops.py")
    assert sample.main_thread.owns_gil
    assert "bank" not in sample.model_dump_json()


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("3276", 3276),
        ("-1", -1),
        ("True", True),
        ("+bigint", None),
        ("1e5", None),
        ("12 ", None),
        ("١٢", None),
        ("9" * MOST_DIGITS, 10**MOST_DIGITS - 1),
        ("1" + "0" * MOST_DIGITS, None),
        ("-" + "9" * 40, None),
        ("", None),
        ('"text"', None),
    ],
)
def test_only_strict_integers_and_booleans_are_kept(shown: str, value: object) -> None:
    assert kept_value(shown, by_name=False) == value


def test_text_kept_by_name_is_unquoted_cleaned_and_cut() -> None:
    assert kept_value('"layer\x1b[31m\u202e"', by_name=True) == "layer\\x1b[31m\\u202e"
    assert kept_value("'a'", by_name=True) == "a"
    assert kept_value("<Tensor>", by_name=True) is None
    assert kept_value('"', by_name=True) is None
    text = kept_value(f'"{"x" * 1000}"', by_name=True)
    assert isinstance(text, str)
    assert len(text) == KEPT_TEXT_CHARACTERS


def test_missing_and_foreign_keys_are_no_error() -> None:
    sample = parse(
        '[{"frames": [{}, 3, {"name": "f", "locals": {"a": 1}}, {"locals": [3, {}, {"name": 1}]}], "x": 1}, 4]'
    )
    assert [frame.function for frame in sample.threads[0].frames] == ["?", "f", "?"]
    assert sample.threads[0].thread_name is None


def test_names_cannot_reach_the_terminal() -> None:
    frame = parse(dump(name="f\x1b]0;owned\x07", filename="\r\n```x")).threads[0].frames[0]
    assert frame.function == "f\\x1b]0;owned\\x07"
    assert frame.filename == " ```x"


def test_sizes_are_bounded_and_the_innermost_frames_win() -> None:
    thread = {"frames": [{"name": f"f{index}", "locals": []} for index in range(3 * MOST_FRAMES)]}
    sample = parse(json.dumps([thread] * (MOST_THREADS + 5)))
    assert len(sample.threads) == MOST_THREADS
    assert len(sample.threads[0].frames) == MOST_FRAMES
    assert sample.threads[0].frames[0].name == "f0"
    many = [local(f"v{index}", "1") for index in range(500)]
    frame = parse(dump(*many, local("k_cache_prefix", '"l"'))).threads[0].frames[0]
    assert len(frame.locals) == MOST_LOCALS + 1
    assert frame.locals["k_cache_prefix"] == "l"


@pytest.mark.parametrize("text", ["", "{}", "null", "[]", "[1]", "[{", "[" * 200_000, b"\xff\xfe", "NaN"])
def test_what_is_no_dump_is_refused(text: str | bytes) -> None:
    with pytest.raises(DumpFormatError):
        parse(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["frames", "locals", "name", "repr", "filename", "line", "thread_id", "thread_name"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=40,
)


@given(st.lists(json_values, max_size=4))
def test_any_json_gives_a_sample_or_the_one_error(document: list[object]) -> None:
    try:
        sample = parse(json.dumps(document))
    except DumpFormatError:
        return
    assert StackSample.model_validate_json(sample.model_dump_json()) == sample


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_survives_under_a_name_that_is_not_kept(name: str, shown: str) -> None:
    frame = parse(dump(local("v_" + name, json.dumps(shown)))).threads[0].frames[0]
    assert not any(isinstance(value, str) for value in frame.locals.values())


def test_the_probe_s_own_frames_are_left_out_and_the_function_s_stay() -> None:
    raw = json.loads(dump())
    own = raw[0]["frames"][0]
    raw[0]["frames"] = [own, {**own, "name": RECORDED}, {**own, "name": "sparse_attn_indexer"}]
    (thread,) = parse(json.dumps(raw)).threads
    assert [frame.function for frame in thread.frames] == ["_fp8_mqa_logits_torch", "sparse_attn_indexer"]


def test_the_probe_s_frames_have_that_name() -> None:
    trampoline = package_folder() / "sparkdiag_probe" / "trampoline.py"
    assert f'NAME = "{RECORDED}"' in trampoline.read_text(encoding="utf-8")
