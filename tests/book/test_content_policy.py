"""The policy of a page lets run what the build wrote, from disk too, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from book._tools.chromium import wait_until
from book._tools.content_policy import META, with_policy
from tests.book.browser import Visit, settle, watch
from ttutor.widgets import PlaygroundExplorer, TranslatorExplorer, static
from ttutor.widgets.base import _PAGE

in_browser = pytest.mark.browser
PAGE = (
    '<html lang="en"><head><meta charset="utf-8"><title>x</title></head><body><script src="a.js"></script>'
    '<script>one()</script><button onclick="go(&quot;two&quot;)">x</button>{}</body></html>'
)
INTRUDERS = """
() => new Promise((done) => {
  const refused = [];
  addEventListener('securitypolicyviolation', (event) => refused.push(event.effectiveDirective));
  window.ran = [];
  document.body.insertAdjacentHTML('beforeend', '<img alt="" src="data:," onerror="ran.push(1)">');
  const own = Object.assign(document.createElement('script'), { textContent: 'ran.push(2)' });
  const foreign = Object.assign(document.createElement('script'), { src: 'http://localhost:1/x.js' });
  document.body.append(own, foreign);
  fetch('http://localhost:1/').catch(() => {});
  foreign.onerror = () => setTimeout(() => done({ ran, refused: refused.sort() }), 100);
})
"""


def test_a_second_time_changes_nothing_and_another_script_changes_it() -> None:
    once, other = with_policy(PAGE.format("")), with_policy(PAGE.format("<script>three()</script>"))
    assert with_policy(once) == once
    assert once.count("Content-Security-Policy") == 1
    assert META.search(other)[0] != META.search(once)[0]
    assert with_policy(other.replace("<script>three()</script>", "")) == once


def test_each_script_and_handler_has_its_hash_and_nothing_else_is_taken_from_another_host() -> None:
    policy = META.search(with_policy(PAGE.format("")))[0]
    assert policy.count("'sha256-") == 2
    assert "'unsafe-hashes' 'sha256-" in policy
    assert [word for word in ("http:", "https:", "*", "'unsafe-eval'") if word in policy] == []
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert "'unsafe-hashes'" not in with_policy('<meta charset="utf-8" /><script>one()</script>')


def opened(browser: Browser, path: Path) -> tuple[Page, Visit]:
    page, seen = browser.new_page(), Visit(path.name)
    watch(page, seen)
    page.goto(path.as_uri())
    settle(page, seen, 30)
    return page, seen


@in_browser
def test_translator_and_playground_work_from_disk_and_what_comes_in_later_does_not(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    figures = [TranslatorExplorer(), PlaygroundExplorer("who")]
    body = "".join(figure.to_html() for figure in figures)
    whole = _PAGE.format(title="Figures", body=body, script=static.static_script(["translator", "playground"]))
    path.write_text(with_policy(whole), encoding="utf-8")
    static.write_weights(tmp_path)
    page, seen = opened(browser, path)
    n_words = page.locator(".written .chip").count()
    page.get_by_label("English sentence").fill("A dog runs.")
    expect(page.locator(".written .chip")).not_to_have_count(n_words)
    with page.expect_worker(timeout=20_000):
        page.get_by_role("button", name="Yes", exact=True).click()
    assert not seen.findings, str(seen)
    found = page.evaluate(INTRUDERS)
    assert found["ran"] == []
    assert found["refused"] == ["connect-src", "script-src-attr", "script-src-elem", "script-src-elem"]
    page.close()


@in_browser
def test_the_first_page_searches_and_fills_the_screen_from_disk(browser: Browser, html: Path) -> None:
    page, seen = opened(browser, html / "book" / "intro.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").fill("softmax")
    expect(page.locator("#quick-results a").first).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("button[onclick='toggleFullScreen()']").first.click()
    wait_until(page, "() => document.fullscreenElement")
    assert not seen.findings, str(seen)
    page.close()


@in_browser
def test_every_built_page_keeps_the_policy(html: Path) -> None:
    pages = [path for path in html.rglob("*.html") if "_static" not in path.parts and path != html / "index.html"]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    assert [path.name for path, text in texts.items() if "Content-Security-Policy" not in text] == []
    assert [path.name for path, text in texts.items() if with_policy(text) != text] == []
