"""What the chapters' sentences say is what their cells have computed, and what they name exists."""

from __future__ import annotations

import builtins
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from book._tools.notebook_io import chapters, notebooks, read
from tests.book.prose import CITED, code_names, measured_numbers, paragraphs, stored_numbers

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = tomllib.loads((Path(__file__).parent / "numbers_from_elsewhere.toml").read_text(encoding="utf-8"))
# The glossary names other words on purpose; the reference is made of names.
NAMES = ("glossary", "api-")
PAGES = [*notebooks(), *(p for p in sorted((ROOT / "book").glob("*.md")) if not p.stem.startswith(NAMES))]
BESIDE = 6  # cells before and after a text in which its numbers have to stand
ANYWHERE = ("takeaway", "task-", "exercise-", "words-")  # cells that look back at the whole chapter
WORD = r"[A-Za-z_]\w*"
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(.*\))?")


@cache
def chapter(path: Path) -> NotebookNode:
    return read(path.read_text(encoding="utf-8"))


def unsupported(notebook: NotebookNode) -> dict[str, list[str]]:
    """Return, by cell, the numbers of uncited sentences that no cell nearby has computed."""
    stored = [stored_numbers(cell) for cell in notebook.cells]
    found: dict[str, list[str]] = {}
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        near = stored if cell.id.startswith(ANYWHERE) else stored[max(0, index - BESIDE) : index + BESIDE + 1]
        beside = set().union(*near)
        for paragraph in paragraphs(cell.source):
            if CITED in paragraph:
                continue
            for number in measured_numbers(paragraph):
                if not any(map(number.agrees, beside)):
                    found.setdefault(cell.id, []).append(number.text)
    return found


def made(text: str, printed: str, distance: int = 0) -> NotebookNode:
    """A notebook of a cell that printed something and, some cells later, a text."""
    code = new_code_cell("fit()", outputs=[new_output("stream", text=printed)])
    between = [new_markdown_cell("Nothing.") for _ in range(distance)]
    return new_notebook(cells=[code, *between, new_markdown_cell(text, id="text")])


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("It learns .93 of them.", "accuracy 0.934"),
        ("It learns 93 % of them.", "accuracy 0.934"),
        ("It misses 7 % of them.", "accuracy 0.934"),
        ("It has 63 million parameters, or 63.1 million.", "63082496"),
        ("It has 63,082,496 parameters.", "63,082,496"),
        ("Section 3.2.1, equation 2, Python 3.11 and {cite:t}`vaswani2017` with 41.8 say so.", "nothing"),
    ],
)
def test_a_number_that_a_cell_printed_is_supported(text: str, printed: str) -> None:
    assert unsupported(made(text, printed)) == {}


@pytest.mark.parametrize(
    ("text", "number"),
    [("It learns .94 of them.", ".94"), ("It learns **0.935**.", "0.935"), ("It misses 8 %.", "8 %")],
)
def test_a_number_that_no_cell_printed_is_found(text: str, number: str) -> None:
    assert unsupported(made(text, "accuracy 0.934")) == {"text": [number]}


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_number_of_a_chapter_stands_beside_its_measurement(path: Path) -> None:
    """Or is cited in its paragraph, or stands in ``numbers_from_elsewhere.toml`` with where it comes from."""
    excused = ELSEWHERE.get(path.stem, {})
    missing = {}
    for cell, numbers in unsupported(chapter(path)).items():
        if left := [text for text in numbers if text not in excused.get(cell, {})]:
            missing[cell] = left
    assert missing == {}


def test_no_excuse_is_left_over() -> None:
    found = {path.stem: unsupported(chapter(path)) for path in chapters()}
    left_over = [
        (stem, cell, text)
        for stem, cells in ELSEWHERE.items()
        for cell, numbers in cells.items()
        for text in numbers
        if text not in found.get(stem, {}).get(cell, [])
    ]
    assert left_over == []


# ---------------------------------------------------------------- names of code


@cache
def package_words() -> set[str]:
    """Every word that stands in the code of the package, of the experiments and of the tools."""
    sources = (path for room in ("ttutor", "experiments", "book/_tools") for path in (ROOT / room).rglob("*.py"))
    return set(re.findall(WORD, " ".join(path.read_text(encoding="utf-8") for path in sources)))


def resolves(name: str) -> bool:
    """Return whether a dotted name leads somewhere in the package or in a library that it needs."""
    parts = name.split(".")
    parts = {"nn": ["torch", "nn"], "np": ["numpy"], "plt": ["matplotlib", "pyplot"]}.get(parts[0], parts[:1]) + parts[
        1:
    ]
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for attribute in parts[cut:]:
            try:
                found = getattr(found, attribute)
            except (AttributeError, ImportError):  # a room answers a name that is nearly one of its own
                return False
        return True
    return False


def unknown_names(notebook: NotebookNode) -> set[str]:
    """Return the names of code in a chapter's text that neither its cells nor the package nor a library have."""
    code = " ".join(
        cell.source + " ".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    here = package_words() | set(re.findall(WORD, code))
    unknown = set()
    for cell in notebook.cells:
        for name in code_names(cell.source) if cell.cell_type == "markdown" else ():
            plain = name.partition("(")[0]
            if not NAME.fullmatch(name) or hasattr(builtins, plain) or plain.endswith("_"):  # a beginning, such as my_
                continue
            if "." in plain and plain.split(".")[0] in ("ttutor", "torch", "nn", "np", "einops"):
                known = resolves(plain)
            else:
                known = all(part in here for part in plain.split("."))
            if not known:
                unknown.add(name)
    return unknown


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("`fit` and `ttutor.masks.causal_mask` and `nn.Linear(3, 4)`", set()),
        ("`fitt` and `ttutor.masks.casual_mask` and `nn.Lineal`", {"fitt", "ttutor.masks.casual_mask", "nn.Lineal"}),
        ("`a + b`, `ttutor train`, and {doc}`setup` are no names", set()),
    ],
)
def test_a_name_that_does_not_exist_is_found(text: str, unknown: set[str]) -> None:
    assert unknown_names(made(text, "")) == unknown


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_name_of_code_in_a_chapter_exists(path: Path) -> None:
    assert unknown_names(chapter(path)) == set()


# ---------------------------------------------------------------- one word for one thing

# What the book calls by another word, which the glossary explains. Naming the other word once is allowed: in brackets,
# in quotation marks, or after "called".
ONE_WORD = {
    r"beam size": "beam width",
    r"cross attention|encoder-decoder attention": "cross-attention",
    r"datasets?": "data set",
    r"feedforward|MLPs?": "feed-forward network",
    r"finetun\w+": "fine-tuning",
    r"hidden (?:size|dimension)s?|embedding dimensions?": "width",
    r"hidden units?": "inner features",
    r"KV[ -]caches?|key-value caches?": "key/value cache",
    r"look-ahead mask": "causal mask",
    r"minibatch\w*|mini-batch\w*": "batch",
    r"multi head|multihead": "multi-head",
    r"percent": "per cent",
    r"postnorm|[Pp]ost-LN": "post-norm",
    r"prenorm|[Pp]re-LN": "pre-norm",
    r"pretrain\w*": "pre-train",
    r"self attention": "self-attention",
    r"skip connections?": "residual connection",
    r"tokenizers?": "tokeniser",
    r"warmup": "warm-up",
}
NAMED_ONCE = ("called ", "(", '("', '"', "or ", "“")


def other_words(source: str) -> list[str]:
    """Return the words of a text for which the book has another, each with that one."""
    found = []
    for paragraph in paragraphs(source):
        if paragraph.startswith((":", ".. ")):  # options of a directive
            continue
        for pattern, word in ONE_WORD.items():
            for match in re.finditer(rf"\b(?:{pattern})\b", paragraph):
                if not paragraph[: match.start()].endswith(NAMED_ONCE):
                    found.append(f"{match[0]} (here: {word})")
    return found


def test_another_word_is_found_unless_it_is_named_once() -> None:
    assert other_words("The KV cache holds it.") == ["KV cache (here: key/value cache)"]
    assert other_words("The key/value cache (KV cache), also called key-value cache, holds it.") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_one_thing_has_one_word(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    cells = (
        [cell.source for cell in read(text).cells if cell.cell_type == "markdown"] if path.suffix == ".ipynb" else []
    )
    assert [word for source in cells or [text] for word in other_words(source)] == []
