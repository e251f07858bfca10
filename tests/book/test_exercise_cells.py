"""The cells of a chapter that come from the exercises' definitions."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from book._tools import exercise_cells
from book._tools.exercise_cells import (
    add,
    cells,
    drift,
    import_cell,
    main,
    mark,
    synchronise,
    task,
)
from book._tools.notebook_io import chapters, exercised_in, read, to_text
from tests.book.made import code, notebook, text
from ttutor.exercises.registry import find

SOFTMAX, BY_HAND = find("attention.softmax"), find("attention.weights_by_hand")


@pytest.fixture
def chapter(monkeypatch: pytest.MonkeyPatch):
    """A chapter of one exercise, and a registry that knows no other of that chapter."""
    monkeypatch.setattr(exercise_cells, "exercises", lambda chapter: (SOFTMAX,) if chapter == "attention" else ())
    imports = code(import_cell([SOFTMAX]), "imports", part="imports")
    return notebook(text("# Attention", "title"), imports, *cells(SOFTMAX), text("## End", "end"))


def test_an_exercise_has_four_cells_in_order() -> None:
    made = cells(SOFTMAX)
    assert [(cell.id, cell.cell_type, *mark(cell)) for cell in made] == [
        ("task-softmax", "markdown", "attention.softmax", "task"),
        ("stub-softmax", "code", "attention.softmax", "stub"),
        ("words-softmax", "markdown", "attention.softmax", "words"),
        ("solution-softmax", "code", "attention.softmax", "solution"),
    ]
    assert [cell.metadata.get("tags", []) for cell in made] == [[], [], ["solution"], ["hide-cell", "solution"]]


def test_the_task_holds_statement_and_three_hints() -> None:
    shown = task(BY_HAND)
    assert shown.startswith("```{exercise} By hand ★ (10 minutes)\n:label: attention-weights-by-hand\n")
    assert BY_HAND.statement in shown
    assert [f"Hint {tier}: " in shown and hint in shown for tier, hint in enumerate(BY_HAND.hints, 1)] == [True] * 3


@pytest.mark.parametrize("name", ["task-softmax", "stub-softmax", "solution-softmax", "imports"])
def test_a_cell_that_was_edited_is_found_and_written_anew(chapter, name: str) -> None:
    before = to_text(chapter)
    (cell,) = [cell for cell in chapter.cells if cell.id == name]
    cell.source = cell.source.replace("softmax", "sharpmax").replace("import check", "import find")
    assert drift(chapter, "attention") == [f"cell {name} differs from the exercise's definition; run make notebooks"]
    assert to_text(synchronise(chapter)) == before


def test_words_are_the_chapters_own_where_the_definition_has_none(chapter, monkeypatch: pytest.MonkeyPatch) -> None:
    chapter.cells[4].source = "```{solution} attention-softmax\nOurs.\n```"
    without = copy.copy(SOFTMAX)
    object.__setattr__(without, "explanation", "")
    monkeypatch.setattr(exercise_cells, "find", lambda _: without)
    assert synchronise(chapter).cells[4].source == "```{solution} attention-softmax\nOurs.\n```"
    object.__setattr__(without, "explanation", "Theirs.")
    assert "Theirs." in synchronise(chapter).cells[4].source


def test_parts_that_are_missing_or_out_of_order_are_named(chapter) -> None:
    chapter.cells[2], chapter.cells[3] = chapter.cells[3], chapter.cells[2]
    assert drift(chapter, "attention") == [
        (
            "attention.softmax has the parts stub, task, words, solution; "
            "it needs task, stub, words, solution, in this order"
        )
    ]


def test_an_exercise_that_the_chapter_forgot_is_named(chapter) -> None:
    del chapter.cells[2:6]
    assert drift(chapter, "attention")[0].startswith(
        "attention.softmax belongs to this chapter and does not stand in it"
    )
    assert not [words for words in drift(chapter, "vit") if "softmax" in words]


def test_adding_puts_an_exercise_behind_a_cell_and_its_imports_in_front(chapter) -> None:
    grown = add(chapter, "attention.causal_attention", "solution-softmax")
    assert [cell.id for cell in grown.cells][5:8] == [
        "solution-softmax",
        "task-causal-attention",
        "stub-causal-attention",
    ]
    assert "from ttutor.masks import causal_mask" in grown.cells[1].source
    assert drift(grown, "attention") == []


def test_the_command_adds_and_writes_anew(chapter, tmp_path: Path) -> None:
    path = tmp_path / "02-attention.ipynb"
    path.write_text(to_text(chapter), encoding="utf-8")
    assert main([str(path), "--add", "attention.weights_by_hand", "--after", "end"]) == 0
    assert [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]][
        -1
    ] == "solution-weights-by-hand"
    after = path.read_text(encoding="utf-8")
    path.write_text(after.replace("Hint 1: what to look at", "Hint 1: changed"), encoding="utf-8")
    assert main([str(path)]) == 0
    assert path.read_text(encoding="utf-8") == after


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_no_chapter_drifts_from_the_definitions(path: Path) -> None:
    assert drift(read(path.read_text(encoding="utf-8")), exercised_in(path.name)) == []
