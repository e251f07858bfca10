"""One browser for all tests that look at the book as a reader does: headless Chromium, cut off from the network.

``visit`` opens one page and returns everything a reader would trip over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import Browser, Error, Page, Request

from book._tools import chromium
from book._tools.chromium import find_browser, open_browser
from ttutor.widgets import static

__all__ = ["find_browser", "open_browser"]  # asked for here by the tests of other rooms
ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
DESK = {"width": 1400, "height": 900}
PHONE = {"width": 360, "height": 740}
LOCAL = ("127.0.0.1", "localhost", "")

HERE = Path(__file__).parent
INSPECT = (HERE / "inspect.js").read_text(encoding="utf-8")
AUDIT = (HERE / "audit.js").read_text(encoding="utf-8")
LARGEST_SHIFT = 0.1  # what counts as good: https://web.dev/articles/cls
LARGEST_TRANSFER = 1_700_000  # a chapter with all its figures
LARGEST_SEARCH = 4_000_000  # all that the search knows
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
# The layout shift as browsers count it: the largest sum of a window of at most 5 s without a pause of 1 s.
SHIFT = """
() => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: 'layout-shift', buffered: true });
  let sum = 0, largest = 0, first = 0, last = -Infinity, where = '';
  for (const entry of observer.takeRecords()) {
    if (entry.hadRecentInput) continue;
    if (entry.startTime - last > 1000 || entry.startTime - first > 5000) [sum, first] = [0, entry.startTime];
    sum += entry.value;
    last = entry.startTime;
    if (sum > largest) {
      const moved = entry.sources.map((one) => one.node && (one.node.className || one.node.nodeName));
      [largest, where] = [sum, moved.join(', ')];
    }
  }
  return [largest, where];
}
"""
TRANSFERS = """
() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(
  (entry) => [entry.name, entry.decodedBodySize])
"""
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
IN_THE_DARK = "() => { document.documentElement.dataset.theme = 'dark'; }"


@dataclass
class Visit:
    """What happened while a page was open, by kind: each finding in words. A good page has none."""

    url: str
    findings: dict[str, list[str]] = field(default_factory=dict)
    shift: float = 0.0
    own_bytes: int = 0

    def add(self, kind: str, what: str) -> None:
        """Note one finding."""
        self.findings.setdefault(kind, []).append(what)

    def __str__(self) -> str:
        return "\n".join([self.url, *(f"  {kind}: {what}" for kind, all_ in self.findings.items() for what in all_)])


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


def watch(page: Page, visit: Visit) -> None:
    """Note what the page says, asks for and fails at. (The browser lets no request leave this machine.)"""

    def guard(request: Request) -> None:
        if (urlsplit(request.url).hostname or "") not in LOCAL:
            visit.add("request to another host", request.url)

    def fail(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # which only says that the page was left before it came
            visit.add("failed request", f"{request.url} ({request.failure})")

    page.on("request", guard)
    page.on("console", lambda m: visit.add(f"console {m.type}", m.text) if m.type in ("warning", "error") else None)
    page.on("pageerror", lambda error: visit.add("script error", str(error)))
    page.on("requestfailed", fail)
    page.on("response", lambda r: visit.add("failed request", f"{r.url} ({r.status})") if r.status >= 400 else None)


def settle(page: Page, visit: Visit, seconds: float) -> None:
    """Wait until formulas are set and explorers mounted; note it if that does not happen."""
    try:
        chromium.settle(page, seconds)
    except Error as error:
        visit.add("did not settle", str(error).splitlines()[0])


def is_ours(url: str) -> bool:
    """Whether a file of the book is the course's own: neither MathJax nor of the theme and the extensions."""
    path = urlsplit(url).path
    own = {found.name for found in (ROOT / "book" / "_static").rglob("*")} | {
        "explorers.js",
        *(f"explorer-{name}.js" for name in static._APART),
    }
    return "/mathjax/" not in path and ("/_static/" not in path or Path(path).name in own)


@dataclass
class Reader:
    """A reader with one tab, which goes from page to page: a tab for each page would cost more than the pages.

    Attributes:
        page: the tab.
        widths: the page is loaded at the first width, in pixels, and then shown at the others.
        audit: None for no audit with axe-core, ``quick`` for one of things unlike those audited before, in the light
            and then in the dark, ``whole`` for everything as it is shown.
        met: what quick audits have looked at, on the pages before.
    """

    page: Page
    widths: tuple[int, ...] = (DESK["width"], 360)
    audit: str | None = None
    met: list[str] = field(default_factory=list)
    now: Visit = field(default_factory=lambda: Visit(""))

    def visit(self, url: str, patience: float = 20, audited: bool = True) -> Visit:
        """Open a page, look at everything, and return what is wrong with it.

        Args:
            url: a page on disk or on this machine.
            patience: seconds in which formulas must be set and explorers mounted.
            audited: False for a page that is left out of the audits.
        """
        self.now.url, self.now.findings = url, {}
        self.page.set_viewport_size({"width": self.widths[0], "height": 800})
        self.page.goto(url, wait_until="load", timeout=120_000)
        settle(self.page, self.now, patience)
        self._note(self.page.evaluate(INSPECT))
        self.page.wait_for_timeout(200)  # what moves late is seen as well
        self.weigh()
        for width in self.widths:
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.evaluate(NEXT_FRAME)
            self._note({f"wider than {width} px": self.page.evaluate(OVERFLOW)})
        if self.audit and audited:
            self._audit()
        result = replace(self.now)
        self.page.goto("about:blank")
        return result

    def _note(self, found: dict[str, list[str]]) -> None:
        for kind, all_ in found.items():
            for what in all_:
                self.now.add(kind, what)

    def _audit(self) -> None:
        self.page.wait_for_timeout(350)  # the theme waits as long before it looks at the new size
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(AUDIT, {"quick": self.audit == "quick", "met": self.met})
        self.met = found["met"]
        self._note({"axe": found["faults"]})
        if self.audit == "quick":
            self.page.emulate_media(color_scheme="dark")
            self.page.evaluate(IN_THE_DARK)
            found = self.page.evaluate(AUDIT, {"quick": True, "colours": True})
            self._note({"axe in the dark": found["faults"]})
            self.page.emulate_media(color_scheme="light")

    def weigh(self) -> None:
        """Measure how far things moved while the page loaded, and what was transferred for this page alone."""
        self.now.shift, where = self.page.evaluate(SHIFT)
        self.now.own_bytes = sum(size for name, size in self.page.evaluate(TRANSFERS) if is_ours(name))
        if self.now.shift > LARGEST_SHIFT:
            self.now.add("layout shift", f"{self.now.shift:.3f} at {self.widths[0]} px, of {where}")
        if self.now.own_bytes > (LARGEST_SEARCH if self.now.url.endswith("search.html") else LARGEST_TRANSFER):
            self.now.add("too large", f"{self.now.own_bytes:,} bytes besides MathJax and the theme")


@contextmanager
def reader(
    browser: Browser, *, widths: tuple[int, ...] = (DESK["width"], 360), dark: bool = False, audit: str | None = None
) -> Iterator[Reader]:
    """Yield a reader who wants little movement, so that colours are met where they end and not on their way."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    try:
        made = Reader(context.new_page(), widths, audit)
        watch(made.page, made.now)
        yield made
    finally:
        context.close()


def visit(browser: Browser, url: str, *, patience: float = 20, **how: Any) -> Visit:
    """Open one page as a `reader` does, and return what is wrong with it."""
    with reader(browser, **how) as one:
        return one.visit(url, patience)
