"""One browser for the tests of this folder, and explorers as a reader without a kernel meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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


@dataclass
class Tabs:
    """Pages used again from test to test, as a reader's tab goes from one address to the next.

    A page in a context of its own costs four times what the explorer on it does.
    """

    browser: Browser
    tabs: dict[tuple[bool, int], tuple[Page, Visit]] = field(default_factory=dict)

    def tab(self, *, touch: bool, index: int) -> tuple[Page, Visit]:
        """Return the page of that place, made at the first call, and the list of what it complains of."""
        if (touch, index) not in self.tabs:
            context = self.browser.new_context(has_touch=touch)
            page, visit = context.new_page(), Visit("")
            watch(context, page, visit)
            self.tabs[touch, index] = page, visit
        return self.tabs[touch, index]


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def open_saved(tabs: Tabs, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open an explorer's saved file from disk with no network; whatever the page complains of fails the test."""
    used: list[tuple[Page, Visit]] = []

    def open_(explorer: Explorer, *, width: int = 900, dark: bool = False, touch: bool = False) -> Page:
        path = explorer.save(tmp_path / f"explorer-{len(used)}.html")
        page, visit = tabs.tab(touch=touch, index=len(used))
        used.append((page, visit))
        visit.url = path.name
        page.set_viewport_size({"width": width, "height": 740})
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="no-preference", media="screen")
        page.goto(path.as_uri(), wait_until="load")
        settle(page, visit, 20)
        return page

    yield open_
    for page, _ in used:
        page.mouse.move(0, 0)
        page.goto("about:blank")
    complaints = [str(visit) for _, visit in used if visit.findings]
    for _, visit in used:
        visit.findings.clear()
    assert not complaints, "\n".join(complaints)
