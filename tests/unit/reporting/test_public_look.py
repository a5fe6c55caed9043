"""The last look at a page: it finds what putting the page together laid bare, and changes nothing."""

import pytest

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.identities import Identities
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.public import public
from sparkdiag.reporting.public_look import looked_at
from tests.unit.reporting.sample_runs import EVERY

NOBODY = Identities()
LAID_BARE = (
    "- *witness*: `password=`; `hunter2pw1`",
    "see password=hunter2pw1 there",
    "ssh to gpu07.corp.internal",
    "it is at 10.20.30.40:8000",
    "/home/zorkman/x",
)


@pytest.mark.parametrize("line", LAID_BARE)
def test_what_would_go_is_told_by_its_line(line: str) -> None:
    found = looked_at(f"# title\n\n{line}\n\nend", identities=NOBODY)
    assert [one.where for one in found.unclassified] == ["line 3"]
    assert found.counts == {}
    assert line not in found.unclassified[0].looks
    mark = found.unclassified[0].fingerprint
    assert looked_at(f"# title\n\n{line}\n\nend", identities=NOBODY, accepted=frozenset({mark})).unclassified == ()


def test_lines_that_go_as_a_whole_are_told_too() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
    found = looked_at(f"a\n{key}\nb", identities=NOBODY)
    assert {one.where for one in found.unclassified} >= {"line 2"}


@pytest.mark.parametrize("stored", EVERY.values(), ids=EVERY)
def test_a_page_of_public_values_passes(stored: StoredRun) -> None:
    shown, _ = public(stored, identities=NOBODY)
    assert looked_at(render_markdown(shown), identities=NOBODY).unclassified == ()
