"""One PDF of the whole book: Chromium prints every page, and the parts are joined under one numbering.

``make pdf`` builds the book, writes ``_build/html/ttutor.pdf``, and shows its link in the sidebar of the built pages.
Explorers stand in it as pictures; the hints and solutions of all exercises stand at its end. A link to another page of
the book becomes a link to that page's first sheet.
"""

from __future__ import annotations

import argparse
import html
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from playwright.sync_api import Browser, Page
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import Fit

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run as a script, Python looks beside the script only
    sys.path.insert(0, str(ROOT))

from book._tools.build import HTML, read_toc  # noqa: E402
from tests.book.browser import Visit, open_browser, settle  # noqa: E402

NAME = "ttutor.pdf"
PLACE = re.compile(r"<!-- pdf-link (\S+) -->")
SHEET = {"format": "A4", "margin": {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"}}
LEFT_OUT = ("book/api", "book/changelog", "book/contributing")
"""Pages that are looked things up in, not read: the reference alone would be a third of the sheets."""

STYLE = """
  html, body { background: #fff !important; font-size: 10.5pt; }
  .bd-sidebar, .bd-header, .bd-footer, .bd-footer-content, .prev-next-footer, .skip-link, .copybtn, .headerlink,
  .sidebar-toggle, .toggle-button, .back-to-top, #pst-back-to-top, #jb-print-toc, #print-main-content,
  details.hide > summary, .sd-summary-state-marker { display: none !important; }
  pre, .highlight, [class*="highlight-"], .cell, .cell_input, .cell_output, details, .admonition {
    break-inside: auto !important; }
  .highlight, [class*="highlight-"], .cell_input, .bd-container, .bd-container__inner { display: block !important; }
  .bd-main, .bd-content, .bd-article-container, .bd-article { max-width: none !important; padding: 0 !important;
    margin: 0 !important; display: block !important; width: auto !important; }
  pre { white-space: pre-wrap !important; font-size: 8.5pt; overflow: visible !important; }
  .bd-article :is(div, pre, details, section):not(.explorer *) { overflow: visible !important; }
  img, svg { max-width: 100%; height: auto; }
  h1, h2, h3, h4, .admonition-title { break-after: avoid; }
  figure, img, table tr, .ttutor-claim, .explorer { break-inside: avoid; }
"""

PREPARE = """
(only) => {
  const article = document.querySelector('article.bd-article');
  const hidden = '.solution, .cell.tag_solution, details.sd-dropdown';
  const isHint = (e) => e.matches('details.sd-dropdown') ? /^\\s*Hint/.test(e.textContent) : true;
  const answers = [...article.querySelectorAll(hidden)].filter(
    (e) => isHint(e) && !e.parentElement.closest('.solution, .cell.tag_solution'));
  if (only === 'answers') {
    const title = article.querySelector('h1').textContent;
    const tasks = [...article.querySelectorAll('.exercise > .admonition-title')];
    const kept = [...tasks, ...answers].sort(
      (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
    const section = document.createElement('section');
    const heading = document.createElement('h1');
    heading.textContent = title;
    section.append(heading, ...kept.map((e) => {
      if (!tasks.includes(e)) return e;
      const name = document.createElement('h2');
      name.textContent = e.textContent;
      return name;
    }));
    article.replaceChildren(section);
  } else {
    answers.forEach((e) => e.remove());
  }
  document.querySelectorAll('details').forEach((e) => { e.open = true; });
  document.querySelectorAll('.toggle-hidden').forEach((e) => e.classList.remove('toggle-hidden'));
  return article.innerText.trim().length;
}
"""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A part of the PDF: a heading, the page it comes from, and what Chromium printed."""

    title: str
    page: str
    level: int
    printed: PdfReader


def captions() -> dict[str, str]:
    """Return the caption of the part of the table of contents that each part's first page opens."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return {part["chapters"][0]["file"]: part["caption"] for part in toc["parts"]}


def print_page(tab: Page, address: str, only: str) -> PdfReader | None:
    """Print one page of the built book, its text or its answers alone; None where there is nothing.

    Raises:
        RuntimeError: formulas or explorers were not ready in time.
    """
    visit = Visit(address)
    tab.goto(address, wait_until="load")
    settle(tab, visit, seconds=60)
    if visit.findings:
        raise RuntimeError(f"the page was not ready to be printed\n{visit}")
    tab.add_style_tag(content=STYLE)
    has_answers = tab.locator("article .solution").count() > 0
    if only == "answers" and not has_answers:
        return None
    tab.evaluate(PREPARE, only)
    return PdfReader(io.BytesIO(tab.pdf(**SHEET, print_background=True, tagged=True)))


def print_markup(browser: Browser, body: str) -> PdfReader:
    """Print a page that is made here."""
    tab = browser.new_page()
    tab.set_content(
        f"<html lang=en><style>body {{ font: 11pt sans-serif }} td:last-child {{ text-align: right }} "
        f"table {{ width: 100% }} h1 {{ margin-top: 0 }}</style><body>{body}</body></html>"
    )
    printed = PdfReader(io.BytesIO(tab.pdf(**SHEET, tagged=True)))
    tab.close()
    return printed


def print_book(browser: Browser, pages: list[str]) -> Iterator[Sheet]:
    """Print every page's text in the order of the table of contents, then the answers of those that have any."""
    context = browser.new_context(viewport={"width": 900, "height": 1200}, color_scheme="light")
    tab = context.new_page()
    tab.emulate_media(media="print")
    for only, level in (("text", 1), ("answers", 2)):
        for page in pages:
            printed = print_page(tab, (HTML / f"{page}.html").as_uri(), only)
            if printed is not None:
                title = tab.locator("article h1").first.inner_text().removesuffix("#").strip()
                yield Sheet(title=title, page=page, level=level, printed=printed)
                print(f"  {title}: {len(printed.pages)} sheets", flush=True)
    context.close()


def contents(sheets: list[Sheet], first: int) -> str:
    """The table of contents, with the sheet on which each part begins."""
    rows, at, in_answers = [], first, False
    opening = captions()
    for sheet in sheets:
        if sheet.level == 1 and sheet.page in opening:
            rows.append(f"<tr><th colspan=2 align=left>{html.escape(opening[sheet.page])}</th></tr>")
        if sheet.level == 2 and not in_answers:
            in_answers = True
            rows.append("<tr><th colspan=2 align=left>Hints and solutions</th></tr>")
        rows.append(f"<tr><td>{html.escape(sheet.title)}</td><td>{at}</td></tr>")
        at += len(sheet.printed.pages)
    return f"<h1>Contents</h1><table>{''.join(rows)}</table>"


def numbers(browser: Browser, count: int) -> PdfReader:
    """Empty sheets with nothing but their numbers."""
    tab = browser.new_page()
    divs = "".join(f"<div>{number}</div>" for number in range(1, count + 1))
    tab.set_content(
        "<style>@page { size: A4; margin: 0 } body { margin: 0 } div { height: 297mm; box-sizing: border-box; "
        "padding-top: 284mm; text-align: center; font: 9pt sans-serif; break-after: page }</style>" + divs
    )
    printed = PdfReader(io.BytesIO(tab.pdf(prefer_css_page_size=True)))
    tab.close()
    return printed


def lead_within(writer: PdfWriter, starts: dict[str, int]) -> int:
    """Turn links to pages of the built book on this disk into links to their first sheets; return how many."""
    turned = 0
    for number, sheet in enumerate(writer.pages):
        for annotation in list(sheet.annotations or ()):
            action = annotation.get_object().get("/A", {})
            address = str(action.get_object().get("/URI", "")) if action else ""
            if not address.startswith("file:"):
                continue
            path = Path(unquote(urlsplit(address).path))
            page = path.relative_to(HTML).with_suffix("").as_posix() if path.is_relative_to(HTML) else ""
            sheet.annotations.remove(annotation)
            if page in starts:
                rect = [float(value) for value in annotation.get_object()["/Rect"]]
                writer.add_annotation(number, Link(rect=rect, target_page_index=starts[page], fit=Fit.fit()))
                turned += 1
    return turned


def join(browser: Browser, sheets: list[Sheet]) -> PdfWriter:
    """Put title, contents and all parts together, with outline, numbers and links."""
    from ttutor import __version__

    title = print_markup(
        browser,
        '<div style="margin-top: 80mm"><h1 style="font-size: 30pt">The Transformer, built and tested</h1>'
        f"<p>ttutor {__version__}. Text: CC BY 4.0. Code: MIT.</p></div>",
    )
    length = len(print_markup(browser, contents(sheets, 1)).pages)
    front = len(title.pages) + length
    listed = print_markup(browser, contents(sheets, front + 1))
    writer, starts, parent = PdfWriter(), {}, None
    writer.append(title, import_outline=False)
    writer.append(listed, import_outline=False)
    writer.add_outline_item(title="Contents", page_number=len(title.pages))
    for sheet in sheets:
        start = len(writer.pages)
        if sheet.level == 1:
            starts[sheet.page] = start
        writer.append(sheet.printed, import_outline=False)
        if sheet.level == 2 and parent is None:
            parent = writer.add_outline_item(title="Hints and solutions", page_number=start)
        writer.add_outline_item(title=sheet.title, page_number=start, parent=parent)
    lead_within(writer, starts)
    for sheet, number in zip(writer.pages, numbers(browser, len(writer.pages)).pages, strict=True):
        sheet.merge_page(number)
    writer.add_metadata({"/Title": "ttutor: the Transformer, built and tested", "/Author": "the ttutor authors"})
    return writer


def show_link() -> None:
    """Turn the comment that the sidebar's template has left into a link, on every built page."""
    for path in HTML.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        shown = PLACE.sub(r'<p class="pdf-link"><a href="\1">The whole book as a PDF</a></p>', text)
        if shown != text:
            path.write_text(shown, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Print the built book to one file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="only these pages, such as book/02-attention")
    options = parser.parse_args(arguments)
    pages = options.pages or [page for page in read_toc() if page not in LEFT_OUT]
    if absent := [page for page in pages if not (HTML / f"{page}.html").exists()]:
        print(f"Not in the built book: {', '.join(absent)}. Run `make book` first.", file=sys.stderr)
        return 1
    with open_browser() as browser:
        writer = join(browser, list(print_book(browser, pages)))
    writer.compress_identical_objects()
    writer.write(HTML / NAME)
    show_link()
    size = (HTML / NAME).stat().st_size / 1e6
    print(f"{len(writer.pages)} sheets, {size:.1f} MB: {(HTML / NAME).as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
