"""Grading submissions one after the other, in one lane; a run with ``-j N`` has N of them, each in its own process."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from types import TracebackType

import torch

from ttutor.exercises import wording
from ttutor.exercises.exercise import Exercise
from ttutor.exercises.registry import find
from ttutor.exercises.running import input_names, make_inputs
from ttutor.exercises.student_code import is_puzzle
from ttutor.grading import static
from ttutor.grading.answers import RemoteAnswer, cannot_be_called, target_of
from ttutor.grading.asked import Assigned, ToGrade, inputs_seed
from ttutor.grading.bundles import given_to, sources_for
from ttutor.grading.channel import Malformed
from ttutor.grading.ladder import choose_level, open_lane
from ttutor.grading.marks import ExerciseMark, State, Submission, SubmissionMark
from ttutor.grading.raised import Trouble, is_from_worker, shown
from ttutor.grading.reading import FileRead, read_files
from ttutor.grading.sandbox import Level
from ttutor.grading.session import Limits, Session
from ttutor.grading.verdict import Verdict, unseen, verdict_on

__all__ = ["Assigned", "Grader", "ToGrade", "inputs_seed"]

Definition = tuple[int, str, static.Facts]


class Grader:
    """Grades submissions one after the other; a context manager, since it holds processes.

    Args:
        assignment: what was asked and how it is marked.
        sandbox: the level to use, by name; the strongest that works here when left out.
        require_sandbox: refuse levels that do not hide this machine's files from submissions.
        submission_seconds: how long all of one submission may take; when left out, a minute and three calls' time
            for each exercise.

    Raises:
        SandboxError: the level does not work here, or is too weak.
    """

    def __init__(
        self,
        assignment: ToGrade,
        *,
        sandbox: str | None = None,
        require_sandbox: bool = False,
        submission_seconds: float | None = None,
    ) -> None:
        self.assignment, self.seed = assignment, inputs_seed(assignment.seed)
        self.exercises = [find(one.exercise_id) for one in assignment.exercises]
        self.memory = assignment.memory << 20
        self.seconds = submission_seconds or 60 + 3 * assignment.seconds * len(self.exercises)
        self._level = choose_level(sandbox, require_sandbox=require_sandbox)
        self._lane = open_lane(self._level)

    @property
    def level(self) -> str:
        """The sandbox's name."""
        return self._level.name

    @property
    def sandbox(self) -> Level:
        """The sandbox's level."""
        return self._level

    @property
    def worker_user(self) -> int | None:
        """Whom workers become, where the judge is root."""
        return self._lane.user

    def strays(self) -> list[int]:
        """The processes of submissions that are still there although none is being graded; there should be none."""
        return self._lane.strays()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process that it holds."""
        self._lane.close()

    def grade(self, submission: Submission) -> SubmissionMark:
        """Return what a submission is worth; nothing that a submission contains makes it raise."""
        started, threads = time.monotonic(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            sitting = _Sitting(self, submission)
            mark = sitting.mark()
        finally:
            torch.set_num_threads(threads)
        return SubmissionMark(**mark, seconds=time.monotonic() - started, memory_bytes=sitting.memory)

    def worth(self, index: int) -> float:
        """What an exercise is worth in the assignment."""
        points = self.assignment.exercises[index].points
        return float(self.exercises[index].points if points is None else points)

    def read(self, submission: Submission) -> list[FileRead]:
        """Have a submission's files read."""
        wanted = [name for one in self.exercises for name in static.names_of(one)]
        return read_files(self._lane, submission.files, wanted, self.memory)

    def session(self, files: list[FileRead], exercises: list[Exercise], limits: Limits) -> Session:
        """Open a session in which some exercises' answers run."""
        return Session(self._lane, files, sources_for(exercises), limits)


class _Sitting:
    """The grading of one submission."""

    def __init__(self, grader: Grader, submission: Submission) -> None:
        self.grader, self.submission = grader, submission
        self.files: list[FileRead] = []
        self.memory = 0
        self.notes: list[str] = []

    def mark(self) -> dict[str, object]:
        """Grade it; return the fields of its mark."""
        if self.submission.problem is not None:
            return self._whole(State.NOT_GRADABLE, [self.submission.problem])
        if not self.submission.files:
            return self._whole(State.MISSING, [])
        self.files = self.grader.read(self.submission)
        self.notes = [note for file in self.files for note in (*file.notes, *([file.problem] if file.problem else []))]
        if all(file.problem for file in self.files):
            return self._whole(State.NOT_GRADABLE, self.notes)
        marks: dict[int, ExerciseMark] = {}
        limits = Limits(self.grader.assignment.seconds, self.grader.seconds, self.grader.memory)
        for group in self._groups():
            marks |= self._grade(group, limits)
        exercises = tuple(marks[index] for index in range(len(self.grader.exercises)))
        failed = any(one.state is State.GRADER_ERROR for one in exercises)
        return self._fields(State.GRADER_ERROR if failed else State.OK, exercises, self.notes)

    def _groups(self) -> Iterable[list[int]]:
        """The exercises that can share a process: those that are given the same functions of the package.

        What one exercise gives may be what another asks for.
        """
        groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for index, exercise in enumerate(self.grader.exercises):
            groups.setdefault(given_to(exercise), []).append(index)
        return groups.values()

    def _grade(self, group: list[int], limits: Limits) -> dict[int, ExerciseMark]:
        exercises = [self.grader.exercises[index] for index in group]
        session = self.grader.session(self.files, exercises, limits)
        try:
            return {index: self._exercise(session, index) for index in group}
        finally:
            session.close()
            self.memory = max(self.memory, session.memory)
            self.notes += [note for note in session.notes if note not in self.notes]

    def _exercise(self, session: Session, index: int) -> ExerciseMark:
        """Grade one exercise; a mistake of the grader's own costs nobody a mark: there is none."""
        exercise, started = self.grader.exercises[index], time.monotonic()
        definition = static.chosen(exercise, self.files)
        try:
            verdict = self._verdict(session, exercise, definition)
        except Exception as error:
            self.notes.append("".join(traceback.format_exception(error))[-2000:])
            verdict = unseen(exercise, State.GRADER_ERROR, None, f"the grader failed: {type(error).__name__}: {error}")
        facts = definition[2] if definition else None
        return ExerciseMark(
            exercise_id=exercise.id,
            title=exercise.title,
            state=verdict.state,
            earned=round(verdict.share * self.grader.worth(index), 6),
            possible=self.grader.worth(index),
            hint_id=verdict.hint_id,
            message=shown(verdict.message),
            cases=verdict.cases,
            warnings=static.warnings_about(facts, self.files[definition[0]]) if definition else (),
            similarity=static.similarity(exercise, facts) if facts else None,
            seconds=time.monotonic() - started,
        )

    def _verdict(self, session: Session, exercise: Exercise, definition: Definition | None) -> Verdict:
        if definition is None:
            return self._missing(exercise)
        file, name, facts = definition
        if static.is_untouched(exercise, facts):
            text = wording.not_started(name, is_puzzle=is_puzzle(exercise))
            return unseen(exercise, State.MISSING, "not_started", text)
        answer = RemoteAnswer(session, target_of(exercise, file, name))
        if (problem := self._cannot_load(exercise, answer)) is not None:
            return problem
        if (used := static.shortcut(exercise, facts)) is not None:
            return unseen(exercise, State.WRONG, "shortcut", wording.shortcut(used))
        return verdict_on(exercise, answer, self.grader.seed)

    def _missing(self, exercise: Exercise) -> Verdict:
        broken = static.is_broken(exercise, self.files) or any(file.problem for file in self.files)
        if broken:
            text = f"`{exercise.name}` stands where the file cannot be read as Python; a human will look at it."
            return unseen(exercise, State.NOT_GRADABLE, None, text)
        return unseen(exercise, State.MISSING, None, f"`{exercise.name}` was not handed in.")

    def _cannot_load(self, exercise: Exercise, answer: RemoteAnswer) -> Verdict | None:
        inputs = make_inputs(exercise, exercise.cases[0], self.grader.seed)
        try:
            seen = answer.session.see(answer.target)
            problem = cannot_be_called(exercise, seen, inputs, input_names(exercise, len(inputs)))
        except Trouble as trouble:
            return unseen(exercise, State(trouble.kind), trouble.kind, f"While it is loaded: {trouble}.")
        except Malformed:
            return unseen(exercise, State.CRASH, "crash", f"While it is loaded: {answer.session.crashed()}.")
        except Exception as error:
            if not is_from_worker(error):
                raise
            failed = " ".join(answer.session.failed.values()) or wording.error(error)
            return unseen(exercise, State.ERROR, "cannot_load", f"`{answer.target.name}` is not defined: {failed}")
        return None if problem is None else unseen(exercise, State.ERROR, "cannot_load", problem)

    def _whole(self, state: State, notes: list[str]) -> dict[str, object]:
        marks = []
        for index, exercise in enumerate(self.grader.exercises):
            verdict = unseen(exercise, state, None, "")
            marks.append(
                ExerciseMark(
                    exercise_id=exercise.id,
                    title=exercise.title,
                    state=state,
                    earned=0.0,
                    possible=self.grader.worth(index),
                    cases=verdict.cases,
                )
            )
        return self._fields(state, tuple(marks), notes)

    def _fields(self, state: State, exercises: tuple[ExerciseMark, ...], notes: list[str]) -> dict[str, object]:
        student, level = self.submission.student, self.grader.level
        return {
            "student": student,
            "state": state,
            "exercises": exercises,
            "sandbox": level,
            "notes": tuple(map(shown, notes)),
        }
