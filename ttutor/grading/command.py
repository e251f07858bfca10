"""The command ``ttutor grade``.

Exit codes: 0 where all is graded, 1 where a human has to look at some, 2 for what the user can mend, 3 where the grader
made a mistake of its own (then no mark was written for that student).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import fail, plain_output, say

if TYPE_CHECKING:
    from ttutor.grading.run import Outcome, Wish

SHOWN = 30
ALL_WELL, GRADER_ERROR = 0, 3


def register(app: typer.Typer) -> None:
    """Add the command to the ``ttutor`` command."""
    app.command("grade")(grade)


def grade(
    submissions: Annotated[
        Path | None, typer.Argument(help="A folder of .py, .ipynb, folders and zips, an LMS's zip, or one file.")
    ] = None,
    assignment: Annotated[Path | None, typer.Option(help="What is asked, as TOML.", metavar="hw1.toml")] = None,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("results"),
    lanes: Annotated[int, typer.Option("-j", "--jobs", help="How many submissions at a time.", min=1, max=64)] = 1,
    roster: Annotated[Path | None, typer.Option(help="The class as CSV: student, name, email, submitted.")] = None,
    student: Annotated[str | None, typer.Option(help="All that lies there is the work of this one.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Grade only this student; may be given again.")] = None,
    regrade: Annotated[bool, typer.Option("--regrade", help="Grade again what is graded already.")] = False,
    diff: Annotated[Path | None, typer.Option(help="Older results: list every mark that has changed.")] = None,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run where submissions cannot be shut in.")
    ] = False,
    gradescope: Annotated[Path | None, typer.Option(help="Also write the one submission's results.json here.")] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Try the grader on this machine: right answers, wrong ones, attacks.")
    ] = False,
) -> None:
    """Grade a class: marks, feedback and a gradebook, and what the class has misunderstood."""
    from ttutor.grading.assignment import BadAssignment, read_assignment
    from ttutor.grading.roster import BadRoster, Roster, read_roster
    from ttutor.grading.run import Wish

    with plain_output():
        if self_test:
            _test_here(require_sandbox)
        if submissions is None or assignment is None:
            fail("name what to grade and the assignment: ttutor grade SUBMISSIONS --assignment hw1.toml")
        try:
            wish = Wish(
                submissions=submissions,
                assignment=read_assignment(assignment),
                out=out,
                lanes=lanes,
                roster=Roster() if roster is None else read_roster(roster),
                student=student,
                only=tuple(only or ()),
                regrade=regrade,
                require_sandbox=require_sandbox,
                compare=diff,
            )
        except (BadAssignment, BadRoster) as error:
            fail(str(error))
        outcome = _run(wish)
        _tell(wish, outcome)
        if gradescope is not None:
            _copy_gradescope(wish, outcome, gradescope)
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def _run(wish: Wish) -> Outcome:
    from ttutor.grading.records import DamagedRecord
    from ttutor.grading.run import grade_class
    from ttutor.grading.side_by_side import CannotGrade
    from ttutor.grading.submissions import BadSubmissions

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the lanes: one thread each, so that sums come out the same
    try:
        return grade_class(wish, say)
    except (BadSubmissions, CannotGrade, DamagedRecord) as error:
        fail(str(error))


def _tell(wish: Wish, outcome: Outcome) -> None:
    """Say what an instructor wants to know at once; all else stands in the files."""
    open_ones = [record for record in outcome.records if record.is_open and record.student not in outcome.failures]
    stood = len(outcome.records) - outcome.n_new - len(outcome.failures)
    say(f"{len(outcome.records)} submissions: {outcome.n_new} graded now, {stood} stood already.")
    for record in open_ones[:SHOWN]:
        say(
            f"To look at: {record.student}: {record.problem or '; '.join(record.mark.notes) or record.mark.state.value}"
        )
    for name, why in list(outcome.failures.items())[:SHOWN]:
        say(f"Grader error: {name}: {why.strip().splitlines()[-1]} (no mark was written)", error=True)
    for line in outcome.changed or ():
        say(f"Changed: {line}")
    if outcome.changed == ():
        say("No mark has changed.")
    say(f"Written to {wish.out}: gradebook.csv, summary.md, feedback/, records/, gradescope/, junit.xml.")


def _copy_gradescope(wish: Wish, outcome: Outcome, path: Path) -> None:
    from ttutor.grading.records import write_whole

    written = [wish.out / "gradescope" / f"{record.student}.json" for record in outcome.records]
    if len(written) != 1 or not written[0].exists():
        fail(f"--gradescope needs one graded submission, but there are {len(written)}; name one with --student")
    write_whole(path, written[0].read_text(encoding="utf-8"))


def _test_here(require_sandbox: bool) -> None:
    from ttutor.grading.sandbox import SandboxError
    from ttutor.grading.self_test import run_self_test

    try:
        went_well = run_self_test(say, require_sandbox=require_sandbox)
    except SandboxError as error:
        fail(str(error))
    raise typer.Exit(ALL_WELL if went_well else GRADER_ERROR)
