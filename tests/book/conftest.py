"""One browser for the tests of this folder, and the built book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.book.browser import HTML, find_browser, open_browser
from tests.require import missing


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser for all."""
    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the built book."""
    if not (HTML / "search.html").exists():
        missing("browser", "the book is not built: run `make book`")
    return HTML
