"""The predicted route beside what was seen, in the terminal, on the page and for programs; old runs have none."""

import json
import re

import pytest

from sparkdiag.evidence.agreement import RouteAgreement, SeenKernel
from sparkdiag.evidence.route import Guard, Route, RouteConfig
from sparkdiag.evidence.run import PredictedRoute
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.document import document_json
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.predicted_route import route_sentence
from sparkdiag.reporting.summary import summary
from tests.unit.reporting import sample_runs

DCP = Guard(
    function="sparse_attn_indexer",
    path="lab/indexer.py",
    line=545,
    source="dcp_world_size <= 1",
    value="false",
    because="--dcp 2",
)
TORCH = "_fp8_mqa_logits_torch"
AGREES = RouteAgreement(
    answer="agree",
    predicted=(TORCH,),
    guards=(DCP,),
    seen=(SeenKernel(function=TORCH, samples=41),),
    inside=42,
    samples=43,
)


def with_route(agreement: RouteAgreement | None) -> StoredRun:
    stored = sample_runs.CRAWLING
    route = Route(
        revision=sample_runs.SHA,
        scenario="lab",
        config=RouteConfig(dcp=2),
        entry="sparse_attn_indexer",
        entry_path="lab/indexer.py",
        entry_line=1,
        exact=True,
    )
    predicted = PredictedRoute(route=route, read_from="the lab's history at 3f2a9c41d0")
    record = stored.record.model_copy(update={"predicted": predicted if agreement is not None else None})
    return stored.model_copy(update={"record": record, "agreement": agreement})


def test_the_source_and_the_stacks_are_told_side_by_side() -> None:
    assert route_sentence(with_route(AGREES)) == (
        f"source says: {TORCH} (dcp_world_size <= 1 is False: --dcp 2); seen on the stacks: {TORCH} in 41 of 43 worker "
        "samples: they agree"
    )


def test_a_disagreement_names_what_was_seen_and_the_guard_that_would_have_to_be_otherwise() -> None:
    other = SeenKernel(function="fp8_mqa_topk_triton", samples=2)
    sentence = route_sentence(
        with_route(AGREES.model_copy(update={"answer": "disagree", "seen": (other,), "doubted": (DCP,)}))
    )
    assert sentence is not None
    assert "seen on the stacks: fp8_mqa_topk_triton in 2 of 43 worker samples: THEY DISAGREE" in sentence
    assert (
        "this guard would have to be otherwise: dcp_world_size <= 1 is False: --dcp 2 (lab/indexer.py:545)" in sentence
    )
    assert "the reviewer's puzzle" in sentence


def test_what_was_not_compared_says_why() -> None:
    short = AGREES.model_copy(update={"answer": "not compared", "seen": (), "because": "no usable sample"})
    assert str(route_sentence(with_route(short))).endswith("--dcp 2); not compared: no usable sample")
    none = RouteAgreement(answer="not compared", because="no entry function")
    assert route_sentence(with_route(none)) == "source says: nothing: no entry function"


def test_it_is_in_the_terminal_on_the_page_and_in_the_document() -> None:
    stored = with_route(AGREES)
    assert f"route:    source says: {TORCH}" in summary(stored)
    assert f"**Route.** source says: `{TORCH}` (`dcp_world_size`" in render_markdown(stored)
    document = json.loads(document_json(stored))["route"]
    assert (document["answer"], document["predicted"], document["samples"]) == ("agree", [TORCH], 43)
    assert document["seen"] == [{"function": TORCH, "samples": 41}]
    assert document["guards"][0]["line"] == 545


def test_a_run_from_before_routes_were_read_says_nothing_of_them() -> None:
    stored = with_route(None)
    assert "route:" not in summary(stored)
    assert "**Route.**" not in render_markdown(stored)
    assert json.loads(document_json(stored))["route"] is None


@pytest.mark.parametrize("evil", ["x\x1b[31m", "</details><script>", "```\n# owned", "@somebody #1"])
def test_text_of_a_repository_steers_neither_terminal_nor_page(evil: str) -> None:
    guard = DCP.model_copy(update={"source": evil, "because": evil})
    found = AGREES.model_copy(
        update={"answer": "disagree", "predicted": (evil,), "guards": (guard,), "doubted": (guard,)}
    )
    terminal, page = summary(with_route(found)), render_markdown(with_route(found))
    assert "\x1b" not in terminal + page
    line = next(line for line in page.splitlines() if line.startswith("**Route.**"))
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
    assert not set(outside) & set("<>@#`")
