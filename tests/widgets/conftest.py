"""One browser for the tests of this folder, and explorers as a reader without a kernel meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.book.browser import Visit, find_browser, open_browser, settle, watch
from tests.require import missing
from ttutor.widgets import Explorer


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_saved(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open an explorer's saved file from disk with no network; whatever the page complains of fails the test."""
    seen: list[Visit] = []
    contexts = []

    def open_(explorer: Explorer, *, width: int = 900, dark: bool = False, touch: bool = False) -> Page:
        path = explorer.save(tmp_path / f"explorer-{len(seen)}.html")
        context = browser.new_context(
            viewport={"width": width, "height": 740}, color_scheme="dark" if dark else "light", has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        seen.append(Visit(path.name))
        watch(context, page, seen[-1])
        page.goto(path.as_uri(), wait_until="load")
        settle(page, seen[-1], 20)
        return page

    yield open_
    for context in contexts:
        context.close()
    complaints = [str(visit) for visit in seen if visit.findings]
    assert not complaints, "\n".join(complaints)
