"""Marking one submission: which of its definitions answers what, what came of each, and what to say where none did."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ttutor.exercises import wording
from ttutor.exercises.exercise import Exercise
from ttutor.exercises.running import input_names, make_inputs
from ttutor.exercises.student_code import is_puzzle
from ttutor.grading import static
from ttutor.grading.answers import RemoteAnswer, cannot_be_called, target_of
from ttutor.grading.bundles import given_to
from ttutor.grading.channel import Malformed
from ttutor.grading.marks import ExerciseMark, State, Submission
from ttutor.grading.raised import Trouble, is_from_worker, shown
from ttutor.grading.reading import FileRead
from ttutor.grading.session import Limits, Session
from ttutor.grading.verdict import Verdict, unseen, verdict_on

if TYPE_CHECKING:
    from ttutor.grading.judging import Grader

__all__ = ["Marking"]

Definition = tuple[int, str, static.Facts]


class Marking:
    """The grading of one submission.

    Args:
        grader: reads it, and runs what it holds.
        submission: what was handed in.
    """

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
