"""The browser harness sees what it is there to see: one faulty page for each kind of finding, and a good one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.book.browser import Reader, reader, visit

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
    "formula that is not spoken": "<mjx-container><svg aria-hidden='true'></svg></mjx-container>",
    "drawing without a description": "<svg><path d='M0,0 L9,9'/></svg>",
    "not one title": "<h1>a second title</h1>",
    "heading that skips a level": "<h3>too deep</h3>",
    "two things with one id": "<p id='twin'>one</p><p id='twin'>two</p>",
    "order of its own": "<button tabindex='2'>first of all</button>",
    "layout shift": "<p id='below'>text</p><script>onload = () => requestAnimationFrame(() => setTimeout(() => below"
    ".insertAdjacentHTML('beforebegin', '<div data-explorer=late style=\"height: 600px\"></div>'), 100))</script>"
    "<div style='height: 900px; background: #eee'>much that moves</div>",
    "picture not loaded": "<img src='data:image/gif;base64,AAAA' alt='a dot'>",
    "wider than 360 px": "<div style='width: 700px'>wide</div>",
}
POOR = ["", "plot", "An image.", "figure 3", "loss.png", "_images/5f2c5f2c5f2c5f2c.png"]
AUDITED = {
    "image-alt": f"<img src='{PIXEL}'>",
    "button-name": "<button></button>",
    "color-contrast": "<p style='color: #999; background: #fff'>hard to read</p>",
    "label-content-name-mismatch": "<button aria-label='Find'>Search</button>",
    "summary-name": "<details><summary></summary>text</details>",
    "scrollable-region-focusable": "<details><summary>more</summary><div style='overflow: auto; height: 9px'"
    " tabindex=-1><p>1</p><p>2</p></div></details>",
    "link-name": f"<svg role='group' aria-label='dots'>{'<circle r=2 />' * 50}<a href='#x'><circle r=2 /></a></svg>",
    "empty-table-header": "<table><tr><th></th><td>1</td></tr></table>",
}
GOOD = f"""
<p>costs 5 $ or $6, and <code>\\(x\\)</code></p><div class="math"><mjx-container>x</mjx-container></div>
<h2>Part</h2><h3>Part of it</h3>
<svg role="img" aria-label="a line"><path d="M0,0 L9,9"/></svg>
<div data-explorer="attention" data-ready="1"></div><img src="{PIXEL}" alt="a dot">
<div class="cell tag_raises-exception"><div class="cell_output">Traceback (most recent call last)</div></div>
<div style="overflow-x: auto"><div style="width: 700px">wide</div></div><script>console.log('fine')</script>
"""


def write_page(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'><link rel='icon' href='data:,'>"
    main = f"<main><h1>A title</h1><article>{body}</article></main>"
    path.write_text(
        f"<!DOCTYPE html><html lang='en'><head><title>A page</title>{head}</head><body>{main}</body></html>"
    )
    return path


@pytest.fixture(scope="module")
def someone(browser: Browser) -> Iterator[Reader]:
    with reader(browser) as one:
        yield one


def test_every_fault_is_found_from_disk(someone: Reader, tmp_path: Path) -> None:
    found = someone.visit(write_page(tmp_path, "".join(FAULTS.values())).as_uri(), patience=0.5).findings
    assert set(FAULTS) - set(found) == set()


def test_every_poor_description_of_a_picture_is_found(someone: Reader, tmp_path: Path) -> None:
    path = write_page(tmp_path, "".join(f"<img src='{PIXEL}' alt='{description}'>" for description in POOR))
    assert len(someone.visit(path.as_uri()).findings["picture without a description"]) == len(POOR)


def test_the_audit_finds_every_fault_among_many_that_are_alike(browser: Browser, tmp_path: Path) -> None:
    alike = "<p>text</p>" * 50
    path = write_page(tmp_path, f"{alike}<section>{''.join(AUDITED.values())}</section>{alike}")
    found = visit(browser, path.as_uri(), widths=(360,), audit="quick").findings
    assert {what.partition(":")[0] for what in found["axe"]} == set(AUDITED)
    assert {what.partition(":")[0] for what in found["axe in the dark"]} == {"color-contrast"}


def test_a_page_without_a_language_is_found(someone: Reader, tmp_path: Path) -> None:
    path = write_page(tmp_path, "<p>text</p>")
    path.write_text(path.read_text(encoding="utf-8").replace("lang='en'", ""), encoding="utf-8")
    assert someone.visit(path.as_uri()).findings == {"no language": ["the page does not say its language"]}


def test_a_good_page_has_no_findings(browser: Browser, tmp_path: Path) -> None:
    assert visit(browser, write_page(tmp_path, GOOD).as_uri(), patience=0.5).findings == {}
