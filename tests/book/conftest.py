"""One browser for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.book.browser import find_browser, open_browser
from tests.require import missing


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    with open_browser() as opened:
        yield opened
