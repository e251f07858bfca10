"""One PDF of the whole book: Chromium prints one page after the other, and what it printed is joined and made small.

``make pdf`` builds the book, writes ``_build/html/ttutor.pdf``, and shows its link in the sidebar of the built pages.
Explorers stand in it as pictures; the hints and solutions of all exercises stand at its end. Links within the book lead
to their places within the PDF.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from playwright.sync_api import BrowserContext, Route

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run as a script, Python looks beside the script only
    sys.path.insert(0, str(ROOT))

from book._tools.build import HTML, PDF_NAME, read_toc, show_what_changes  # noqa: E402
from book._tools.join import Joined  # noqa: E402
from book._tools.whole_book import whole_book  # noqa: E402
from tests.book.browser import Visit, open_browser, settle  # noqa: E402

LEFT_OUT = ("book/api", "book/changelog", "book/contributing")
"""Pages in which one looks things up, or of use only where the repository is."""
ADDRESS = "book/the-whole-book.html"
"""Where the page to be printed would lie: nothing is written there, the browser gets it from here."""
PATIENCE = 120
"""Seconds in which the formulas of one page must be set and its explorers drawn."""


def print_chunk(context: BrowserContext, markup: str) -> bytes:
    """Print one piece.

    Raises:
        RuntimeError: formulas or explorers were not ready in time, or something asked for was not there.
    """
    address = (HTML / ADDRESS).as_uri()
    visit = Visit(address)
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE * 1000)
    tab.emulate_media(media="print")
    tab.on("requestfailed", lambda request: visit.add("failed request", request.url))
    tab.on("pageerror", lambda error: visit.add("script error", str(error)))

    def answer(route: Route) -> None:
        route.fulfill(body=markup, content_type="text/html; charset=utf-8")

    tab.route(address, answer)
    tab.goto(address, wait_until="load")
    settle(tab, visit, seconds=PATIENCE)
    if visit.findings:
        raise RuntimeError(f"the page was not ready to be printed\n{visit}")
    printed = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True)
    tab.close()
    return printed


def main(arguments: list[str] | None = None) -> int:
    """Print the built book to one file."""
    from ttutor import __version__

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="only these pages, such as book/02-attention")
    parser.add_argument("--paper", choices=("A4", "letter"), default="A4", help="the size of the sheets (%(default)s)")
    options = parser.parse_args(arguments)
    pages = options.pages or [page for page in read_toc() if page not in LEFT_OUT]
    if absent := [page for page in pages if not (HTML / f"{page}.html").exists()]:
        print(f"Not in the built book: {', '.join(absent)}. Run `make book` first.", file=sys.stderr)
        return 1
    joined, target = Joined(), HTML / PDF_NAME
    with open_browser() as browser:
        context = browser.new_context(viewport={"width": 720, "height": 1000}, color_scheme="light")
        for piece in whole_book(HTML, pages, version=__version__, paper=options.paper):
            n_sheets = joined.add(print_chunk(context, piece.markup), piece.headings)
            print(f"  {piece.name}: {n_sheets} sheets", flush=True)
    sheets = joined.finish(target, "the ttutor authors")
    show_what_changes()
    print(f"{sheets} sheets, {target.stat().st_size / 1e6:.1f} MB: {target.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
