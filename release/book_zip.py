"""The built book as one file to hand out: ``python release/book_zip.py``, after ``make book`` (and ``make pdf``).

``_build/ttutor-book-VERSION.zip`` unpacks to one folder, in which ``START.html`` opens the first page and
``README.txt`` says so. Nothing in it needs a network or a server. The PDF is in it where the pages lead to one. Two
archives of one build are the same to the byte: names are sorted, and no file keeps its own time.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # run as a script, Python looks beside the script only
    sys.path.insert(0, str(ROOT))

import ttutor  # noqa: E402
from book._tools.address import address, pages  # noqa: E402

HTML = ROOT / "_build" / "html"
FIRST = "book/intro.html"
PDF = "ttutor.pdf"
LICENCES = ("LICENSE", "LICENSE-book")
LEFT_OUT = (".buildinfo", ".doctrees", ".nojekyll")
EARLIEST = (1980, 1, 1, 0, 0, 0)  # a zip archive knows no time before it
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


def has_pdf(html: Path) -> bool:
    """Whether the book has a PDF and its pages lead to it; one that an earlier build has left does not count."""
    return (html / PDF).is_file() and f'href="../{PDF}"' in (html / FIRST).read_text(encoding="utf-8")


def readme(html: Path) -> str:
    """What the unpacked folder says about itself."""
    repository = address()
    return README.format(
        version=ttutor.__version__,
        pdf=f"The whole book on paper: html/{PDF}\n" if has_pdf(html) else "",
        address=f"The newest version: {pages(repository)}\n" if repository else "",
    )


def members(html: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file of the archive, in order."""
    yield "README.txt", readme(html).encode("utf-8")
    yield "START.html", START.encode("utf-8")
    yield from ((name, (ROOT / name).read_bytes()) for name in LICENCES)
    for path in sorted(html.rglob("*"), key=lambda path: path.relative_to(html).as_posix()):
        name = path.relative_to(html)
        if not path.is_file() or name.parts[0] in LEFT_OUT or (name.as_posix() == PDF and not has_pdf(html)):
            continue
        yield f"html/{name.as_posix()}", path.read_bytes()


def write(html: Path, target: Path) -> Path:
    """Write the archive of a built book, whole or not at all, and return where it is.

    Raises:
        FileNotFoundError: there is no built book in the folder.
    """
    if not (html / FIRST).is_file():
        raise FileNotFoundError(f"no built book in {html}: there is no {FIRST} in it; run `make book` first")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members(html):
            entry = zipfile.ZipInfo(f"{target.stem}/{name}", EARLIEST)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return unfinished.replace(target)


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
    with zipfile.ZipFile(target) as archive:
        count, unpacked = len(archive.infolist()), sum(entry.file_size for entry in archive.infolist())
    with_pdf = "with the PDF" if has_pdf(options.html) else "without a PDF (`make pdf zip` puts it in)"
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, {with_pdf}")
    print(f"{count} files, {unpacked / 1e6:.1f} MB unpacked; START.html opens the book")
    return 0


if __name__ == "__main__":
    sys.exit(main())
