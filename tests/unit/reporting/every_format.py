"""Every format that a run is rendered in: a page that raises for a folder, however damaged, is a defect."""

import json
from collections.abc import Callable

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.document import document_json
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reporting.pictures.page import run_page, timeline_svg
from sparkdiag.reporting.viewers.speedscope import speedscope_json
from sparkdiag.reporting.viewers.trace import trace_json

FORMATS: dict[str, Callable[[StoredRun], str]] = {
    "md": render_markdown,
    "json": document_json,
    "html": run_page,
    "svg": timeline_svg,
    "speedscope": speedscope_json,
    "trace": trace_json,
}


def every_page(stored: StoredRun) -> dict[str, str]:
    """Each rendered, and the least that holds of all: it is text, and what is JSON is whole and has only numbers."""
    pages = {name: make(stored) for name, make in FORMATS.items()}
    for name, page in pages.items():
        assert page.strip(), name
        page.encode("utf-8")
        if name in ("json", "speedscope", "trace"):
            json.loads(page, parse_constant=_no_number)
    assert len(pages["md"].encode("utf-8")) <= 65_536
    return pages


def _no_number(text: str) -> float:
    raise AssertionError(f"{text} is no number of JSON")
