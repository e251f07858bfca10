"""A siege: the attacks, one after the other, on a grader of this machine, and what each came to.

An attack is repulsed where it earns nothing, leaves no process and no file behind, and an honest answer that is graded
after it has the very same marks as before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ttutor.exercises.registry import find
from ttutor.exercises.source import imports, solution_source
from ttutor.grading.assignment import Worth
from ttutor.grading.attacks import ATTACKS, PAIRS, TARGET, Attack
from ttutor.grading.judging import Grader
from ttutor.grading.marks import SourceFile, State, Submission, SubmissionMark

__all__ = ["Besieged", "Outcome", "besieged", "siege"]

OPEN_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/")
TRACES = ("ttutor-was-here", "ttutor-left")
CALL_SECONDS, SUBMISSION_SECONDS = 1.0, 8.0


@dataclass(frozen=True)
class Outcome:
    """What an attack came to.

    Args:
        attack: which it was.
        mark: its mark, or None where it was not tried.
        problems: in what it succeeded, one sentence each; none where it was repulsed.
        not_tried: why this level cannot stop it, so that it was not let loose, or "".
    """

    attack: Attack
    mark: SubmissionMark | None
    problems: tuple[str, ...] = ()
    not_tried: str = ""


@dataclass(frozen=True)
class Besieged:
    """An assignment of the one exercise that attacks pretend to answer, with little time."""

    exercises: tuple[Worth, ...] = (Worth(TARGET, 10.0),)
    seed: str = "the seed of the siege"
    seconds: float = CALL_SECONDS
    memory: int = 1024


def besieged(sandbox: str | None = None, *, n_cases: int | None = None) -> Grader:
    """Return a grader to attack.

    Args:
        sandbox: its level; the strongest that works here when left out.
        n_cases: how many cases it tries; all when left out. An attack that ends its process costs a start for each.
    """
    grader = Grader(Besieged(), sandbox=sandbox, submission_seconds=SUBMISSION_SECONDS)
    grader.exercises = [replace(one, cases=one.cases[:n_cases]) for one in grader.exercises]
    return grader


def siege(grader: Grader, attacks: Iterable[Attack] | None = None, *, honest_every: int = 1) -> Iterator[Outcome]:
    """Let attacks loose on a grader, and yield what each came to.

    Args:
        grader: as `besieged` makes it.
        attacks: which ones; all of them, and the pairs, when left out.
        honest_every: after how many attacks an honest answer is graded again.
    """
    chosen = [*ATTACKS, *(one for pair in PAIRS for one in pair)] if attacks is None else list(attacks)
    honest, before = _honest(grader), _places(grader)
    if honest.earned != honest.possible:
        raise RuntimeError(f"the honest answer earned {honest.earned} of {honest.possible}: {honest.notes}")
    for number, attack in enumerate(chosen, 1):
        if why := _cannot_stop(grader, attack):
            yield Outcome(attack, None, not_tried=why)
            continue
        mark = grader.grade(Submission(student="mallory", shown="mallory", files=attack.files()))
        problems = [*_gained(mark), *_left(grader, before)]
        if number % honest_every == 0 or number == len(chosen):
            problems += [] if _honest(grader) == honest else ["the marks of an honest answer are others after it"]
        yield Outcome(attack, mark, tuple(problems))


def _cannot_stop(grader: Grader, attack: Attack) -> str:
    level = grader.sandbox
    stops = not attack.needs or getattr(level, attack.needs)
    return "" if stops else f"the level {level.name} does not stop it ({attack.needs.replace('_', ' ')})"


def _honest(grader: Grader) -> SubmissionMark:
    """The mark of the published solution, timings aside."""
    exercise = find(TARGET)
    text = "\n".join([*imports(exercise), solution_source(exercise)])
    mark = grader.grade(Submission(student="ada", shown="ada", files=(SourceFile("ada.py", text.encode()),)))
    exercises = tuple(replace(one, seconds=0.0) for one in mark.exercises)
    return replace(mark, seconds=0.0, memory_bytes=0, exercises=exercises)


def _gained(mark: SubmissionMark) -> Iterator[str]:
    if mark.earned:
        yield f"it earned {mark.earned:g} of {mark.possible:g} points"
    if mark.state is State.GRADER_ERROR:
        yield f"it made the grader fail: {' '.join(mark.notes)[-300:]}"


def _left(grader: Grader, before: set[str]) -> Iterator[str]:
    if found := grader.strays():
        yield f"it left {len(found)} processes behind"
    if files := sorted(_places(grader) - before):
        yield f"it left files behind: {', '.join(files[:5])}"


def _places(grader: Grader) -> set[str]:
    """What workers have left in the folders that everybody may write: theirs by owner, or else by name."""
    found = set()
    for place in filter(os.path.isdir, OPEN_PLACES):
        for entry in os.scandir(place):
            if grader.worker_user is None:
                is_theirs = entry.name.startswith(TRACES)
            else:
                is_theirs = _owner(entry) == grader.worker_user
            found |= {entry.path} if is_theirs else set()
    return found


def _owner(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:  # it belonged to somebody who has taken it away
        return None
