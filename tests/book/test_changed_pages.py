"""A small book, built from nothing and after edits: building what changed gives what building everything gives."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from book._tools import build

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "book/intro.md": "# Beginning\n\nSee {doc}`01-one` and [the second](02-two.md#a-place).\n",
    "book/01-one.md": "# The first\n\nA **mask** and `double_it`, after {cite:t}`ada`.\n",
    "book/02-two.md": "# The second\n\n## A place\n\nTwice, of {eq}`two`.\n\n$$x = 2$$ (two)\n",
    "book/glossary.md": "# Words\n\n```{glossary}\nmask\n    What hides.\n```\n",
    "book/api.md": "# Reference\n\n```{eval-rst}\n.. automodule:: ttutor.shapes\n   :members:\n```\n",
    "book/bibliography.md": "# Works\n\n```{bibliography}\n:filter: cited\n```\n",
    "book/references.bib": "@book{ada, author={Ada Lovelace}, title={Notes}, publisher={Taylor}, year={1843}}\n"
    "@book{bob, author={Bob Brown}, title={More}, publisher={Taylor}, year={1850}}\n",
    "book/_static/ttutor.css": "p { color: black }\n",
    "book/search_words.toml": '[words]\n"book/02-two#a-place" = ["spot"]\n[same]\n',
    "ttutor/__init__.py": "",
    "ttutor/shapes.py": 'def double_it(n: int) -> int:\n    """Twice the number."""\n    return 2 * n\n',
}
OURS = ("claims_ledger", "first_page", "taught_in", "page_facts", "launch")
"""Extensions that need the real package and its repository."""
FOLDERS = ("_templates", "_search")
"""Copied as they are."""


def make_book(root: Path) -> None:
    """Six pages with the real settings, less what needs the real chapters."""
    for name, text in PAGES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for folder in FOLDERS:
        shutil.copytree(ROOT / "book" / folder, root / "book" / folder)
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    settings["html"]["favicon"] = ""
    sphinx = settings["sphinx"]
    sphinx["config"]["html_js_files"] = []
    sphinx["config"]["html_css_files"] = ["ttutor.css"]
    sphinx["config"]["html_extra_path"] = []
    sphinx["config"]["html_static_path"] = ["book/_static"]
    sphinx["config"]["extensions"] = [name for name in sphinx["config"]["extensions"] if name not in OURS]
    sphinx["local_extensions"] = {
        name: str(ROOT / "book" / "_tools") for name in sphinx["local_extensions"] if name not in OURS
    }
    (root / "_config.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    chapters = [{"file": f"book/{page}"} for page in ("01-one", "02-two", "glossary", "api", "bibliography")]
    toc = {
        "format": "jb-book",
        "root": "book/intro",
        "parts": [{"caption": "All", "numbered": True, "chapters": chapters}],
    }
    (root / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False), encoding="utf-8")


def lead_build_to(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Let `build.build` build the book of a folder, where Python finds its package before the real one."""
    patch.setenv("PYTHONPATH", os.pathsep.join((str(root), os.environ.get("PYTHONPATH", ""))))
    places = {"ROOT": "", "HTML": "_build/html", "STATE": "_build/built-from", "GENERATED": "book/_generated"}
    for name, place in places.items():
        patch.setattr(build, name, root / place)
    patch.setattr(build, "STATIC", (root / "book" / "_static", root / "book" / "_templates"))


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small book to be built."""
    make_book(tmp_path / "small")
    lead_build_to(tmp_path / "small", monkeypatch)
    return tmp_path / "small"


def built(root: Path) -> dict[str, bytes]:
    """Every file of the built book by its place."""
    html = root / "_build" / "html"
    return {path.relative_to(html).as_posix(): path.read_bytes() for path in html.rglob("*") if path.is_file()}


def times(root: Path) -> dict[str, int]:
    """When each page was written."""
    return {path.stem: path.stat().st_mtime_ns for path in (root / "_build" / "html" / "book").glob("*.html")}


def replace(root: Path, name: str, old: str, new: str) -> None:
    """Edit one file."""
    text = (root / name).read_text(encoding="utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new), encoding="utf-8")


EDITS: dict[str, Callable[[Path], None]] = {
    "a word": lambda root: replace(root, "book/01-one.md", "after", "behind"),
    "a docstring": lambda root: replace(root, "ttutor/shapes.py", "Twice the number", "The number doubled"),
    "a title": lambda root: replace(root, "book/02-two.md", "# The second", "# Number two"),
    "a bold word and a cited work": lambda root: replace(root, "book/02-two.md", "Twice", "A **mask** {cite:t}`bob`"),
    "a function": lambda root: replace(root, "ttutor/shapes.py", "double_it", "double_that"),
    "a style": lambda root: replace(root, "book/_static/ttutor.css", "black", "navy"),
    "a page less": lambda root: replace(root, "_toc.yml", "- file: book/02-two", ""),
}


def test_an_edit_changes_its_page_alone_and_the_result_is_that_of_building_everything(book: Path) -> None:
    assert build.build() == 0
    before, files = times(book), built(book)
    assert build.build() == 0
    assert times(book) == before
    assert built(book) == files

    EDITS["a word"](book)
    assert build.build() == 0
    after = times(book)
    assert {"02-two", "glossary", "api"} <= {page for page in before if before[page] == after[page]}
    assert before["01-one"] != after["01-one"]
    changed = built(book)
    assert build.build(everything=True) == 0
    assert differing(changed, built(book)) == []


@pytest.mark.soak
def test_after_edits_of_every_kind_the_result_is_that_of_building_everything(book: Path) -> None:
    replace(book, "book/intro.md", " and [the second](02-two.md#a-place)", "")  # that page goes away at the end
    assert build.build() == 0
    for what, edit in EDITS.items():
        edit(book)
        assert build.build() == 0, what
        changed = built(book)
        assert build.build(everything=True) == 0
        assert differing(changed, built(book)) == [], what
    assert "book/02-two.html" not in changed


def differing(first: dict[str, bytes], second: dict[str, bytes]) -> list[str]:
    """Name the files that are not the same."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


@pytest.mark.soak
def test_a_build_with_a_warning_is_not_taken_for_a_good_one(book: Path) -> None:
    replace(book, "book/01-one.md", "`ada`", "`nobody`")
    assert build.build() != 0
    assert build.build() != 0


@pytest.mark.soak
def test_pictures_that_no_page_shows_are_removed_and_the_pdf_is_kept(book: Path) -> None:
    (book / "book" / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    replace(book, "book/01-one.md", "A **mask**", "![a](a.svg) A **mask**")
    assert build.build() == 0
    (book / "_build/html" / build.PDF_NAME).write_bytes(b"printed")
    assert "_images/a.svg" in built(book)
    replace(book, "book/01-one.md", "![a](a.svg)", "")
    assert build.build() == 0
    assert "_images/a.svg" not in built(book)
    assert build.build(everything=True) == 0
    assert built(book)[build.PDF_NAME] == b"printed"


@pytest.fixture(scope="module")
def real_book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the real book, built."""
    root = tmp_path_factory.mktemp("real")
    for name in ("book", "ttutor", "_config.yml", "_toc.yml", "CHANGELOG.md", "CONTRIBUTING.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    with pytest.MonkeyPatch.context() as patch:
        lead_build_to(root, patch)
        build.generate()
        assert build.build(everything=True) == 0
        yield root


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("book/02-attention.ipynb", "What to take away", "What to keep"),
        ("book/intro.md", "Four ways to use it", "Ways to use it"),
        ("book/setup.md", "the", "this"),
        ("ttutor/masks.py", "Return", "Give back"),
        ("ttutor/claims.toml", "attention", "looking up"),
        ("book/_static/ttutor.css", "0.25rem", "0.3rem"),
    ],
)
def test_the_real_book_is_the_same_built_from_nothing(real_book: Path, name: str, old: str, new: str) -> None:
    replace(real_book, name, old, new)
    assert build.build() == 0
    changed = built(real_book)
    assert build.build(everything=True) == 0
    assert differing(changed, built(real_book)) == []
