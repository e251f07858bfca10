"""One browser for all tests that look at the book as a reader does: headless Chromium, cut off from the network.

``visit`` opens one page and returns everything a reader would trip over. From the command line the same browser takes
pictures: ``python -m tests.book.browser OUTPUT_FOLDER [PAGE ...]`` at phone and desk width, light and dark.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Error, Page, Route, sync_playwright

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
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
)
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1400, "height": 900}
LOCAL = ("127.0.0.1", "localhost", "")

# What the page itself can tell: each entry is a list of words, empty when all is well.
INSPECT = r"""
() => {
  const words = (e) => (e.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
  const article = document.querySelector('article') || document.body;
  const prose = article.cloneNode(true);
  prose.querySelectorAll('pre, code, script, style, .math, mjx-container').forEach((e) => e.remove());
  const outputs = [...article.querySelectorAll('.cell:not(.tag_raises-exception) .cell_output')];
  const name = /(^$)|(\.(png|svg|jpe?g|gif|webp)$)|(^[0-9a-f]{16,}$)/i;
  return {
    'math not rendered': [...article.querySelectorAll('.math')].filter(
      (e) => !e.querySelector('mjx-container')).map(words),
    'error in a formula': [...article.querySelectorAll('[data-mml-node="merror"]')].map(
      (e) => e.getAttribute('data-mjx-error') || words(e)),
    'raw formula in the text': (prose.textContent.match(/\\[(\[].{0,40}|\$[^$\s][^$]{0,40}\$/g) || []),
    'explorer not mounted': [...document.querySelectorAll('[data-explorer]')].filter((e) => !e.dataset.ready).map(
      (e) => e.dataset.explorer),
    'traceback': outputs.filter((e) => e.textContent.includes('Traceback (most recent call last)')).map(words),
    'picture without a description': [...document.querySelectorAll('img')].filter((e) => name.test(e.alt.trim())).map(
      (e) => (e.getAttribute('src') || '').slice(0, 80)),
    'picture not loaded': [...document.querySelectorAll('img')].filter((e) => e.complete && !e.naturalWidth).map(
      (e) => (e.getAttribute('src') || '').slice(0, 80)),
  };
}
"""
OVERFLOW = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const boxed = (e) => e !== document.body && (getComputedStyle(e).overflowX !== 'visible' || boxed(e.parentElement));
  const wide = [...document.body.querySelectorAll('*')].filter(
    (e) => e.getBoundingClientRect().right > width + 1 && !boxed(e.parentElement));
  return [`${document.documentElement.scrollWidth}px: ` + wide.slice(0, 5).map(
    (e) => `${e.tagName.toLowerCase()}.${e.className} (${e.textContent.trim().slice(0, 30)})`).join('; ')];
}
"""
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


@dataclass
class Visit:
    """What happened while a page was open, by kind: each finding in words. A good page has none."""

    url: str
    findings: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, what: str) -> None:
        """Note one finding."""
        self.findings.setdefault(kind, []).append(what)

    def __str__(self) -> str:
        return "\n".join([self.url, *(f"  {kind}: {what}" for kind, all_ in self.findings.items() for what in all_)])


def find_browser() -> str | None:
    """Return the path of a Chromium: ``TTUTOR_CHROMIUM`` if set, else the first one on the PATH."""
    return os.environ.get("TTUTOR_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser that `find_browser` finds, and close it afterwards.

    Raises:
        FileNotFoundError: there is none.
    """
    path = find_browser()
    if path is None:
        raise FileNotFoundError(
            f"no Chromium found (looked for {', '.join(NAMES)}); install one or set TTUTOR_CHROMIUM"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class _Quiet(SimpleHTTPRequestHandler):
    """A file server that does not log."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def watch(context: BrowserContext, page: Page, visit: Visit) -> None:
    """Note what the page says, asks for and fails at; let no request leave this machine."""

    def guard(route: Route) -> None:
        if (urlsplit(route.request.url).hostname or "") in LOCAL:
            route.continue_()
        else:
            visit.add("request to another host", route.request.url)
            route.abort()

    context.route("**/*", guard)
    page.on("console", lambda m: visit.add(f"console {m.type}", m.text) if m.type in ("warning", "error") else None)
    page.on("pageerror", lambda error: visit.add("script error", str(error)))
    page.on("requestfailed", lambda r: visit.add("failed request", f"{r.url} ({r.failure})"))
    page.on("response", lambda r: visit.add("failed request", f"{r.url} ({r.status})") if r.status >= 400 else None)


def settle(page: Page, visit: Visit, seconds: float) -> None:
    """Wait until formulas are set and explorers mounted; note it if that does not happen."""
    page.evaluate(MARK_MATH)
    try:
        page.wait_for_function(SETTLED, timeout=seconds * 1000)
    except Error as error:
        visit.add("did not settle", str(error).splitlines()[0])


def visit(browser: Browser, url: str, *, patience: float = 20) -> Visit:
    """Open a page at desk width, look at everything, narrow it to a phone, and return what is wrong with it.

    Args:
        browser: as `open_browser` yields it.
        url: a page on disk or on this machine.
        patience: seconds in which formulas must be set and explorers mounted.
    """
    result = Visit(url)
    context = browser.new_context(viewport=DESK)
    try:
        page = context.new_page()
        watch(context, page, result)
        page.goto(url, wait_until="load")
        settle(page, result, patience)
        for kind, found in page.evaluate(INSPECT).items():
            for what in found:
                result.add(kind, what)
        page.set_viewport_size(PHONE)
        page.wait_for_timeout(100)
        for what in page.evaluate(OVERFLOW):
            result.add("wider than a phone", what)
    finally:
        context.close()
    return result


def picture(browser: Browser, url: str, target: Path, *, width: int, dark: bool) -> Visit:
    """Take a picture of a whole page."""
    result = Visit(url)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    try:
        page = context.new_page()
        watch(context, page, result)
        page.goto(url, wait_until="load")
        settle(page, result, seconds=20)
        page.screenshot(path=target, full_page=True)
    finally:
        context.close()
    return result


def main(arguments: list[str]) -> int:
    """Take pictures of pages (all of the book's when none is named) at two widths, light and dark."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    folder, pages = Path(arguments[0]), arguments[1:]
    folder.mkdir(parents=True, exist_ok=True)
    pages = pages or [path.relative_to(HTML).with_suffix("").as_posix() for path in sorted(HTML.glob("book/*.html"))]
    with open_browser() as browser:
        for page in pages:
            for width in (360, 1400):
                for dark in (False, True):
                    target = folder / f"{page.replace('/', '_')}-{width}-{'dark' if dark else 'light'}.png"
                    print(picture(browser, (HTML / f"{page}.html").as_uri(), target, width=width, dark=dark), target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
