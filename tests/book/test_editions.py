"""The editions for a class: solutions gone, nothing broken by that, nothing let out."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from book._tools import editions, exercise_cells
from book._tools.editions import edition, main, problems, solutions_only, undefined
from book._tools.exercise_cells import cells, import_cell, mark
from book._tools.notebook_io import chapters, code_cells, exercised_in, notebooks, read, tags
from book._tools.notebooks import execute
from tests.book.made import code, notebook, text
from ttutor.exercises.registry import find
from ttutor.exercises.source import solution_source, stub_source
from ttutor.widgets import Quiz

BY_HAND = find("attention.weights_by_hand")


@pytest.fixture
def chapter(monkeypatch: pytest.MonkeyPatch) -> NotebookNode:
    """A chapter of two exercises, and a registry that knows no third."""
    monkeypatch.setattr(exercise_cells, "exercises", lambda _: (BY_HAND,))
    by_hand = cells(BY_HAND)
    for cell in by_hand[1::2]:
        cell.outputs = [nbformat.v4.new_output("execute_result", data={"text/plain": "a verdict"}, execution_count=3)]
    return notebook(
        text("# Attention\n\n{cite:t}`vaswani2017`", "title"),
        code(import_cell([BY_HAND]), "imports", part="imports"),
        code("import math\nroot = math.sqrt(2)\nprint(root)", "root"),
        *by_hand,
        text("```{exercise} On paper\n:label: paper\n\nThink.\n```", "paper"),
        text("```{solution} paper\n:class: dropdown\n\nThought.\n```", "thought", "solution"),
        code("secret = 42", "secret", "hide-cell", "solution"),
        text("## End", "end"),
    )


def all_text(made: NotebookNode) -> str:
    return nbformat.writes(made)


def test_the_student_edition_holds_no_solution(chapter: NotebookNode) -> None:
    made = edition(chapter, "student", "02-attention.ipynb", frozenset())
    assert [cell.id for cell in made.cells] == [
        "title",
        "about-the-student-edition",
        "imports",
        "root",
        "task-weights-by-hand",
        "stub-weights-by-hand",
        "paper",
        "end",
    ]
    shown = all_text(made)
    assert [word for word in ("Thought.", "secret", "25 / 30", "a verdict") if word in shown] == []
    assert "printed" in shown  # the outputs of all other cells stay


def test_a_click_says_how_to_see_a_solution_and_the_command_is_imported(chapter: NotebookNode) -> None:
    made = {cell.id: cell.source for cell in edition(chapter, "student", "02-attention.ipynb", frozenset()).cells}
    asking = '<summary><b>Solution</b></summary>\n\nRun `solution("attention.weights_by_hand")` in a new cell.'
    assert made["task-weights-by-hand"].endswith(f"<details>\n{asking}\n\n</details>")
    assert "from ttutor.exercises import check, solution" in made["imports"]
    assert "solution(" not in made["paper"]


@pytest.mark.parametrize("path", [p for p in chapters() if exercised_in(p.name)], ids=lambda path: path.stem)
def test_a_students_exercise_runs_though_no_cell_ran_before_it(path: Path) -> None:
    made = edition(read(path.read_text(encoding="utf-8")), "student", path.name, frozenset())
    stubs = [cell for cell in made.cells if mark(cell)[1] == "stub"]
    missing = [list(undefined(notebook(stub))) for stub in stubs]
    assert stubs
    assert [names for names in missing if names] == []


def test_nothing_answers_before_it_is_asked() -> None:
    quiz = Quiz("What is 1 + 1?\n+ 2 :: Count.\n- 11 :: That joins the digits.")
    asked = code("...", "quiz")
    asked.outputs = [nbformat.v4.new_output("execute_result", data={"text/html": quiz.to_html()}, execution_count=1)]
    stored = notebook(
        text("# Attention", "title"),
        code("setup = 1", "setup"),
        text("Think.\n\n**What do you expect**: (a) less; (b) more?", "question"),
        code("measure = 2", "measure"),
        text("The line falls.\n\nAnswer (a), for two reasons:\n\n- one.\n\nNow go on.", "answer"),
        code("more = 3", "more"),
        text("Answer (c) is never right, and no question stands above.", "remark"),
        asked,
    )
    made = {cell.id: cell for cell in edition(stored, "student", "gallery.ipynb", frozenset()).cells}
    assert [cell.id for cell in stored.cells if cell.cell_type == "code" and not made[cell.id].outputs] == ["measure"]
    answer = "<details>\n<summary><b>Answer</b></summary>\n\nAnswer (a), for two reasons:\n\n- one.\n\n</details>"
    assert made["answer"].source == f"The line falls.\n\n{answer}\n\nNow go on."
    assert made["remark"].source == stored.cells[6].source
    shown = made["quiz"].outputs[0].data["text/html"]
    assert "Run this cell to answer by a click." in shown
    assert "Count." not in re.sub(r'<details>.*</details>|data-state="[^"]*"', "", shown)
    kept = {cell.id: cell for cell in edition(stored, "instructor", "gallery.ipynb", frozenset()).cells}
    assert kept["answer"].source == stored.cells[4].source
    assert kept["quiz"].outputs[0].data["text/html"] == quiz.to_html()


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_quiz_and_every_answer_of_the_book_is_closed_for_students(path: Path) -> None:
    made = edition(read(path.read_text(encoding="utf-8")), "student", path.name, frozenset())
    closed = re.compile(r"<details>.*?</details>", re.DOTALL)
    outputs = [output.get("data", {}).get("text/html", "") for cell in code_cells(made) for output in cell.outputs]
    assert [shown for shown in outputs if "<strong>Right.</strong>" in closed.sub("", shown)] == []
    explorers = [shown for shown in outputs if 'class="explorer"' in shown]
    assert [shown[:90] for shown in explorers if "<em>Run this cell" not in shown] == []
    texts = [closed.sub("", cell.source) for cell in made.cells if cell.cell_type == "markdown"]
    assert [text for text in texts if re.search(r"^Answers? \([a-h]\)", text, re.MULTILINE)] == []


def test_what_the_book_folds_is_folded() -> None:
    made = notebook(
        text("# Attention", "title"),
        code("1", "input", "hide-input"),
        code("2", "output", "hide-output"),
        code("3", "both", "hide-cell"),
        code("4", "open"),
    )
    folded = {
        cell.id: (cell.metadata.get("jupyter"), cell.metadata.get("cellView"))
        for cell in code_cells(edition(made, "student", "gallery.ipynb", frozenset()))
    }
    assert folded == {
        "input": ({"source_hidden": True}, "form"),
        "output": ({"outputs_hidden": True}, None),
        "both": ({"source_hidden": True, "outputs_hidden": True}, "form"),
        "open": (None, None),
    }


def test_solutions_can_be_had_alone_to_be_read(chapter: NotebookNode) -> None:
    alone = solutions_only(chapter, "02-attention.ipynb")
    assert [cell.id for cell in alone.cells] == [
        "title",
        "words-weights-by-hand",
        "solution-weights-by-hand",
        "thought",
        "secret",
    ]
    assert "Solution of exercise 2.2" in alone.cells[3].source
    assert solutions_only(notebook(text("# No exercise", "title")), "01-recurrence.ipynb") is None


def test_the_instructors_edition_holds_all_and_the_mistakes_that_are_known(chapter: NotebookNode) -> None:
    made = edition(chapter, "instructor", "02-attention.ipynb", frozenset())
    ids = [cell.id for cell in made.cells]
    assert ids[ids.index("solution-weights-by-hand") + 1] == "note-weights-by-hand"
    note = made.cells[ids.index("note-weights-by-hand")].source
    assert [mistake.id for mistake in BY_HAND.mistakes if mistake.says not in note] == []
    assert f"{BY_HAND.points} points" in note
    assert "Thought." in all_text(made)


def test_editions_are_valid_notebooks_in_plain_markdown(chapter: NotebookNode) -> None:
    for name in ("student", "instructor"):
        made = edition(chapter, name, "02-attention.ipynb", frozenset())
        nbformat.validate(made)
        assert "Vaswani et al. (2017)" in made.cells[0].source
        assert "{exercise}" not in all_text(made)
        counts = [cell.execution_count for cell in code_cells(made) if cell.outputs]
        assert counts == sorted(counts)


def test_a_cell_that_needs_a_solution_is_found(chapter: NotebookNode) -> None:
    chapter.cells.append(code("print(secret + 1)", "later"))
    assert problems(chapter) == [
        "cell later reads 'secret', which only a solution defines: a student's notebook would stop there"
    ]
    with pytest.raises(ValueError, match=r"02-attention\.ipynb cannot be handed out:\n  cell later reads 'secret'"):
        edition(chapter, "student", "02-attention.ipynb", frozenset())


def test_a_solution_beside_other_text_is_found(chapter: NotebookNode) -> None:
    chapter.cells[-1].source = "Read this.\n\n```{solution} paper\nThought.\n```"
    assert problems(chapter)[0].startswith("cell end holds a solution beside other text")


def test_a_name_counts_from_the_cell_that_binds_it() -> None:
    late = "def f(x: 'T', y: U = v):\n    z = x\n    return [z * k for k in h]"
    made = notebook(code("a = 1", "one"), code("print(a, b)", "two"), code("b = 2", "three"), code(late, "four"))
    assert list(undefined(made)) == [("two", "b"), ("four", "U"), ("four", "h"), ("four", "v")]


def test_both_editions_of_the_book_are_written(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--to", str(tmp_path)]) == 0
    expected, said = [path.name for path in notebooks()], capsys.readouterr().out
    for name in ("student", "instructor"):
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == expected
        assert f"{name} edition: {len(expected)} notebooks" in said


def test_a_chapter_that_cannot_be_handed_out_stops_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chapter: NotebookNode, capsys: pytest.CaptureFixture
) -> None:
    chapter.cells.append(code("print(secret + 1)", "later"))
    path = tmp_path / "02-attention.ipynb"
    path.write_text(all_text(chapter), encoding="utf-8")
    monkeypatch.setattr(editions, "notebooks", lambda: [path])
    assert main(["student", "--to", str(tmp_path)]) == 1
    assert "cell later reads 'secret'" in capsys.readouterr().err
    assert not (tmp_path / "student").exists()


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_no_solution_of_a_chapter_gets_out(path: Path) -> None:
    stored = read(path.read_text(encoding="utf-8"))
    made = edition(stored, "student", path.name, frozenset())
    shown = "\n".join(cell.source for cell in made.cells if mark(cell)[0] or "exercise" in cell.id)
    assert [cell.id for cell in stored.cells if "solution" in tags(cell) and cell.source in shown] == []
    for exercise in (find(mark(cell)[0]) for cell in stored.cells if mark(cell)[1] == "solution"):
        given = stub_source(exercise)  # code to be mended has most of its lines in common with the mended
        lines = [line.strip() for line in solution_source(exercise).split("\n")]
        own = [line for line in lines if len(line) > 40 and line not in given]
        assert [line for line in own if line in shown] == []


@pytest.mark.soak
@pytest.mark.parametrize("path", [p for p in chapters() if exercised_in(p.name)], ids=lambda path: path.stem)
def test_the_student_edition_runs_from_top_to_bottom(path: Path) -> None:
    made = edition(read(path.read_text(encoding="utf-8")), "student", path.name, frozenset())
    ran = execute(made, path.parent, timeout=300)
    verdicts = [cell for cell in code_cells(ran) if mark(cell)[1] == "stub"]
    assert verdicts
    assert [cell.id for cell in verdicts if "Not started" not in cell.outputs[0].data["text/plain"]] == []
