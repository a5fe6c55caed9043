"""Options of bisect that contradict each other or hold what they cannot: one clear line, with the remedy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.asking.options import Asked, check, option, target_of, typed
from sparkdiag.errors import UsageError

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"axis": "dcp=1,2", "good": "a"}, "--axis searches values"),
    ({"axis": "dcp=1,2", "repo": "vllm", "first_parent": True}, "--repo and --first-parent"),
    ({"axis": "dcp=1,2", "releases": "0.1..0.2"}, "two searches"),
    ({"axis": "dcp=1,2", "dcp": 2}, "gives each trial its --dcp"),
    ({"axis": "prompt-tokens=1K..2K", "prompt_tokens": 64}, "gives each trial its --prompt-tokens"),
    ({"releases": "0.1..0.2", "good": "a", "bad": "b"}, "--good and --bad would name commits"),
    ({"releases": "0.1..0.2", "env": "lab"}, "--env lab is another"),
    ({"around": "a", "bad": "b"}, "--around makes a range of its own"),
    ({"span": 3, "good": "a", "bad": "b"}, "--span widens --around"),
    ({"span": 0}, "--span: found 0"),
    ({"good": "a", "bad": "a"}, "are both a"),
    ({"confidence": 0.5}, "--confidence: found 0.5"),
    ({"confidence": 1.0}, "--confidence: found 1"),
    ({"confidence": float("nan")}, "--confidence: found nan"),
    ({"confidence": 0.9, "repeat": 2}, "--repeat and --confidence"),
    ({"repeat": 0}, "--repeat: found 0"),
    ({"repeat": 101}, "--repeat: found 101"),
    ({"baseline_s": 0.0}, "--baseline-s: found 0"),
    ({"dry_run": True, "resume": True}, "--dry-run plans a new search"),
    ({"dry_run": True, "export_log": "f"}, "nothing to --export"),
    ({"resume": True, "import_log": "f"}, "--resume reads its own journal"),
    ({"folder": "x"}, "nothing is asked of it"),
    ({"folder": "x", "export_log": "f", "dcp": 2}, "--dcp would be ignored"),
    ({"export_log": "/no/such/folder/f"}, "no such folder"),
    ({"looks_for": "slow"}, "allowed: stall, frame:NAME, wrong-needle, crash"),
    ({"looks_for": "frame:"}, "no name of a function"),
    ({"looks_for": "frame:a..b"}, "no name of a function"),
    ({"looks_for": "frame:a/b.py"}, "no name of a function"),
    ({"looks_for": "stall:x"}, "is not known"),
    ({"extra_args": ("lab",)}, "takes no argument 'lab'"),
]
FINE: list[dict[str, Any]] = [
    {},
    {"repo": "vllm", "good": "a", "bad": "b", "first_parent": True, "suspect": ("c",)},
    {"repo": "vllm", "around": "a", "span": 5},
    {"axis": "dcp=1,2", "prompt_tokens": 64},
    {"axis": "prompt-tokens=1K..2K", "dcp": 2},
    {"releases": "0.1..0.2", "repo": "vllm"},
    {"confidence": 0.95},
    {"resume": True, "folder": "x", "export_log": "f"},
    {"folder": "x", "export_log": "f"},
    {"looks_for": "frame:_fp8_mqa_logits_torch"},
    {"looks_for": "frame:Worker.main.<locals>.loop"},
    {"extra_args": ("--seed", "1")},
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[str(options) for options, _ in WRONG])
def test_it_is_refused_in_one_line_with_the_remedy(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        check(Asked(**options))
    assert words in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize("options", FINE, ids=str)
def test_what_goes_together_is_taken(options: dict[str, Any]) -> None:
    check(Asked(**options))


def test_what_was_typed_is_told_from_the_defaults() -> None:
    assert typed(Asked()) == ()
    assert typed(Asked(dcp=2, reuse=False)) == ("dcp", "reuse")
    assert [option(name) for name in ("good_run", "reuse", "export_log", "extra_args")] == [
        "--good-run",
        "--no-reuse",
        "--export",
        "--",
    ]


def test_a_target_is_read_back_as_it_is_shown() -> None:
    for text in ("stall", "wrong-needle", "crash", "frame:f"):
        assert str(target_of(text)) == text


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    try:
        assert str(target_of(text)) == text
    except UsageError as refused:
        assert refused.remedy
