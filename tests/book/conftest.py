"""The built book."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.book.browser import HTML
from tests.require import missing


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the built book."""
    if not (HTML / "search.html").exists():
        missing("browser", "the book is not built: run `make book`")
    return HTML
