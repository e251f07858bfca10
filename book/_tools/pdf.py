"""One PDF of the whole book: Chromium prints the page that `print_page` makes, with its links, outline and structure.

``make pdf`` builds the book, writes ``_build/html/ttutor.pdf``, and shows its link in the sidebar of the built pages.
Explorers stand in it as pictures; the hints and solutions of all exercises stand at its end.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pikepdf
from book._tools import build
from book._tools.chromium import open_browser, settle
from book._tools.print_page import whole_book

from ttutor import __version__

LEFT_OUT = ("book/api", "book/changelog", "book/contributing")
"""Beginnings of the names of pages in which one looks things up, or of use only where the repository is."""
PATIENCE = 600
"""Seconds in which all formulas must be set and all explorers drawn."""


def print_to(target: Path, markup: str) -> None:
    """Print a page of HTML, as if it lay beside the built pages."""
    source = target.parent / "book" / "the-whole-book.html"
    source.write_text(markup, encoding="utf-8")
    faults: list[str] = []
    try:
        with open_browser() as browser:
            page = browser.new_page(viewport={"width": 720, "height": 1000}, color_scheme="light")
            page.set_default_timeout(PATIENCE * 1000)
            page.emulate_media(media="print")
            page.on("requestfailed", lambda request: faults.append(f"missing: {request.url}"))
            page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
            page.goto(source.as_uri(), wait_until="load")
            settle(page, PATIENCE)
            if faults:
                raise RuntimeError("\n".join(["the book could not be printed whole:", *faults]))
            page.pdf(path=target, prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
        with pikepdf.open(target, allow_overwriting_input=True) as printed:
            printed.save(object_stream_mode=pikepdf.ObjectStreamMode.generate)  # half of the bytes
    finally:
        source.unlink()


def main(arguments: list[str] | None = None) -> int:
    """Print the built book to one file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="only these pages, such as book/02-attention")
    parser.add_argument("--paper", choices=("A4", "letter"), default="A4", help="the size of the sheets (%(default)s)")
    options = parser.parse_args(arguments)
    pages = options.pages or [page for page in build.read_toc() if not page.startswith(LEFT_OUT)]
    if absent := [page for page in pages if not (build.HTML / f"{page}.html").exists()]:
        print(f"Not in the built book: {', '.join(absent)}. Run `make book` first.", file=sys.stderr)
        return 1
    target = build.HTML / build.PDF_NAME
    print_to(target, whole_book(build.HTML, pages, version=__version__, paper=options.paper))
    build.show_pdf_link()
    print(f"{target.stat().st_size / 1e6:.1f} MB: {target.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
