"""What the tests of this folder do to a figure again and again."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from tests.book.browser import OVERFLOW
from ttutor.widgets import Explorer

in_browser = pytest.mark.browser
HOSTILE = ['<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "&lt;b&gt;'\"&"]


def state_of(explorer: Explorer) -> dict[str, Any]:
    """The state that a page without a kernel starts from, read back from the markup."""
    return json.loads(html.unescape(re.search(r'data-state="([^"]*)"', explorer.to_html())[1]))


class Table(HTMLParser):
    """Reads the cells of a table back, and every tag that stands in the page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: dict[str, list[str]] = {"th": [], "td": [], "caption": []}
        self._in = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        if tag in self.cells:
            self.cells[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._in in self.cells:
            self.cells[self._in][-1] += data


def cell(page: Page, row: int, column: int, within: str = "") -> Locator:
    """A cell of a grid; -1 stands for the line or the column of labels."""
    return page.locator(f'{within} [data-row="{row}"][data-column="{column}"]')


def numbers(page: Page, selector: str = "td") -> np.ndarray:
    """The numbers behind the elements of a kind, with all their digits."""
    return np.array(page.locator(f"{selector}[data-value]").evaluate_all("all => all.map((e) => +e.dataset.value)"))


def whole_text(page: Page) -> str:
    return page.locator("section.tt").inner_text()


def spoken(page: Page) -> Locator:
    """What screen readers are told."""
    return page.locator('.tt-hidden[role="status"]')


def press(page: Page, name: str, times: int = 1) -> None:
    for _ in range(times):
        page.get_by_role("button", name=name).click(force=True)  # also one that is at its end


def slide(page: Page, label: str, *keys: str) -> None:
    for key in keys:
        page.get_by_label(label, exact=True).press(key)


def assert_fits(page: Page, *widths: int) -> None:
    """Nothing is wider than the page, at any of these widths."""
    for width in widths or (360, 900):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate(OVERFLOW) == [], f"at {width} pixels"
