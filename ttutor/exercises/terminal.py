"""The commands ``ttutor exercises``, ``ttutor check`` and ``ttutor solution``: the exercises without a notebook.

Exit codes of ``ttutor check``: 0 where all that was handed in and started is right, 1 where something is not, 2 for
what the user can mend, such as a wrong path.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import fail, plain_errors, say
from ttutor.exercises.order import ORDER, number

if TYPE_CHECKING:
    from ttutor.exercises.loading import Work

WRONG = 1
INTERRUPTED = 130
WIDTH = 100
BAR = 20


def register(app: typer.Typer) -> None:
    """Add the commands to the ``ttutor`` command."""
    app.command("exercises")(list_exercises)
    app.command("check")(check_file)
    app.command("solution")(show_solution)


def list_exercises(
    what: Annotated[
        str | None, typer.Argument(help="A chapter (attention) or an exercise (attention.softmax).")
    ] = None,
    stubs: Annotated[bool, typer.Option("--stubs", help="Print the stubs, as a file to work in.")] = False,
    hint: Annotated[int, typer.Option(help="Show the first 1, 2 or 3 hints of an exercise.", min=0, max=3)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    verify: Annotated[
        Path | None, typer.Option(help="Try the exercises of a folder of your own.", metavar="my_course/")
    ] = None,
) -> None:
    """Show your progress, the exercises of a chapter, or one of them."""
    from ttutor.exercises.exercise import CHAPTERS
    from ttutor.exercises.progress import progress_file, read_progress
    from ttutor.exercises.registry import exercises, find

    with plain_errors():
        if verify is not None:
            _verify(verify)
        chosen = exercises(what) if what is None or what in CHAPTERS else (find(what),)
        path = progress_file()
        points = read_progress(path)
        if as_json:
            print(json.dumps([_record(exercise, points) for exercise in chosen], indent=1))
        elif stubs:
            print(_stub_file(chosen))
        elif what is not None and "." in what:
            print(_whole(chosen[0], hint))
        else:
            print("\n".join(_bars(chosen, points) if what is None else _table(chosen, points)))
            kept = f"kept in {path}, by `check` in a notebook and by `ttutor check`" if path else "not kept"
            print("\n`ttutor exercises attention` lists a chapter's, `ttutor exercises attention.softmax` shows one.")
            print(f"Progress is {kept}.")


def _verify(folder: Path) -> None:
    """Say of each exercise of a folder what is wrong with it; end with exit code 1 where something is."""
    from ttutor.exercises.registry import add_folder
    from ttutor.exercises.verify import problems_of

    found = {exercise.id: problems_of(exercise) for exercise in add_folder(folder)}
    for name, problems in found.items():
        say(f"{name}: {'; '.join(problems) or 'as it should be'}")
    raise typer.Exit(WRONG if any(found.values()) else 0)


def check_file(
    path: Annotated[Path, typer.Argument(help="Your work: a Python file or a notebook.", metavar="my_work.py")],
    only: Annotated[list[str] | None, typer.Argument(help="Only these exercises or chapters.")] = None,
    hint: Annotated[int, typer.Option(help="Show the first 1, 2 or 3 hints where it is not right.", min=0, max=3)] = 0,
    seed: Annotated[int, typer.Option(help="Choose other inputs.")] = 0,
) -> None:
    """Check the answers in a file.

    Every function or class that is called as an exercise's stub (or my_...) is one.
    """
    import torch

    from ttutor.device import choose_threads
    from ttutor.exercises.checking import check
    from ttutor.exercises.loading import read_work
    from ttutor.exercises.progress import progress_file, record
    from ttutor.exercises.result import Result

    with plain_errors():
        torch.set_num_threads(choose_threads())  # what exercises are tried with is small
        work = read_work(path)
        chosen = _chosen(only or [], work)
        for sentence in work.skipped:
            say(f"Note: {sentence}", error=True)
        for sentence in _strangers(work, chosen):
            say(f"Note: {sentence}", error=True)
        handed_in = [(one, answer) for one in chosen if (answer := work.answer_to(one)) is not None]
        if not handed_in:
            fail(f"{path} answers none of {len(chosen)} exercises; `ttutor exercises --stubs` prints how they begin")
        results: list[Result] = []
        for exercise, answer in handed_in:
            try:
                result = check(exercise.id, answer, seed=seed)
            except KeyboardInterrupt:
                record(progress_file(), results)
                say(f"\nStopped while {exercise.id} was being checked; what was checked before is kept.")
                raise typer.Exit(INTERRUPTED) from None
            results.append(result)
            if result.started or only:
                say(str(result if result.passed else result.with_hints(exercise.hints[:hint])))
        record(progress_file(), results)
        started = [result for result in results if result.started]
        right = sum(result.passed for result in started)
        points = f"{sum(one.points for one in results)} of {sum(one.points_possible for one in results)} points"
        if left := [one.exercise_id for one in results if not one.started]:
            say(textwrap.fill(f"Not started: {', '.join(left)}.", WIDTH, break_on_hyphens=False))
        say(f"\n{len(started)} of {len(results)} started, {right} right, {points}.")
    if right < len(started) or not started:
        raise typer.Exit(WRONG)


def show_solution(what: Annotated[str, typer.Argument(help="An exercise.", metavar="attention.softmax")]) -> None:
    """Show a solution of an exercise, and why it is so."""
    from ttutor.exercises.showing import solution

    with plain_errors():
        print(solution(what))


def _strangers(work: Work, chosen: Sequence) -> Iterator[str]:
    """Yield a sentence on each name that begins as an answer and is called as no exercise."""
    from ttutor.exercises.registry import exercises

    strange = {name for name in work.names if name.startswith("my_")} - {f"my_{one.name}" for one in chosen}
    known = [f"my_{exercise.name}" for exercise in exercises()] if strange else []
    for name in sorted(strange.difference(known)):
        close = get_close_matches(name, known, n=1)
        yield f"{name} answers no exercise" + (f"; did you mean {close[0]}?" if close else "")


def _chosen(only: list[str], work: Work) -> Sequence:
    """The exercises asked for, else those of the chapters that the work answers: to load all takes longer."""
    from ttutor.exercises.exercise import CHAPTERS
    from ttutor.exercises.registry import exercises, find

    if only:
        return [one for name in only for one in (exercises(name) if name in CHAPTERS else (find(name),))]
    names = {name.removeprefix("my_") for name in work.names}
    chapters = [chapter for chapter, listed in ORDER.items() if names & set(listed.split())]
    chosen = [one for chapter in chapters for one in exercises(chapter)]
    return chosen if names and names <= {one.name for one in chosen} else exercises()


def _table(chosen: Sequence, points: dict[str, int]) -> Iterator[str]:
    """Each chapter with its exercises: number, state, points, name, how hard and how long."""
    for chapter in dict.fromkeys(exercise.chapter for exercise in chosen):
        among = [one for one in chosen if one.chapter == chapter]
        yield f"{chapter}: {_earned(among, points)} of {sum(one.points for one in among)} points"
        for exercise in among:
            earned = _earned([exercise], points)
            state = "right" if earned == exercise.points else "begun" if earned else "open"
            yield (
                f"  {number(exercise.id):5} {state:5}  {earned}/{exercise.points}  {exercise.id:42} "
                f"{'*' * exercise.difficulty:3} {exercise.minutes:3} min  {exercise.title}"
            )


def _bars(chosen: Sequence, points: dict[str, int]) -> Iterator[str]:
    """How far one has come: a bar for each chapter, and one for the whole course."""
    groups = {chapter: [one for one in chosen if one.chapter == chapter] for chapter in ORDER}
    for place, (name, among) in enumerate([*groups.items(), ("all", chosen)], start=1):
        earned, possible = _earned(among, points), sum(one.points for one in among)
        full = BAR * earned // possible
        label = f"{place:2}  {name}" if name in groups else f"    {name}"
        yield f"{label:16} [{'#' * full}{'-' * (BAR - full)}] {earned:3} of {possible} points"


def _earned(among: Iterable, points: dict[str, int]) -> int:
    return sum(min(points.get(one.id, 0), one.points) for one in among)


def _record(exercise, points: dict[str, int]) -> dict:
    names = ("id", "chapter", "name", "title", "points", "difficulty", "minutes", "section")
    kept = {"number": number(exercise.id), "earned": _earned([exercise], points)}
    return {name: getattr(exercise, name) for name in names} | kept


def _whole(exercise, hint: int) -> str:
    from ttutor.exercises.source import imports, stub_source

    about = f"{number(exercise.id)} {exercise.title} ({exercise.id}, chapter {exercise.section}): "
    about += f"{exercise.points} points"
    about += f", about {exercise.minutes} minutes"
    code = "\n".join([*imports(exercise), "", "", stub_source(exercise, f"my_{exercise.name}")])
    hints = [f"Hint {tier}: {text}" for tier, text in enumerate(exercise.hints[:hint], start=1)]
    statement = [_wrapped(exercise.statement), *map(_wrapped, _ruled_out(exercise))]
    return "\n\n".join([about.strip(), *statement, code.rstrip(), *map(_wrapped, hints)])


def _ruled_out(exercise) -> list[str]:
    """What an answer may not call, in a sentence; nothing where it may call all."""
    return [f"Not to be used: {', '.join(exercise.forbids)}."] if exercise.forbids else []


def _stub_file(chosen: Sequence) -> str:
    """A file to work in: the imports, and each exercise's statement as comments over its stub.

    The stubs are called ``my_...``, so that none takes the place of a function that another exercise imports.
    """
    from ttutor.exercises.source import imports, stub_source

    parts = ["\n".join(imports(*chosen))]
    for exercise in chosen:
        told = "\n\n".join(map(_wrapped, [exercise.statement, *_ruled_out(exercise)]))
        statement = textwrap.indent(told, "# ", lambda line: True)
        stub = stub_source(exercise, f"my_{exercise.name}").rstrip()
        parts.append(f"# {number(exercise.id)} {exercise.id}: {exercise.title}\n{statement}\n{stub}")
    return "\n\n\n".join(parts)


def _wrapped(text: str) -> str:
    """Fill the paragraphs of a Markdown text, and leave blocks of code and formulas alone."""
    parts = text.strip().split("\n\n")
    return "\n\n".join(part if part.startswith(("```", "$$")) else textwrap.fill(part, WIDTH) for part in parts)
