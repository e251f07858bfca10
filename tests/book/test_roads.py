"""The bounds of the first pages of chapters: what a person reads in an hour."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from nbformat import NotebookNode

from book._tools.exercise_cells import mark
from book._tools.notebook_io import (
    BESIDE,
    ROOT,
    SECOND,
    chapters,
    code_cells,
    pages_of,
    read,
    roads,
    second_roads,
    tags,
)
from book._tools.notebooks import execute

BOUNDS = {"words": 5000, "visible lines": 350, "lines in a cell": 30, "boxes": 6, "sections": 14}
STORY = {"words": 3500, "visible lines": 250, "boxes": 5, "sections": 9}
"""The bounds of a road that tells one story, and may need no more."""
OF_ONE_STORY = {
    "01-recurrence",
    "02-attention",
    "03-multihead",
    "04-positions",
    "05-encoder",
    "06-decoder",
    "07-transformer",
    "08-training",
    "10-vit",
    "11-efficient",
    "12-inside",
}
OF_ONE_STORY |= {"13-assistant"}
OF_ONE_STORY |= {"09-variants", "09-variants-today"}
DEEPER = {"words": 4000, "sections": 12}
SHORT_DEEPER = {f"{stem}-deeper" for stem in OF_ONE_STORY if not stem.endswith(SECOND)}
LONGEST_HIDDEN = 25  # lines of a cell that a reader of the page does not see
LONGEST_RUN = 40  # seconds of one core
HIDDEN_LINES = {
    "01-recurrence-deeper": (389, 0),
    "01-recurrence": (250, 0),
    "02-attention-deeper": (500, 0),
    "02-attention": (250, 0),
    "03-multihead-deeper": (422, 0),
    "03-multihead": (250, 0),
    "04-positions-deeper": (464, 0),
    "04-positions": (250, 0),
    "05-encoder-deeper": (440, 0),
    "05-encoder": (250, 0),
    "06-decoder-deeper": (500, 0),
    "06-decoder": (250, 0),
    "07-transformer-deeper": (500, 0),
    "07-transformer": (230, 0),
    "08-training-deeper": (500, 0),
    "08-training": (250, 0),
    "09-variants-deeper": (500, 0),
    "09-variants": (250, 0),
    "09-variants-today": (250, 0),
    "10-vit-deeper": (500, 0),
    "10-vit": (250, 0),
    "11-efficient-deeper": (500, 0),
    "11-efficient": (250, 0),
    "12-inside-deeper": (500, 0),
    "12-inside": (250, 0),
    "13-assistant-deeper": (500, 0),
    "13-assistant": (250, 0),
}
"""By page: how many lines its hidden cells may have, and how many of these cells are still too long."""
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
FORMULA = re.compile(r"```\{math\}.*?```|\$\$.*?\$\$", re.DOTALL)
WORD = re.compile(r"\w[\w'’-]*")
SECTION = re.compile(r"^## (?!What to take away|Check yourself)", re.MULTILINE)
ANSWER = re.compile(r"^Answer \(([abc])\)", re.MULTILINE)
EACH = pytest.mark.parametrize("road", [*roads(), *second_roads()], ids=lambda road: road.stem)


def stored(page: Path) -> NotebookNode:
    return read(page.read_text(encoding="utf-8"))


def is_visible(cell: NotebookNode) -> bool:
    return not HIDDEN & set(tags(cell))


def boxes(notebook: NotebookNode) -> list[str]:
    """The text of every claim's box, as a terminal shows it."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    plain = ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]
    return [text for text in plain if text.startswith("Claim ")]


def without_exercises(notebook: NotebookNode) -> NotebookNode:
    """A notebook with what is read, and without what is done."""
    left_out = [cell for cell in notebook.cells if mark(cell)[0] or "solution" in tags(cell)]
    return NotebookNode(notebook, cells=[cell for cell in notebook.cells if cell not in left_out])


def measure(road: Path) -> dict[str, int]:
    """What the standard bounds: words of text, of boxes, of the quiz and of captions; lines of code that are seen."""
    notebook = without_exercises(stored(road))
    lines = [len(cell.source.splitlines()) for cell in code_cells(notebook) if is_visible(cell)]
    texts = [FORMULA.sub("", cell.source) for cell in notebook.cells if cell.cell_type == "markdown"]
    texts += [cell.source for cell in code_cells(notebook) if cell.source.lstrip().startswith("Quiz(")]
    texts += [cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "") for cell in notebook.cells]
    return {
        "words": sum(len(WORD.findall(text)) for text in [*texts, *boxes(notebook)]),
        "visible lines": sum(lines),
        "lines in a cell": max(lines),
        "boxes": len(boxes(notebook)),
        "sections": sections(notebook),
    }


def sections(notebook: NotebookNode) -> int:
    """How many sections a page has, beside its summary and its questions."""
    return sum(len(SECTION.findall(cell.source)) for cell in notebook.cells if cell.cell_type == "markdown")


def hidden_lines(page: Path) -> list[int]:
    """The lengths of the cells that a reader of the page does not see."""
    notebook = without_exercises(stored(page))
    return [len(cell.source.splitlines()) for cell in code_cells(notebook) if not is_visible(cell)]


def made_by(tree: ast.Module) -> set[str]:
    """The names that a cell makes for those after it: what is assigned or defined outside functions and classes."""
    made, waiting = set(), list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif not isinstance(node, ast.Lambda | ast.comprehension):
            waiting += ast.iter_child_nodes(node)
    return made


def unexplained(notebook: NotebookNode) -> dict[str, list[str]]:
    """By the ids of visible cells, the names that only folded cells make and that no text before them names."""
    folded, seen, text, found = set(), set(), "", {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text += cell.source
            continue
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        if not is_visible(cell):
            folded |= made_by(tree)
            continue
        seen |= made_by(tree)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        lacking = sorted(name for name in used & folded - seen - own if not re.search(rf"`[^`]*\b{name}\b[^`]*`", text))
        if lacking:
            found[cell.id] = lacking
    return found


def test_every_chapter_has_a_road_a_deeper_page_and_exercises() -> None:
    ends = {road: {page.stem.removeprefix(road.stem) for page in pages_of(road)} for road in roads()}
    assert [road.stem for road, found in ends.items() if found - {SECOND} != {"", *BESIDE} - {SECOND}] == []


@EACH
def test_a_road_keeps_the_bounds(road: Path) -> None:
    sizes, bounds = measure(road), BOUNDS | (STORY if road.stem in OF_ONE_STORY else {})
    print(f"\n{road.stem}: " + ", ".join(f"{name} {size} of {bounds[name]}" for name, size in sizes.items()))
    assert {name: size for name, size in sizes.items() if size > bounds[name]} == {}


@pytest.mark.parametrize("stem", sorted(SHORT_DEEPER))
def test_a_deeper_page_keeps_the_bounds(stem: str) -> None:
    """Its words are those of its own text; the boxes of claims are counted by nobody."""
    notebook = stored(ROOT / "book" / f"{stem}.ipynb")
    texts = [FORMULA.sub("", cell.source) for cell in notebook.cells if cell.cell_type == "markdown"]
    sizes = {"words": sum(len(WORD.findall(text)) for text in texts), "sections": sections(notebook)}
    print(f"\n{stem}: " + ", ".join(f"{name} {size} of {DEEPER[name]}" for name, size in sizes.items()))
    assert {name: size for name, size in sizes.items() if size > DEEPER[name]} == {}


@pytest.mark.parametrize("page", sorted(HIDDEN_LINES))
def test_hidden_lines_only_become_fewer(page: str) -> None:
    """Whoever opens the notebook sees them: plots by `ttutor.figures`, claims, and little else."""
    lines = hidden_lines(ROOT / "book" / f"{page}.ipynb")
    most, longer = HIDDEN_LINES[page]
    print(f"\n{page}: {sum(lines)} hidden lines of {most}, {sum(n > LONGEST_HIDDEN for n in lines)} cells too long")
    assert sum(lines) <= most
    assert sum(n > LONGEST_HIDDEN for n in lines) <= longer


def test_every_page_that_is_read_has_a_bound_of_hidden_lines() -> None:
    assert set(HIDDEN_LINES) == {page.stem for page in chapters() if not page.stem.endswith("-exercises")}


@pytest.mark.soak
@EACH
def test_a_road_runs_in_forty_seconds_of_one_core(road: Path) -> None:
    before = os.times()
    execute(stored(road), road.parent, timeout=300)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"\n{road.stem}: {spent:.0f} s of {LONGEST_RUN}")
    assert spent < LONGEST_RUN


@EACH
def test_visible_code_uses_no_name_that_the_reader_has_not_met(road: Path) -> None:
    """What a folded cell makes and a visible one uses is named in the text between the beginning and that cell."""
    assert unexplained(without_exercises(stored(road))) == {}


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.stem)
def test_no_call_of_claim_is_visible(page: Path) -> None:
    assert [cell.id for cell in code_cells(stored(page)) if "claim(" in cell.source and is_visible(cell)] == []


@pytest.mark.parametrize("page", [page for road in roads() for page in pages_of(road) if "exercises" not in page.stem])
def test_a_page_says_how_long_its_reading_takes(page: Path) -> None:
    """Fresh readers took 50 to 80 minutes for six roads: 90 words or 9 lines of code a minute."""
    said = int(re.search(r"\*\*Time:\*\* (\d+) minutes to read", stored(page).cells[0].source)[1])
    sizes = measure(page)
    assert said == pytest.approx(sizes["words"] / 90 + sizes["visible lines"] / 9, rel=0.15)


@EACH
def test_right_answers_are_spread(road: Path) -> None:
    """Predictions on all pages: no letter is right in more than half of them, and none never."""
    texts = [cell.source for page in pages_of(road) for cell in stored(page).cells if cell.cell_type == "markdown"]
    letters = Counter(letter for text in texts for letter in ANSWER.findall(text))
    assert set(letters) == set("abc")
    assert max(letters.values()) <= letters.total() / 2
