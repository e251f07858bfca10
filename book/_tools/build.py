"""Build the book: make what is generated, run Jupyter Book with warnings as errors, see that no page is missing.

``python book/_tools/build.py`` from anywhere; the book lies in ``_build/html`` afterwards and opens from disk. With
``--links`` the links to other sites are tried instead (that needs the network), and those that fail are listed in
``_build/links/broken.txt``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
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

from ttutor.widgets import static as explorers  # noqa: E402

GENERATED = ROOT / "book" / "_generated"
HTML = ROOT / "_build" / "html"
LINKS = ROOT / "_build" / "links"
MATHJAX = "tex-svg-full.js"


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
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command = [*jupyter_book, "build", ".", "--all", "-q", *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def build() -> int:
    """Build all pages anew, since a changed style sheet alone would not be copied; a warning is an error."""
    return run_jupyter_book("-W", "--keep-going")


def check_links() -> int:
    """Try every link to another site; write those that lead nowhere to a file, and return 1 if there are any."""
    shutil.rmtree(LINKS, ignore_errors=True)
    run_jupyter_book("--builder", "linkcheck", "--path-output", str(LINKS.relative_to(ROOT)))
    lines = (LINKS / "_build" / "html" / "output.txt").read_text(encoding="utf-8").splitlines()
    broken = [line for line in lines if "[broken]" in line or "[timeout]" in line]
    (LINKS / "broken.txt").write_text("\n".join(broken), encoding="utf-8")
    print("\n".join(broken) or "Every link leads somewhere.")
    return 1 if broken else 0


def main(arguments: list[str] | None = None) -> int:
    """Build and check; return 0 only for a whole book without a warning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", action="store_true", help="try the links to other sites, and build nothing")
    options = parser.parse_args(arguments)
    pages = read_toc()
    if absent := missing_sources(pages):
        print(f"The table of contents names pages that do not exist: {', '.join(absent)}", file=sys.stderr)
        return 1
    generate()
    if options.links:
        return check_links()
    if status := build():
        print("The book was not built, or with warnings; they are listed above and count as errors.", file=sys.stderr)
        return status
    if absent := [page for page in pages if not (HTML / f"{page}.html").exists()]:
        print(f"Pages of the table of contents are missing from the built book: {', '.join(absent)}", file=sys.stderr)
        return 1
    print(f"\nThe book is built: {len(pages)} pages. Open {(HTML / 'index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
