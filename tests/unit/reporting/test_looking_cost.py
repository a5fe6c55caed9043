from typing import Any

import pytest

from sparkdiag.evidence.run import ServerPriority
from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.document import document
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.phrases import looking_cost, not_by_pyspy
from sparkdiag.reporting.summary import summary
from tests.unit.reporting.sample_runs import CRAWLING

MEASURED = SamplingStats(
    taken=23,
    cpu_s=0.5,
    own_cpu_s=0.3,
    observed_s=40.0,
    cores=2,
    budget_share=0.01,
    planned_share=0.0099,
    period_s=4.0,
    longest_s=0.2,
)
REFUSED = SamplingStats(
    taken=20,
    mode="in-process",
    reason="py-spy may not read process 7: permission denied (SYS_PTRACE is missing)",
    remedy="`docker run --cap-add SYS_PTRACE`",
)


def with_sampling(stats: SamplingStats, **record: Any) -> StoredRun:
    stored = CRAWLING
    observation = stored.observation.model_copy(update={"sampling": stats})
    changed = stored.record.model_copy(update=record)
    return stored.model_copy(update={"observation": observation, "record": changed})


def test_the_cost_is_told_as_a_share_of_the_machine() -> None:
    text = looking_cost(MEASURED)
    assert "1.0 % of this machine's CPU time over 40.0 s on 2 cores: 0.50 s in py-spy and 0.30 s in sparkdiag" in text
    assert "budget for taking stacks is 1.0 %: a look at each process that runs the model every 4.0 s." in text
    assert text in render_markdown(with_sampling(MEASURED))


def test_overspending_is_told_with_its_cause() -> None:
    text = looking_cost(MEASURED.model_copy(update={"planned_share": 0.016}))
    assert "which costs 1.6 %, because sampling.max_period_s allows no longer gap" in text
    assert "max_period_s" not in looking_cost(MEASURED)


def test_a_run_from_before_it_was_counted_is_told_as_far_as_known() -> None:
    assert looking_cost(SamplingStats(taken=3, cpu_s=1.4)) == "1.4 s of CPU time in py-spy."


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e308, 1e308])
def test_numbers_that_somebody_wrote_into_the_folder_are_no_error(value: float) -> None:
    stats = MEASURED.model_copy(update={"observed_s": value, "cpu_s": value, "planned_share": value})
    assert looking_cost(stats)
    assert render_markdown(with_sampling(stats))


def test_a_refused_pyspy_stands_on_the_first_screen_with_what_to_type() -> None:
    stored = with_sampling(REFUSED)
    screen = "\n".join(render_markdown(stored).splitlines()[:40])
    for text in (screen, summary(stored)):
        assert "by the probe inside the server" in text
        assert "SYS" in text and "--cap-add" in text
    assert not_by_pyspy(MEASURED) is None


def test_what_was_done_to_the_servers_priority_is_told() -> None:
    priority = ServerPriority(nice=10, because="the server's own scheduling group (autogroup-7) is now at nice 10")
    stored = with_sampling(MEASURED, server_priority=priority)
    assert "(`autogroup-7`) is now at nice 10" in render_markdown(stored)
    found = document(stored)
    assert found["server_priority"]["nice"] == 10
    assert found["sampling"]["share"] == pytest.approx(0.01)
    assert document(CRAWLING)["server_priority"] is None
