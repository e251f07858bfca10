"""Build the book: make what is generated, run Jupyter Book with warnings as errors, see that no page is missing.

``python book/_tools/build.py`` from anywhere; the book lies in ``_build/html`` afterwards and opens from disk. What
changed is built, with the same result as from nothing; ``--all`` builds everything anew. With ``--links`` the links to
other sites are tried instead (that needs the network), and those that fail are listed in ``_build/links/broken.txt``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run as a script, Python looks beside the script only
    sys.path.insert(0, str(ROOT))

from book._tools import colours, fonts, logo  # noqa: E402
from book._tools.address import address  # noqa: E402
from book._tools.changed_pages import digest  # noqa: E402
from book._tools.page_facts import built_from, commit  # noqa: E402

from ttutor.widgets import static as explorers  # noqa: E402

GENERATED = ROOT / "book" / "_generated"
HTML = ROOT / "_build" / "html"
TOOLS = ROOT / "book" / "_tools"
STATIC = (ROOT / "book" / "_static", ROOT / "book" / "_templates")
STATE = ROOT / "_build" / "built-from"
LINKS = ROOT / "_build" / "links"
MATHJAX = "tex-svg-full.js"
PDF_NAME = "ttutor.pdf"
COMMIT_PLACE = re.compile("<!-- commit -->[^\n]*?<!-- /commit -->")
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
    """Write what pages need and nobody edits: MathJax in one file, the explorers' script, typefaces, colours, icons."""
    static, extra = GENERATED / "static", GENERATED / "extra"
    static.mkdir(parents=True, exist_ok=True)
    (extra / "mathjax").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(find_mathjax(), extra / "mathjax" / MATHJAX)
    explorers.write_script(static / "explorers.js", short_javascript)
    fonts.write(static / "fonts.css", licence=static / "fonts-licence.txt")
    colours.write(static / "colours.css")
    logo.write(static, extra)


def short_javascript(source: str) -> str:
    """The same program with fewer characters, where there is a package for it on this kind of machine."""
    try:
        import minify
    except ModuleNotFoundError:
        return source
    return minify.string("application/javascript", source)


def missing_sources(pages: list[str]) -> list[str]:
    """Return the pages of the table of contents that no file holds."""
    return [page for page in pages if not any((ROOT / f"{page}{ending}").exists() for ending in (".md", ".ipynb"))]


def run_jupyter_book(*options: str) -> int:
    """Run Jupyter Book over the whole book, quietly, and return its exit status."""
    jupyter_book = [sys.executable, str(TOOLS / "jupyter_book_faster.py")]
    command = [*jupyter_book, "build", ".", "-q", *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def basis() -> str:
    """Return what stands for all that every page depends on: tools, settings, style sheets, scripts, packages."""
    folders = (TOOLS, *STATIC, GENERATED)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    single = ("_config.yml", "_toc.yml", "book/references.bib", "book/verified.json")
    files += [ROOT / name for name in single if (ROOT / name).exists()]
    packages = sorted({f"{found.name} {found.version}" for found in importlib.metadata.distributions()})
    surroundings = [os.environ.get(name, "") for name in ("GITHUB_REPOSITORY", "GITHUB_REF_NAME")]
    surroundings += [str(commit(ROOT))] if address() else []  # links to it, and the form for errors, name it
    return hashlib.sha256("\n".join([digest(files), sys.version, *packages, *surroundings]).encode()).hexdigest()


def build(everything: bool = False) -> int:
    """Build the pages that changed, or all where that is asked for or something has changed that all depend on.

    A warning is an error. Only a build without any is remembered: after another, all pages are read again, or a warning
    about a page that has not changed since would be seen once and then no more.
    """
    now = basis()
    known = STATE.read_text(encoding="utf-8") if STATE.exists() and (HTML / "index.html").exists() else ""
    STATE.unlink(missing_ok=True)
    if everything or known != now:
        empty()
    status = run_jupyter_book("-W", "--keep-going", *(("--all",) if everything or known != now else ()))
    if status == 0:
        STATE.write_text(now, encoding="utf-8")
    return status


def empty() -> None:
    """Remove the built pages, so that none stays whose source is gone; the PDF, which takes minutes, stays."""
    for path in HTML.iterdir() if HTML.is_dir() else ():
        if path.name != PDF_NAME:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def show_what_changes() -> None:
    """Bring all pages up to date in what may change while they do not: the commit, and whether there is a PDF.

    The link to the PDF goes where the sidebar's template has left a place for it.
    """
    pdf = r'<p class="pdf-link"><a href="\1">The whole book as a PDF</a></p>' if (HTML / PDF_NAME).exists() else ""
    now = f"<!-- commit -->{built_from(commit(ROOT))}<!-- /commit -->"
    for path in HTML.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        shown = COMMIT_PLACE.sub(now, PDF_PLACE.sub(rf"<!-- pdf-link \1 -->{pdf}", text))
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
    show_what_changes()
    if absent := [page for page in pages if not (HTML / f"{page}.html").exists()]:
        print(f"Pages of the table of contents are missing from the built book: {', '.join(absent)}", file=sys.stderr)
        return 1
    print(f"\nThe book is built: {len(pages)} pages. Open {(HTML / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
