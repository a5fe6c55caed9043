"""The signature file that comes with sparkdiag, and how a wrong one is told of."""

import re
from importlib.resources import files
from typing import get_args

import pytest

from sparkdiag.diagnosing.signature_file import (
    FILE,
    OWN_SETS,
    SAYS,
    Signature,
    SignatureFileError,
    read_book,
    signature_book,
)
from sparkdiag.evidence.diagnosis import CANNOT_TELL, DiagnosisKind

SETS = "[set]\n" + "\n".join(f'{name} = ["{name}_x"]' for name in OWN_SETS) + "\n"
ENTRY = """
[[signature]]
id = "{id}"
kind = "gpu-wait"
says = "wait"
meaning = "The host waits for the device, as it always does."
evidence = "A frame is innermost."
next_step = "py-spy dump twice"
reference = "https://example.org/issues/1"
{where}
"""


def entry(where: str, *, id: str = "one") -> str:
    return ENTRY.format(id=id, where=where)


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(SignatureFileError) as caught:
        read_book(text)
    assert caught.value.message.startswith(FILE)
    return caught.value.details


SHIPPED = [rule.signature for rule in signature_book().rules]


def test_the_file_that_comes_with_it_has_no_problem() -> None:
    assert len(SHIPPED) > 40


@pytest.mark.parametrize("signature", SHIPPED, ids=lambda signature: signature.id)
def test_an_entry_says_what_to_type_and_where_to_read_more(signature: Signature) -> None:
    assert signature.meaning.endswith(".")
    assert signature.evidence.endswith(".")
    assert len(signature.next_step) > 20
    assert signature.kind not in CANNOT_TELL


def test_all_kinds_that_a_stack_can_show_have_an_entry() -> None:
    assert set(get_args(DiagnosisKind)) - CANNOT_TELL - {"forward"} == {signature.kind for signature in SHIPPED}


def test_no_pattern_of_the_file_names_a_line() -> None:
    text = files("sparkdiag.diagnosing").joinpath(FILE).read_text(encoding="utf-8")
    patterns = re.findall(r'"([^"\n]*)"', "\n".join(line for line in text.splitlines() if " = " not in line))
    assert len(patterns) > 500
    assert not [pattern for pattern in patterns if re.search(r":\d+\Z", pattern)]


def test_a_healthy_state_is_never_the_kind_of_a_stall() -> None:
    assert {signature.kind for signature in SHIPPED if signature.healthy} == {"idle"}


def test_every_problem_is_told_at_once() -> None:
    text = (
        SETS
        + entry('leaf = ["f:12"]', id="line")
        + entry('near = ["$nowhere"]', id="lost")
        + entry("", id="empty")
        + entry('leaf = ["!f"]', id="only-not")
        + entry('leaf = ["f"]', id="twice")
        + entry('leaf = ["f"]', id="twice")
    )
    told = "\n".join(problems_of(text))
    for name in ("line.leaf", "lost.near", "empty", "only-not.leaf", "twice"):
        assert name in told


def test_a_wrong_value_is_told_by_the_signature_it_is_in() -> None:
    text = SETS + entry('leaf = ["f"]', id="here").replace("gpu-wait", "gpu-weight").replace("https://", "see ")
    told = problems_of(text)
    assert [line for line in told if line.startswith("here.kind")]
    assert [line for line in told if line.startswith("here.reference")]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("nonsense", "TOML"),
        (SETS + 'a = ["$b"]\nb = ["$a"]\n' + entry('leaf = ["f"]'), "holds itself"),
        (SETS.replace('wrapper = ["wrapper_x"]', "") + entry('leaf = ["f"]'), "set.wrapper"),
        (SETS + entry('leaf = ["f"]\ncolour = "red"'), "colour"),
        (SETS + entry('leaf = ["f"]').replace('"gpu-wait"', '"idle"'), "outweigh"),
        (SETS + entry('leaf = ["f"]').replace('"gpu-wait"', '"garbled"'), "no signature fits"),
        (SETS + 'one = ["x"]\n' + entry('leaf = ["f"]'), "has this name"),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: str, word: str) -> None:
    assert word in "\n".join(problems_of(text))


def test_weights_are_in_the_order_that_the_head_tells() -> None:
    assert list(SAYS) == sorted(SAYS, key=lambda word: -SAYS[word])
