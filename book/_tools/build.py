"""Build the book: make what is generated, and run Sphinx with warnings as errors.

``python -m book._tools.build``; the book lies in ``_build/html`` afterwards and opens from disk. Pages whose sources
changed are built; ``--all`` builds every page anew, which style sheets, settings and the tools themselves ask for.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ttutor.claims import BADGES
from ttutor.widgets import static as explorers
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

ROOT = Path(__file__).resolve().parents[2]

GENERATED = ROOT / "book" / "_generated"
HTML = ROOT / "_build" / "html"
DOCTREES = ROOT / "_build" / "doctrees"
CONF = ROOT / "conf.py"
MATHJAX = "tex-svg-full.js"
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


@cache
def table_of_contents() -> dict[str, Any]:
    """Return what ``_toc.yml`` holds."""
    return yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))


def read_toc() -> list[str]:
    """Return the pages of ``_toc.yml``."""
    return list(toc_pages(table_of_contents()))


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


def configure() -> None:
    """Let Jupyter Book write Sphinx's ``conf.py`` from ``_config.yml``, where that is newer."""
    if not CONF.exists() or CONF.stat().st_mtime < (ROOT / "_config.yml").stat().st_mtime:
        jupyter_book = Path(sys.executable).with_name("jupyter-book")
        subprocess.run([str(jupyter_book), "config", "sphinx", "."], cwd=ROOT, check=True)


def is_stale() -> bool:
    """Whether the built pages carry other scripts or colours than were generated: Sphinx looks at pages alone."""
    generated = [path for path in (GENERATED / "static").iterdir() if path.is_file()]
    built = [HTML / "_static" / path.name for path in generated]
    return any(two.exists() and one.read_bytes() != two.read_bytes() for one, two in zip(generated, built, strict=True))


def build(everything: bool = False) -> int:
    """Build the pages whose sources changed, as Sphinx sees it, or all. A warning is an error, also a page that lacks.

    After a warning all pages are read again the next time: of a page that has not changed, it would not be repeated.
    """
    configure()
    everything = everything or is_stale()
    if everything:
        shutil.rmtree(HTML, ignore_errors=True)  # so that no page stays whose source is gone
    options = ("-W", "--keep-going", "-j", "auto", *(("-E",) if everything else ()))
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-d", str(DOCTREES), *options, ".", str(HTML)]
    status = subprocess.run(command, cwd=ROOT).returncode
    if status:
        shutil.rmtree(DOCTREES, ignore_errors=True)
    return status


def show_pdf_link() -> None:
    """Where there is a PDF, link to it where the sidebar's template has left a place for it."""
    link = r'<p class="pdf-link"><a href="\1">The whole book as a PDF</a></p>' if (HTML / PDF_NAME).exists() else ""
    for path in HTML.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        shown = PDF_PLACE.sub(rf"<!-- pdf-link \1 -->{link}", text)
        if shown != text:
            path.write_text(shown, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Build; return 0 only for a whole book without a warning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="build every page anew, also those that did not change")
    options = parser.parse_args(arguments)
    generate()
    if status := build(options.all):
        print("The book was not built, or with warnings; they are listed above and count as errors.", file=sys.stderr)
        return status
    show_pdf_link()
    print(f"\nThe book is built: {len(read_toc())} pages. Open {(HTML / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
