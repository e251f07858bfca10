"""The Chromium that prints the book and shows it to the tests, and when a page in it is ready."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # no request leaves this machine
)
MARK_MATH = """
() => {
  const startup = window.MathJax && MathJax.startup;
  if (startup) startup.promise.then(() => { window.ttutorMathDone = true; });
}
"""
SETTLED = """
() => (!window.MathJax || !MathJax.startup || window.ttutorMathDone)
  && [...document.querySelectorAll('[data-explorer]')].every((e) => e.dataset.ready)
"""

WAIT = """
async (patience) => {
  const met = %s;
  const end = performance.now() + patience;
  while (!met()) {
    if (performance.now() > end) throw new Error(`not within ${patience} ms: ${met}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
"""


def find_browser() -> str | None:
    """Return the path of a Chromium: ``TTUTOR_CHROMIUM`` if set, else the first one on the PATH."""
    return os.environ.get("TTUTOR_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@cache
def driver() -> Playwright:
    """Return Playwright, started once: a process can hold one, and several fixtures open browsers at the same time."""
    started = sync_playwright().start()
    atexit.register(started.stop)
    return started


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser that `find_browser` finds, and close it afterwards."""
    path = find_browser()
    if path is None:
        raise FileNotFoundError(
            f"no Chromium found (looked for {', '.join(NAMES)}); install one or set TTUTOR_CHROMIUM"
        )
    browser = driver().chromium.launch(executable_path=path, args=list(FLAGS))
    try:
        yield browser
    finally:
        browser.close()


def settle(page: Page, seconds: float) -> None:
    """Wait until formulas are set and explorers drawn."""
    page.evaluate(MARK_MATH)
    wait_until(page, SETTLED, seconds)


def wait_until(page: Page, condition: str, seconds: float = 30) -> None:
    """Wait until a function of the page gives something true.

    Playwright's `wait_for_function` compiles its text anew each time that it asks, which the policy of the book's pages
    forbids; here it is compiled once, from outside.
    """
    page.evaluate(WAIT % condition, seconds * 1000)
