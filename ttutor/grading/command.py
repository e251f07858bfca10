"""The commands ``ttutor grade`` and ``ttutor homework``.

Exit codes of grading: 0 where all is graded, 1 where a human has to look at some, 2 for what the user can mend, 3 where
the grader made a mistake of its own (then no mark was written for that student).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import fail, plain_errors, say
from ttutor.files import append_to

if TYPE_CHECKING:
    from ttutor.grading.assignment import Assignment
    from ttutor.grading.grade_request import GradeRequest, Outcome
    from ttutor.grading.record import Record

SHOWN = 30
Own = Annotated[
    Path | None, typer.Option("--exercises", help="A folder of exercises of your own.", metavar="my_course/")
]
HELP = "Write your answers where the stubs stand, and run the cell below each: it says what is right and what is not."
KEPT = " Some cases are kept for grading."


def register(app: typer.Typer) -> None:
    """Add the commands to the ``ttutor`` command."""
    app.command("grade")(grade)
    app.command("homework")(write_homework)


def grade(
    submissions: Annotated[
        Path | None, typer.Argument(help="A folder of .py, .ipynb, folders and zips, an LMS's zip, or one file.")
    ] = None,
    assignment: Annotated[Path | None, typer.Option(help="What is asked, as TOML.", metavar="hw1.toml")] = None,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("results"),
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="How many submissions at a time.", min=1, max=64)] = 1,
    roster: Annotated[Path | None, typer.Option(help="The class as CSV: student, name, email, submitted.")] = None,
    student: Annotated[str | None, typer.Option(help="All that lies there is the work of this one.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Grade only this student; may be given again.")] = None,
    regrade: Annotated[bool, typer.Option("--regrade", help="Grade again what is graded already.")] = False,
    diff: Annotated[Path | None, typer.Option(help="Older results: list every mark that has changed.")] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Shut nothing in: only for work that you would run by hand.")
    ] = False,
    contained: Annotated[
        bool, typer.Option("--contained", help="In a container made for one submission, as root: run it as nobody.")
    ] = False,
    own: Own = None,
    gradescope: Annotated[Path | None, typer.Option(help="Also write the one submission's results.json here.")] = None,
    classroom: Annotated[
        Path | None, typer.Option(help="Add the one submission's result, as GitHub Classroom reads it, to this file.")
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Try the grader on this machine: right answers, wrong ones, attacks.")
    ] = False,
) -> None:
    """Grade a class: marks, feedback and a gradebook.

    And what the class has misunderstood.
    """
    from ttutor.exercises.registry import add_folder
    from ttutor.files import write_text
    from ttutor.grading import exports
    from ttutor.grading.assignment import read_assignment
    from ttutor.grading.grade_request import ALL_GRADED, GRADER_ERROR, GradeRequest, grade_class
    from ttutor.grading.roster import Roster, read_roster
    from ttutor.grading.sandbox import BUBBLEWRAP, CONTAINED, KINDS, TRUSTED, Sandbox, bytecode
    from ttutor.grading.session import check_sandbox

    with plain_errors():
        if trusted and contained:
            fail("--trusted and --contained exclude each other")
        kind = TRUSTED if trusted else CONTAINED if contained else BUBBLEWRAP
        if self_test:
            from ttutor.grading.self_test import run_self_test

            raise typer.Exit(ALL_GRADED if run_self_test(say, sandbox=kind) else GRADER_ERROR)
        if submissions is None or assignment is None:
            fail("name what to grade and the assignment: ttutor grade SUBMISSIONS --assignment hw1.toml")
        if own is not None:
            add_folder(own)
        request = GradeRequest(
            submissions=submissions,
            assignment=read_assignment(assignment),
            out=out,
            jobs=jobs,
            roster=Roster() if roster is None else read_roster(roster),
            student=student,
            only=tuple(only or ()),
            regrade=regrade,
            sandbox=kind,
            own=own,
            hidden=tuple(path for path in (assignment, roster, diff) if path is not None),
            compare=diff,
        )
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes: so that sums come out the same
        with bytecode() as compiled:
            check_sandbox(Sandbox(kind, bytecode=compiled))
            say(f"Sandbox: {kind}: {KINDS[kind]}.")
            outcome = grade_class(replace(request, bytecode=compiled))
        _tell(request, outcome)
        if gradescope is not None:
            write_text(gradescope, exports.gradescope(request.assignment, _only_one(outcome, "--gradescope")))
        if classroom is not None:
            result = exports.classroom(request.assignment, _only_one(outcome, "--classroom"))
            append_to(classroom, f"result={result}\n")  # GitHub's file of outputs, which others add to
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def _tell(request: GradeRequest, outcome: Outcome) -> None:
    """Say what an instructor wants to know at once; all else stands in the files."""
    from ttutor.grading.feedback import look_at_these, overview, to_look_at, wait_for_marks, why_open
    from ttutor.grading.marks import State, counted

    handed_in = [record for record in outcome.records if record.mark.state is not State.MISSING]
    stood = len(handed_in) - outcome.n_new - len(outcome.failures)
    nothing = f"; {without} handed in nothing" if (without := len(outcome.records) - len(handed_in)) else ""
    say(f"{counted(len(handed_in), 'submission')}: {outcome.n_new} graded now, {stood} stood already{nothing}.")
    graded = [record for record in outcome.records if record.student not in outcome.failures]
    for record in to_look_at(request.assignment, graded)[:SHOWN]:
        say(f"To look at: {record.student}: {why_open(request.assignment, record)}")
    for line in wait_for_marks(request.assignment, graded):
        say(f"To look at: {line}")
    for line in look_at_these(outcome.records)[:SHOWN]:
        say(f"Look at these: {line}")
    for name, why in list(outcome.failures.items())[:SHOWN]:
        say(f"Grader error: {name}: {why.strip().splitlines()[-1]} (no mark was written)", error=True)
    for note in outcome.notes[:SHOWN]:
        say(f"Note: {note}")
    for line in outcome.changed or ():
        say(f"Changed: {line}")
    if outcome.changed == ():
        say("No mark has changed.")
    for line in overview(request.assignment, outcome.records):
        say(line)
    say(f"Written to {request.out}: gradebook.csv, summary.md, feedback/, records/, junit.xml.")


def _only_one(outcome: Outcome, option: str) -> Record:
    graded = [record for record in outcome.records if record.student not in outcome.failures]
    if len(graded) != 1:
        fail(f"{option} needs one graded submission, but there are {len(graded)}; name one with --student")
    return graded[0]


def write_homework(
    assignment: Annotated[Path, typer.Argument(help="What is asked, as TOML.", metavar="hw1.toml")],
    out: Annotated[Path, typer.Option(help="The notebook to write.")] = Path("homework.ipynb"),
    own: Own = None,
) -> None:
    """Write a homework notebook.

    It has statements, stubs, checks, and cells for what people mark.
    """
    from ttutor.exercises.registry import add_folder
    from ttutor.files import write_text
    from ttutor.grading.assignment import read_assignment
    from ttutor.grading.feedback import notebook_of
    from ttutor.grading.marks import counted

    with plain_errors():
        if own is not None:
            add_folder(own)
        asked = read_assignment(assignment)
        if out.exists():
            fail(f"{out} exists; remove it or choose another --out")
        write_text(out, notebook_of(_cells(asked)))
        pieces = f"{counted(len(asked.by_hand), 'piece')} to be marked by hand"
        say(f"Written to {out}: {counted(len(asked.exercises), 'exercise')}, {pieces}.")


def _cells(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """An assignment as cells of a notebook; nothing secret stands in them."""
    from ttutor.exercises.registry import find
    from ttutor.exercises.source import imports, stub_source
    from ttutor.grading.marks import counted

    deadline = assignment.deadline
    due = f" Due {deadline:%Y-%m-%d %H:%M} ({deadline.tzname()})." if deadline is not None else ""
    exercises = [find(one.exercise_id) for one in assignment.exercises]
    pairs = zip(assignment.exercises, exercises, strict=True)
    is_kept = any(one.case_hidden(case.name, case.hidden) for one, exercise in pairs for case in exercise.cases)
    yield "markdown", f"# {assignment.title}\n\n{HELP}{KEPT if is_kept else ''}{due}"
    yield "code", "\n".join([*imports(*exercises), "from ttutor.exercises import check"])
    for worth, exercise in zip(assignment.exercises, exercises, strict=True):
        name = f"my_{exercise.name}"
        points = counted(worth.points, "point")
        yield "markdown", f"## {exercise.title} ({points})\n\n{exercise.statement.strip()}"
        yield "code", stub_source(exercise, name).rstrip()
        yield "code", f'check("{exercise.id}", {name})'
    for piece in assignment.by_hand:
        about = f"{counted(piece.points, 'point')}, marked by a person"
        yield "markdown", f"## {piece.title} ({about})\n\n{piece.asks}".rstrip()
        yield ("code", "# Your code and its picture.") if piece.kind == "plot" else ("markdown", "*Your answer.*")
