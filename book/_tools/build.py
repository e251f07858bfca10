"""Build the book: make what is generated, run Jupyter Book with warnings as errors, see that no page is missing.

``python -m book._tools.build``; the book lies in ``_build/html`` afterwards and opens from disk. Pages whose sources
changed are built; ``--all`` builds every page anew, which style sheets, settings and the tools themselves ask for. With
``--links`` the links to other sites are tried instead (that needs the network), and those that fail are listed in
``_build/links/broken.txt``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from ttutor.claims import BADGES
from ttutor.widgets import static as explorers
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

ROOT = Path(__file__).resolve().parents[2]

GENERATED = ROOT / "book" / "_generated"
HTML = ROOT / "_build" / "html"
DOCTREES = ROOT / "_build" / ".doctrees"
LINKS = ROOT / "_build" / "links"
MATHJAX = "tex-svg-full.js"
IN_PROCESSES = """
import os
from functools import partial
import jupyter_book.sphinx as sphinx
sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs=min(8, os.cpu_count()))
from jupyter_book.cli.main import main
main()
"""
"""Jupyter Book can build in several processes, but its command line has no option for it."""

PDF_NAME = "ttutor.pdf"
PDF_PLACE = re.compile(r'<!-- pdf-link (\S+) -->(?:<p class="pdf-link">.*?</p>)?')


def toc_pages(node: object) -> Iterator[str]:
    """Yield every page the table of contents names, in order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                yield value
            else:
                yield from toc_pages(value)
    elif isinstance(node, list):
        for entry in node:
            yield from toc_pages(entry)


def read_toc() -> list[str]:
    """Return the pages of ``_toc.yml``."""
    return list(toc_pages(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))


def find_mathjax() -> Path:
    """Return the one-file MathJax of the installed sphinx-mathjax-offline."""
    for entry in importlib.metadata.files("sphinx-mathjax-offline") or []:
        if entry.name == MATHJAX:
            return Path(entry.locate())
    raise FileNotFoundError(f"no {MATHJAX} in sphinx-mathjax-offline: pip install -c constraints.txt -e .[book]")


def generate() -> None:
    """Write what pages need and nobody edits: MathJax in one file, the explorers' script, the colours."""
    static, mathjax = GENERATED / "static", GENERATED / "extra" / "mathjax"
    static.mkdir(parents=True, exist_ok=True)
    mathjax.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(find_mathjax(), mathjax / MATHJAX)
    explorers.write_script(static / "explorers.js")
    explorers.write_weights(static)
    (static / "colours.css").write_text(colours(), encoding="utf-8")


def colours() -> str:
    """Return the colours of figures and explorers as CSS custom properties, in both modes; paper is always light.

    ``--tt-query`` fills a shape, ``--tt-query-line`` outlines it where the fill alone is too pale; ``--tt-page``,
    ``--tt-text`` and their like are the page's own; ``--tt-right`` and the other verdicts stand behind white text.
    """
    light, dark = (
        "".join(f"  --tt-{name.replace(' ', '-')}: {colour};\n" for name, colour in properties.items())
        for properties in (
            PAGE | PALETTE | {f"{name}-line": colour for name, colour in OUTLINES.items()} | BADGES,
            PAGE_DARK | PALETTE_DARK | {f"{name}-line": colour for name, colour in OUTLINES_DARK.items()} | BADGES,
        )
    )
    return f'html {{\n{light}}}\n@media screen {{\nhtml[data-theme="dark"] {{\n{dark}}}\n}}\n'


def missing_sources(pages: list[str]) -> list[str]:
    """Return the pages of the table of contents that no file holds."""
    return [page for page in pages if not any((ROOT / f"{page}{ending}").exists() for ending in (".md", ".ipynb"))]


def run_jupyter_book(*options: str) -> int:
    """Run Jupyter Book over the whole book and return its exit status."""
    return subprocess.run([sys.executable, "-c", IN_PROCESSES, "build", ".", *options], cwd=ROOT).returncode


def build(everything: bool = False) -> int:
    """Build the pages whose sources changed, as Sphinx sees it, or all. A warning is an error.

    After a warning all pages are read again the next time: of a page that has not changed, it would not be repeated.
    """
    if everything:
        empty()
    status = run_jupyter_book("-W", "--keep-going", *(("--all",) if everything else ()))
    if status:
        shutil.rmtree(DOCTREES, ignore_errors=True)
    return status


def empty() -> None:
    """Remove the built pages, so that none stays whose source is gone; the PDF, which takes minutes, stays."""
    for path in HTML.iterdir() if HTML.is_dir() else ():
        if path.name != PDF_NAME:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def show_pdf_link() -> None:
    """Where there is a PDF, link to it where the sidebar's template has left a place for it."""
    link = r'<p class="pdf-link"><a href="\1">The whole book as a PDF</a></p>' if (HTML / PDF_NAME).exists() else ""
    for path in HTML.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        shown = PDF_PLACE.sub(rf"<!-- pdf-link \1 -->{link}", text)
        if shown != text:
            path.write_text(shown, encoding="utf-8")


def check_links() -> int:
    """Try every link to another site; write those that lead nowhere to a file, and return 1 if there are any."""
    shutil.rmtree(LINKS, ignore_errors=True)
    run_jupyter_book("--all", "--builder", "linkcheck", "--path-output", str(LINKS.relative_to(ROOT)))
    lines = (LINKS / "_build" / "html" / "output.txt").read_text(encoding="utf-8").splitlines()
    broken = [line for line in lines if "[broken]" in line or "[timeout]" in line]
    (LINKS / "broken.txt").write_text("\n".join(broken), encoding="utf-8")
    print("\n".join(broken) or "Every link leads somewhere.")
    return 1 if broken else 0


def main(arguments: list[str] | None = None) -> int:
    """Build and check; return 0 only for a whole book without a warning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", action="store_true", help="try the links to other sites, and build nothing")
    parser.add_argument("--all", action="store_true", help="build every page anew, also those that did not change")
    options = parser.parse_args(arguments)
    pages = read_toc()
    if absent := missing_sources(pages):
        print(f"The table of contents names pages that do not exist: {', '.join(absent)}", file=sys.stderr)
        return 1
    generate()
    if options.links:
        return check_links()
    if status := build(options.all):
        print("The book was not built, or with warnings; they are listed above and count as errors.", file=sys.stderr)
        return status
    show_pdf_link()
    if absent := [page for page in pages if not (HTML / f"{page}.html").exists()]:
        print(f"Pages of the table of contents are missing from the built book: {', '.join(absent)}", file=sys.stderr)
        return 1
    print(f"\nThe book is built: {len(pages)} pages. Open {(HTML / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
