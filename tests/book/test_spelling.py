"""The words of the book, the package and the tests are spelt right, and the book's prose is British."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import codespell_lib
import pytest

from book._tools.notebook_io import notebooks, read
from tests.book.prose import paragraphs

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(codespell_lib.__file__).parent / "data"
TEXTS = sorted([*(ROOT / "book").glob("*.md"), *ROOT.glob("*.md")])
# Words whose American spelling is British too, in another sense or as the name of something.
BOTH = frozenset(
    "analog artifact artifacts biased check checks disk disks draft drafts inquiry license meter practice practices "
    "program programs story stories tire tires".split()
)


def codespell(*paths: Path) -> str:
    """Return what codespell has to say of these files, by the settings in ``pyproject.toml``."""
    command = [sys.executable, "-m", "codespell_lib", "--toml", str(ROOT / "pyproject.toml"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout


def sources(path: Path) -> str:
    """What a page says: a notebook's cells without their outputs, or the file as it is."""
    text = path.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in read(text).cells) if path.suffix == ".ipynb" else text


@cache
def american() -> dict[str, str]:
    """American spellings, each with the British one."""
    lines = (DATA / "dictionary_en-GB_to_en-US.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("->") for line in lines if "->" in line]
    british = {pair[0].strip() for pair in pairs}
    return {
        word: pair[0].strip()
        for pair in pairs
        for word in re.findall(r"[a-z]+", pair[1].lower())
        if word not in british | BOTH and not re.search(r"iz(e|es|ed|ing|er|ers|ation|ations|able)$", word)
    }


def test_a_misspelt_word_is_found(tmp_path: Path) -> None:
    wrong = "sep" + "erate"
    (tmp_path / "page.md").write_text(f"Queries are {wrong} from keys.", encoding="utf-8")
    assert f"{wrong} ==> separate" in codespell(tmp_path / "page.md")


@pytest.mark.parametrize("room", ["ttutor", "tests", "book/_tools", "experiments", "benchmarks"])
def test_words_in_the_code_are_spelt_right(room: str) -> None:
    assert codespell(*sorted((ROOT / room).rglob("*.py"))) == ""


def test_words_on_the_pages_are_spelt_right(tmp_path: Path) -> None:
    for path in [*TEXTS, *notebooks()]:
        (tmp_path / f"{path.stem}.md").write_text(sources(path), encoding="utf-8")
    assert codespell(*sorted(tmp_path.glob("*.md"))) == ""


@pytest.mark.parametrize("path", [*TEXTS, *notebooks()], ids=lambda path: path.name)
def test_prose_is_british(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    cells = read(text).cells if path.suffix == ".ipynb" else []
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"] if cells else [text]
    words = (word for source in texts for part in paragraphs(source) for word in re.findall(r"\b[a-z]+\b", part))
    assert {word: american()[word] for word in words if word in american()} == {}
