"""A page in a real headless Chromium: what it says on its console, what it asks of a network, what is drawn."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NEEDED = "SPARKDIAG_NEEDS_CHROMIUM"
"""Set to 1 where a Chromium has to be there: then a missing one is a failure."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def chromium() -> str:
    """Its path; skips the test where none is installed, or fails it where one is needed."""
    found = next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)
    if found is not None:
        return found
    said = f"no Chromium is installed (looked for {', '.join(_NAMES)} on PATH)"
    if os.environ.get(NEEDED) == "1":
        pytest.fail(f"{said}, and {NEEDED}=1")
    pytest.skip(said)


@contextmanager
def a_browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """An open page and everything that it did unasked."""

    page: Page
    said: list[str] = field(default_factory=list)
    """Console messages of every kind, uncaught errors, dialogs."""
    asked: list[str] = field(default_factory=list)
    """Requests beside the one for the file itself."""


@contextmanager
def opened(
    browser: Browser,
    html: str,
    folder: Path,
    *,
    width: int = 1280,
    scheme: Literal["light", "dark"] = "light",
    scripts: bool = True,
) -> Iterator[Opened]:
    """``html`` as a file of ``folder``, opened as somebody would who was sent it."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    page = context.new_page()
    shown = Opened(page)
    page.on("console", lambda message: shown.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: shown.said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (shown.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: shown.asked.append(request.url) if request.url != file.as_uri() else None)
    try:
        page.goto(file.as_uri())
        yield shown
    finally:
        context.close()
