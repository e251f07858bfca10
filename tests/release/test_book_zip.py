"""The book as one file: what is in it, and that it opens."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

import ttutor
from release.book_zip import FIRST, main, write

NAME = f"ttutor-book-{ttutor.__version__}"


@pytest.fixture
def html(tmp_path: Path) -> Path:
    """A small built book, with what a build leaves behind."""
    folder = tmp_path / "_build" / "html"
    pages = {
        "index.html": f'<meta http-equiv="Refresh" content="0; url={FIRST}">',
        FIRST: "<p>The first page.</p>",
        "book/02-attention.html": "<p>Attention.</p>",
        "_static/ttutor.css": "p { color: red }" * 1000,
        ".buildinfo": "config: 1",
        ".doctrees/intro.doctree": "pickled",
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def unpack(archive: Path, folder: Path) -> Path:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    (top,) = folder.iterdir()
    return top


def test_it_unpacks_to_one_folder_that_says_where_to_begin(html: Path, tmp_path: Path) -> None:
    top = unpack(write(html, tmp_path / f"{NAME}.zip"), tmp_path / "unpacked")
    assert top.name == NAME
    assert sorted(path.name for path in top.iterdir()) == [
        "LICENSE",
        "LICENSE-book",
        "README.txt",
        "START.html",
        "html",
    ]
    assert "Open START.html in a browser" in (top / "README.txt").read_text(encoding="utf-8")
    targets = re.findall(r'(?:url=|href=")([^"]+)"', (top / "START.html").read_text(encoding="utf-8"))
    assert targets == [f"html/{FIRST}"] * 2
    assert (top / targets[0]).read_text(encoding="utf-8") == "<p>The first page.</p>"


def test_every_page_is_in_it_and_nothing_that_only_the_build_needs(html: Path, tmp_path: Path) -> None:
    top = unpack(write(html, tmp_path / f"{NAME}.zip"), tmp_path / "unpacked")
    unpacked = {path.relative_to(top / "html").as_posix() for path in (top / "html").rglob("*") if path.is_file()}
    assert unpacked == {"index.html", FIRST, "book/02-attention.html", "_static/ttutor.css"}


def test_the_pdf_is_in_it_where_there_is_one(html: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    (html / "ttutor.pdf").write_bytes(b"%PDF-1.7")
    assert main(["--html", str(html)]) == 0
    target = html.parent / f"{NAME}.zip"
    assert f"{target}: 0.0 MB, with the PDF" in capsys.readouterr().out
    top = unpack(target, tmp_path / "unpacked")
    assert (top / "html" / "ttutor.pdf").read_bytes() == b"%PDF-1.7"
    assert "The whole book on paper: html/ttutor.pdf" in (top / "README.txt").read_text(encoding="utf-8")


def test_without_a_built_book_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--html", str(tmp_path / "html")]) == 1
    assert "run `make book` first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
