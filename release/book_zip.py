"""The built book as one file to hand out: ``python -m release.book_zip``, after ``make book`` (and ``make pdf``).

``_build/ttutor-book-VERSION.zip`` unpacks to one folder, in which ``START.html`` opens the first page and
``README.txt`` says so. Nothing in it needs a network or a server.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import ttutor
from book._tools.address import address, pages

ROOT = Path(__file__).resolve().parents[1]

HTML = ROOT / "_build" / "html"
FIRST = "book/intro.html"
PDF = "ttutor.pdf"
LICENCES = ("LICENSE", "LICENSE-book")
LEFT_OUT = shutil.ignore_patterns(".buildinfo", ".doctrees", ".nojekyll")
START = f"""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=html/{FIRST}">
<title>ttutor: the Transformer, built and tested</title>
<p><a href="html/{FIRST}">Open the book</a></p>
</html>
"""
README = """\
ttutor {version}: the Transformer, built and tested

Open START.html in a browser (a double click will do). Everything is in this folder: no network, no server and no
installation is needed, and the interactive figures work as they are.
{pdf}
To run the chapters and change them you need Python; html/book/setup.html says how.
{address}
Text: CC BY 4.0 (LICENSE-book). Code: MIT (LICENSE).
"""


def readme(html: Path) -> str:
    """What the unpacked folder says about itself."""
    repository = address()
    return README.format(
        version=ttutor.__version__,
        pdf=f"The whole book on paper: html/{PDF}\n" if (html / PDF).is_file() else "",
        address=f"The newest version: {pages(repository)}\n" if repository else "",
    )


def write(html: Path, target: Path) -> Path:
    """Write the archive of a built book and return where it is."""
    if not (html / FIRST).is_file():
        raise FileNotFoundError(f"no built book in {html}: there is no {FIRST} in it; run `make book` first")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / target.stem
        shutil.copytree(html, folder / "html", ignore=LEFT_OUT)
        (folder / "README.txt").write_text(readme(html), encoding="utf-8")
        (folder / "START.html").write_text(START, encoding="utf-8")
        for name in LICENCES:
            shutil.copy(ROOT / name, folder)
        return Path(shutil.make_archive(str(target.with_suffix("")), "zip", scratch))


def main(arguments: list[str] | None = None) -> int:
    """Write the archive beside the built book, and say what it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, default=HTML, help="the built book (default _build/html)")
    options = parser.parse_args(arguments)
    try:
        target = write(options.html, options.html.parent / f"ttutor-book-{ttutor.__version__}.zip")
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    with_pdf = "with the PDF" if (options.html / PDF).is_file() else "without a PDF (`make pdf zip` puts it in)"
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {with_pdf}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
