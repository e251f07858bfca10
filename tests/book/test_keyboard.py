"""The book without a mouse: what Tab reaches, what opens and closes, and where the reader is afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.book.browser import DESK

pytestmark = pytest.mark.browser

FOCUSED = "() => { const e = document.activeElement; return e.textContent.trim() || e.getAttribute('aria-label'); }"


@pytest.fixture(scope="module")
def opened(browser: Browser, html: Path) -> Iterator[Page]:
    context = browser.new_context(viewport=DESK, reduced_motion="reduce")
    context.route("**/mathjax/**", lambda route: route.abort())  # nothing here is about formulas
    page = context.new_page()
    page.goto((html / "book" / "02-attention.html").as_uri(), timeout=120_000)
    yield page
    context.close()


@pytest.fixture
def page(opened: Page) -> Page:
    """The chapter, with nothing open and the focus at its beginning."""
    opened.evaluate("() => { document.activeElement.blur(); getSelection().removeAllRanges(); window.scrollTo(0, 0); }")
    return opened


def test_the_first_stop_skips_to_the_text(opened: Page) -> None:
    opened.bring_to_front()
    while opened.evaluate("document.activeElement === document.body"):  # a key can be lost beside a second browser
        opened.keyboard.press("Tab")
        opened.wait_for_timeout(300)
    assert opened.evaluate(FOCUSED) == "Skip to main content"
    assert opened.locator("#pst-skip-link").evaluate("e => e.getBoundingClientRect().top >= 0")
    opened.keyboard.press("Enter")
    assert opened.evaluate("location.hash") == "#main-content"
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_search_opens_and_closes_by_keyboard_and_gives_the_focus_back(page: Page) -> None:
    button = page.locator("button.search-button__button:visible").first
    for opening in ("Enter", "Control+K"):
        button.focus()
        page.keyboard.press(opening)
        expect(page.locator("#pst-search-dialog[open] input")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#pst-search-dialog")).not_to_be_visible()
        expect(button).to_be_focused()


def test_a_button_that_copies_code_is_seen_where_the_focus_is(page: Page) -> None:
    button = page.locator("button.copybtn:visible").first
    expect(button).to_have_css("opacity", "0")
    button.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    expect(button).to_have_css("opacity", "1")


def test_hidden_code_opens_and_closes(page: Page) -> None:
    summary = page.locator("details.hide > summary").first
    name = summary.inner_text()
    assert name.startswith("Show code")
    for is_open, expected in ((True, "Hide"), (False, "Show")):
        summary.focus()
        page.keyboard.press("Enter")
        assert summary.evaluate("e => e.parentElement.open") is is_open
        assert summary.inner_text().startswith(expected)


def test_every_solution_and_every_box_that_opens_does_so(page: Page, html: Path) -> None:
    """Each is a summary, or a button that says whether it is open."""
    for button in page.locator(".toggle-button").all():
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
        page.keyboard.press("Space")
        assert button.get_attribute("aria-expanded") == "false"
    page.goto((html / "book" / "02-attention-exercises.html").as_uri(), timeout=120_000)
    solutions = page.locator("details.sd-dropdown > summary")
    assert solutions.count() > 5
    for index in (0, solutions.count() - 1):
        solutions.nth(index).focus()
        page.keyboard.press("Enter")
        assert solutions.nth(index).evaluate("e => e.parentElement.open")
        page.keyboard.press("Enter")
        assert not solutions.nth(index).evaluate("e => e.parentElement.open")
    page.go_back()


def test_code_that_scrolls_is_a_stop_as_soon_as_it_is_seen_and_only_then(page: Page) -> None:
    scrolls = "e => e.scrollWidth > e.clientWidth + 1"
    for width in (360, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        page.wait_for_timeout(500)  # the theme waits a while before it looks at the new size
        state = page.locator(".bd-article pre:visible").evaluate_all(
            f"all => all.map((e) => [({scrolls})(e), e.tabIndex])"
        )
        assert [one for one in state if one[0] != (one[1] == 0)] == []
        if width == 360:
            assert sum(scrolling for scrolling, _ in state) > 5
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = false; })")


def test_tab_goes_through_the_page_in_order(page: Page) -> None:
    last = -1
    for _ in range(60):
        page.keyboard.press("Tab")
        place = page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
        within = place == last and page.evaluate("document.activeElement.shadowRoot !== null")
        assert place > last or within, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        last = place
