"""The browser harness sees what it is there to see: one faulty page for each kind of finding, and a good one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.book.browser import find_browser, open_browser, picture, serve, visit
from tests.require import missing

pytestmark = pytest.mark.browser

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs="
FAULTS = {
    "console error": "<script>console.error('no')</script>",
    "console warning": "<script>console.warn('no')</script>",
    "script error": "<script>throw new Error('no')</script>",
    "failed request": "<script src='missing.js'></script>",
    "request to another host": "<img alt='a logo' src='https://example.org/logo.gif'>",
    "math not rendered": "<p><span class='math notranslate'>\\(x\\)</span></p>",
    "raw formula in the text": "<p>the width \\(d\\) counts</p>",
    "explorer not mounted": "<div data-explorer='attention'></div>",
    "traceback": "<div class='cell'><div class='cell_output'>Traceback (most recent call last)</div></div>",
    "picture without a description": f"<img src='{PIXEL}' alt='_images/5f2c5f2c5f2c5f2c.png'>",
    "picture not loaded": "<img src='data:image/gif;base64,AAAA' alt='a dot'>",
    "wider than a phone": "<div style='width: 700px'>wide</div>",
}
GOOD = f"""
<p>costs 5 $ or $6, and <code>\\(x\\)</code></p><div class="math"><mjx-container>x</mjx-container></div>
<div data-explorer="attention" data-ready="1"></div><img src="{PIXEL}" alt="a dot">
<div class="cell tag_raises-exception"><div class="cell_output">Traceback (most recent call last)</div></div>
<div style="overflow-x: auto"><div style="width: 700px">wide</div></div><script>console.log('fine')</script>
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        missing("browser", "no Chromium on this machine: install one or set TTUTOR_CHROMIUM")
    with open_browser() as opened:
        yield opened


def write_page(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'><link rel='icon' href='data:,'>"
    path.write_text(f"<!DOCTYPE html><html><head>{head}</head><body><article>{body}</article></body></html>")
    return path


@pytest.mark.parametrize(("kind", "body"), FAULTS.items(), ids=FAULTS)
def test_a_fault_is_found_from_disk(browser: Browser, tmp_path: Path, kind: str, body: str) -> None:
    assert kind in visit(browser, write_page(tmp_path, body).as_uri(), patience=0.5).findings


@pytest.mark.parametrize("kind", ["failed request", "request to another host"])
def test_a_fault_is_found_from_a_server(browser: Browser, tmp_path: Path, kind: str) -> None:
    write_page(tmp_path, FAULTS[kind])
    with serve(tmp_path) as address:
        assert kind in visit(browser, f"{address}/page.html", patience=0.5).findings


def test_a_good_page_has_no_findings(browser: Browser, tmp_path: Path) -> None:
    assert visit(browser, write_page(tmp_path, GOOD).as_uri(), patience=0.5).findings == {}


def test_a_picture_is_taken(browser: Browser, tmp_path: Path) -> None:
    picture(browser, write_page(tmp_path, GOOD).as_uri(), tmp_path / "page.png", width=360, dark=True)
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_browser_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TTUTOR_CHROMIUM", raising=False)
    with pytest.raises(FileNotFoundError, match="install one or set TTUTOR_CHROMIUM"), open_browser():
        pass
