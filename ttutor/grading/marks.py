"""What grading comes to: marks of cases, exercises and submissions, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ttutor.grading.assignment import Assignment, ByHand, Worth


class State(StrEnum):
    """How a case, an exercise or a submission ended. Only ``OK`` earns points; nothing else ever does."""

    OK = "ok"
    WRONG = "wrong"
    ERROR = "error"  # the student's code raised, or does not load
    TIMEOUT = "timeout"
    CRASH = "crash"  # its process died
    MISSING = "missing"  # nothing was handed in for it
    NOT_GRADABLE = "not_gradable"  # a human has to look: no silent zero
    GRADER_ERROR = "grader_error"  # our mistake: no mark is written


@dataclass(frozen=True)
class SourceFile:
    """One file of a submission: its name as handed in (shown, never used as a path) and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What one student handed in.

    Args:
        student: the id that the gradebook uses; safe as a file name (see `ttutor.grading.submission`).
        files: the files to grade, in the order in which they count (a later definition wins).
        notes: what was found while collecting, one sentence each, for instructor and student.
        problem: why nothing of it can be graded, or None.
    """

    student: str
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class CaseMark:
    """One case: what it was worth and what was earned. Hidden cases show neither name nor inputs to the student."""

    name: str
    state: State
    earned: int
    possible: int
    hidden: bool = False


@dataclass(frozen=True, kw_only=True)
class ExerciseMark:
    """One exercise of one submission.

    Args:
        exercise_id: such as ``attention.softmax``.
        title: its title.
        state: the worst that happened in it that a reader should know first.
        earned: points, in the assignment's scale.
        possible: what it is worth in this assignment.
        hint_id: which hint the message is, or None where it is right; for the class summary.
        message: what to tell the student; nothing of a hidden case stands in it.
        cases: every case that was tried.
        warnings: what stands in it that is no word of the exercise, with its line; it costs no points by itself.
        seconds: how long its code ran; not part of what must be the same twice.
    """

    exercise_id: str
    title: str
    state: State
    earned: float
    possible: float
    hint_id: str | None = None
    message: str = ""
    cases: tuple[CaseMark, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SubmissionMark:
    """A whole submission, graded.

    Args:
        student: as in `Submission`.
        state: ``OK`` where it was graded (whatever it earned), ``NOT_GRADABLE``, ``MISSING`` or ``GRADER_ERROR``.
        exercises: in the assignment's order, one for each, always.
        sandbox: the level that its code ran at, such as ``bubblewrap``.
        notes: of collecting, loading and running, one sentence each.
        seconds: wall seconds of all of it; not part of what must be the same twice.
        cpu_seconds: of one core, of judge and workers together; not part of what must be the same twice.
        memory_bytes: peak resident size of the worker; not part of what must be the same twice.
    """

    student: str
    state: State
    exercises: tuple[ExerciseMark, ...]
    sandbox: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def earned(self) -> float:
        """Points of all exercises."""
        return sum(one.earned for one in self.exercises)

    @property
    def possible(self) -> float:
        """What all exercises are worth."""
        return sum(one.possible for one in self.exercises)


def without_points(asked: Worth | ByHand, title: str, state: State) -> ExerciseMark:
    """Return the mark of one piece that was not graded."""
    return ExerciseMark(exercise_id=asked.exercise_id, title=title, state=state, earned=0.0, possible=asked.points)


def ungraded(assignment: Assignment, student: str, state: State, sandbox: str) -> SubmissionMark:
    """Return the mark of what was not graded: every exercise in that state, and no points."""
    from ttutor.exercises.registry import find  # loads PyTorch, which most that is done with marks does not need

    exercises = tuple(without_points(one, find(one.exercise_id).title, state) for one in assignment.exercises)
    return SubmissionMark(student=student, state=state, exercises=exercises, sandbox=sandbox)


def counted(count: int | float, what: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "point"), counted(2.5, "point"), counted(0, "piece")
    ('1 point', '2.5 points', '0 pieces')
    """
    return f"{count:g} {what}{'' if count == 1 else 's'}"


def number(value: int | float | None) -> str:
    """Write points without needless digits, and nothing where there are none.

    >>> number(10.0), number(2.5), number(1 / 3), number(0.0), number(None)
    ('10', '2.5', '0.3333', '0', '')
    """
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")
