"""The chapters to work in: an edition without solutions for readers and students, one with everything for instructors.

``python -m book._tools.editions`` writes both, to ``_build/student`` and ``_build/instructor`` (or the one that is
named). Every notebook of the book is in them, in plain Markdown, with folded what the book folds, so that Jupyter, VS
Code and Colab show it as it is meant. What ``make lab`` opens, what a page offers for download, and what Binder and
Colab run is the edition for students.

In the edition for students nothing answers before it is asked: the answers to predictions and quizzes are folded, and
cells that decide a prediction have no output until they are run.

A cell tagged ``solution`` belongs to the solution of an exercise; the student edition leaves it out, with its output.
Nothing else may depend on such a cell, and no other cell may hold a solution: both are checked before anything is
written.
"""

from __future__ import annotations

import argparse
import builtins
import copy
import re
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

from book._tools.exercise_cells import CHECK, drift, mark, slug
from book._tools.myst_to_markdown import Plain, directives, folded
from book._tools.notebook_io import code_cells, exercised_in, notebooks, read, tags, to_text
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.registry import find
from ttutor.exercises.source import imports

ROOT = Path(__file__).resolve().parents[2]

EDITIONS = {
    "student": "The code that the book folds is folded here, too: a click opens it. So are the answers to *What do you "
    "expect?*: choose one, run the cells below the question, then look.",
    "instructor": "The instructor's edition: all solutions are in it, and after each exercise the mistakes that "
    "`check` knows by name. It is not for handing out.",
}
ASKS = (
    " Write your answer where a cell holds `...`, and run the cell: `check` says what is right, or what is wrong and "
    "why. Solutions are not on this page. Below each task stands how to ask for its own; those of tasks on paper are "
    "in the folder `solutions`, which `make lab` writes, and on the page of the book."
)
ASK = '<details>\n<summary><b>Solution</b></summary>\n\nRun `solution("{}")` in a new cell.\n\n</details>'
"""How a reader gets to see a solution: not by scrolling."""
ANSWER = re.compile(r"\bAnswers? \([a-h]\)|^\([a-h]\)[.,:]")
"""How the paragraph begins that answers a prediction."""
EXPLORER = re.compile(r'<div class="explorer" data-explorer="\w+" data-state="[^"]*">')
ANSWERS = re.compile(r"<p><strong>(Answers)</strong></p>(<ol>.*</ol>)", re.DOTALL)
FOLDED = {
    "hide-input": {"source_hidden": True},
    "hide-output": {"outputs_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
}
"""What a tag of the book is to Jupyter; Colab folds code by a key of its own."""


def problems(notebook: NotebookNode) -> list[str]:
    """Return what keeps the student edition from being whole, or from keeping a secret; an empty list if nothing."""
    found = [
        f"cell {cell.id} holds a solution beside other text; give it a cell of its own, tagged solution"
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        and "solution" not in tags(cell)
        and any(part.name == "solution" for part in directives(cell.source))
    ]
    found += [f"cell {where} reads {name!r}, which no cell before it defines" for where, name in undefined(notebook)]
    if found:
        return found
    return [
        f"cell {where} reads {name!r}, which only a solution defines: a student's notebook would stop there"
        for where, name in undefined(without_solutions(notebook))
    ]


def undefined(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield each cell's id with a name that it reads and that no cell before it, nor itself, binds."""
    known = {*dir(builtins), "__file__", "__name__", "display", "get_ipython"}
    for cell in code_cells(notebook):
        needed, tables = set(), [symtable.symtable(cell.source, "cell", "exec")]
        for table in tables:
            tables += table.get_children()
            for symbol in table.get_symbols():
                is_of_the_cell = table.get_type() == "module"
                if is_of_the_cell and (symbol.is_assigned() or symbol.is_imported()):
                    known.add(symbol.get_name())
                elif is_of_the_cell or symbol.is_global():
                    needed.add(symbol.get_name())
        yield from ((cell.id, name) for name in sorted(needed - known))


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which solutions are gone, and the cells that students fill in have no output yet."""
    kept = copy.deepcopy(notebook)
    kept.cells = [cell for cell in kept.cells if "solution" not in tags(cell)]
    for cell in code_cells(kept):
        if mark(cell)[1] == "stub":
            cell.outputs = []
    return kept


def asking_first(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which the answers to predictions are folded, and what decides them is still to be run."""
    asking = copy.deepcopy(notebook)
    question = None
    for place, cell in enumerate(asking.cells):
        if cell.cell_type != "markdown" or mark(cell)[0]:
            continue
        parts, end = cell.source.split("\n\n"), 0
        start = next((number for number, part in enumerate(parts) if ANSWER.search(part)), None)
        if question is not None and start is not None:
            end = next((n for n in range(start, len(parts)) if not parts[n].endswith(":")), start) + 1
            parts[start:end] = [folded("Answer", "\n\n".join(parts[start:end]))]
            cell.source = "\n\n".join(parts)
            for decides in asking.cells[question + 1 : place]:
                if decides.cell_type == "code":
                    decides.outputs = []
            question, end = None, start + 1
        after = " ".join(parts[end:])
        if "(a)" in after and "(b)" in after:
            question = place
    return asking


def static(output: str) -> str:
    """Return an explorer's stored form for a notebook that has not run yet: it says how it moves, a quiz answers later.

    >>> static('<div class="explorer" data-explorer="waves" data-state="{}"><table></table></div>')[-70:]
    '<p><em>Run this cell to move the figure.</em></p><table></table></div>'
    """
    said = EXPLORER.sub(r"\g<0><p><em>Run this cell to move the figure.</em></p>", output)
    said = said.replace("to move the figure", "to answer by a click") if ANSWERS.search(said) else said
    return ANSWERS.sub(r"<details><summary><strong>\1</strong></summary>\2</details>", said)


def with_notes(notebook: NotebookNode) -> NotebookNode:
    """Return a copy with a note behind each exercise's solution: what it is worth, and what may go wrong."""
    noted = copy.deepcopy(notebook)
    noted.cells = []
    for cell in notebook.cells:
        noted.cells.append(copy.deepcopy(cell))
        exercise, part = mark(cell)
        if part == "solution":
            noted.cells.append(note(find(exercise)))
    return noted


def standing_alone(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which a click below the hints shows how to see the solution, and each stub imports its needs."""
    asking = copy.deepcopy(notebook)
    for cell in asking.cells:
        exercise, part = mark(cell)
        if part == "task":
            cell.source += f"\n\n{ASK.format(exercise)}"
        elif part == "stub":
            cell.source = "\n".join([CHECK, *imports(find(exercise)), "", "", cell.source])
        elif part == "imports":
            cell.source = cell.source.replace(CHECK, f"{CHECK}, solution")
    return asking


def note(exercise: Exercise) -> NotebookNode:
    """Return the instructor's note on an exercise, folded away."""
    lines = [
        f"`{exercise.id}`, {exercise.points} points, {exercise.minutes} minutes. It is tried with:",
        "",
        *(f"- {case.name}: {case.points}{', hidden from students' if case.hidden else ''}" for case in exercise.cases),
        "",
        "Mistakes that `check` knows, with what it says:",
        "",
        *(f"- `{mistake.id}`: {mistake.says}" for mistake in exercise.mistakes),
    ]
    if exercise.properties:
        lines += ["", "What it looks at when the mistake is none of these:", ""]
        lines += [f"- `{known.id}`: {known.says}" for known in exercise.properties]
    body = "\n".join(lines)
    cell = new_markdown_cell(f"````{{dropdown}} For the instructor: {exercise.title}\n{body}\n````")
    cell.id = f"note-{slug(exercise)}"
    return cell


def in_plain_markdown(notebook: NotebookNode, chapter: int, pages: frozenset[str]) -> NotebookNode:
    """Return a copy whose text any viewer of notebooks shows as it is meant."""
    plain = copy.deepcopy(notebook)
    texts = [cell for cell in plain.cells if cell.cell_type == "markdown"]
    convert = Plain([cell.source for cell in texts], chapter, pages)
    for cell in texts:
        cell.source = convert(cell.source)
    return plain


def fold(notebook: NotebookNode) -> None:
    """Fold in Jupyter and Colab what the book folds."""
    for cell in code_cells(notebook):
        for tag in tags(cell):
            cell.metadata["jupyter"] = cell.metadata.get("jupyter", {}) | FOLDED.get(tag, {})
        if not cell.metadata.get("jupyter"):
            cell.metadata.pop("jupyter", None)
        elif "source_hidden" in cell.metadata["jupyter"]:
            cell.metadata["cellView"] = "form"


def edition(notebook: NotebookNode, name: str, file: str, pages: frozenset[str]) -> NotebookNode:
    """Return one edition of a chapter.

    Args:
        notebook: the chapter as it is stored.
        name: ``student`` or ``instructor``.
        file: the name of the chapter's file; the number in front is the chapter's.
        pages: the names of all notebooks of the edition.
    """
    if found := problems(notebook):
        raise ValueError(f"{file} cannot be handed out:\n  " + "\n  ".join(found))
    student = name == "student"
    made = standing_alone(asking_first(without_solutions(notebook))) if student else with_notes(notebook)
    made = in_plain_markdown(made, chapter_of(file), pages)
    fold(made)
    asks = ASKS if student and any(mark(cell)[1] == "stub" for cell in made.cells) else ""
    made.cells.insert(1, new_markdown_cell(f"*{EDITIONS[name]}{asks}*"))
    made.cells[1].id = f"about-the-{name}-edition"
    for count, cell in enumerate(code_cells(made), start=1):
        cell.metadata.pop("output_of", None)
        cell.execution_count = count if cell.outputs else None
        for output in cell.outputs:
            if student and "text/html" in output.get("data", {}):
                output.data["text/html"] = static(output.data["text/html"])
            if output.output_type == "execute_result":
                output.execution_count = count
    return made


def solutions_only(notebook: NotebookNode, file: str) -> NotebookNode | None:
    """Return the solutions of a chapter, to be read beside it; None where it has none.

    `ttutor.exercises.solution` shows those that `check` judges; these are all, those on paper included.
    """
    made = copy.deepcopy(notebook)
    plain = in_plain_markdown(notebook, chapter_of(file), frozenset())
    made.cells = [cell for cell in plain.cells if "solution" in tags(cell)]
    made.cells.insert(0, new_markdown_cell(f"# Solutions of `{file}`\n\nTo be read; their code runs in the chapter."))
    made.cells[0].id = "title"
    return made if len(made.cells) > 1 else None


def chapter_of(file: str) -> int:
    """Return the number of a file's chapter; 0 for a page that belongs to none."""
    number = re.match(r"\d+", file)
    return int(number[0]) if number else 0


def made_of(name: str) -> dict[str, NotebookNode]:
    """Return one edition of every notebook of the book, by the names of their files."""
    stored = {path.name: read(path.read_text(encoding="utf-8")) for path in notebooks()}
    return {file: edition(notebook, name, file, frozenset(stored)) for file, notebook in stored.items()}


def write(name: str, folder: Path) -> list[Path]:
    """Write one edition of all notebooks into a folder, once their exercises are as defined; return the files."""
    for path in notebooks():
        if found := drift(read(path.read_text(encoding="utf-8")), exercised_in(path.name)):
            raise ValueError(f"{path.name} cannot be handed out:\n  " + "\n  ".join(found))
    made = made_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, notebook in made.items():
        (folder / file).write_text(to_text(notebook), encoding="utf-8", newline="\n")
    return [folder / file for file in made]


def main(arguments: list[str] | None = None) -> int:
    """Write the editions that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("editions", nargs="*", metavar="edition", help=f"of {', '.join(EDITIONS)}; both when left out")
    parser.add_argument("--to", type=Path, default=ROOT / "_build", help="where their folders go (default _build)")
    options = parser.parse_args(arguments)
    if unknown := set(options.editions) - set(EDITIONS):
        parser.error(f"no edition is called {', '.join(sorted(unknown))}; there are {', '.join(EDITIONS)}")
    for name in options.editions or EDITIONS:
        try:
            files = write(name, options.to / name)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{name} edition: {len(files)} notebooks in {options.to / name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
