"""Grading submissions one after the other: each is read and run in a process of its own, and judged here."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace

import torch

from ttutor.exercises import wording
from ttutor.exercises.exercise import Exercise
from ttutor.exercises.known import expectations
from ttutor.exercises.registry import find
from ttutor.exercises.running import input_names, make_inputs
from ttutor.exercises.student_code import cannot_load, is_puzzle
from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.judging import definitions
from ttutor.grading.judging.bundles import share_a_process, sources_for
from ttutor.grading.judging.raised import Trouble, is_from_worker, shown
from ttutor.grading.judging.session import RemoteAnswer, Session
from ttutor.grading.judging.submitted import FileRead, read_files
from ttutor.grading.judging.verdict import Verdict, checked_looks, unseen, verdict_on
from ttutor.grading.marks import ExerciseMark, State, Submission, SubmissionMark, ungraded
from ttutor.grading.sandbox.choose import Sandbox, SandboxError
from ttutor.grading.worker.framing import Malformed

Definition = tuple[int, str, definitions.Facts]


class Grader:
    """Grades submissions one after the other.

    Args:
        assignment: what was asked and how it is marked.
        sandbox: how submissions are shut in.
    """

    def __init__(self, assignment: Assignment, sandbox: Sandbox) -> None:
        self.assignment, self.sandbox = assignment, sandbox
        self.exercises = exercises_of(assignment)

    def grade(self, submission: Submission) -> SubmissionMark:
        """Return what a submission of one file or more is worth; nothing that it contains makes this raise."""
        started, computed, threads = time.monotonic(), time.process_time(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with Session(self.sandbox, self.assignment.limits, self.assignment.longest) as session:
                mark = _Marking(self, session).mark(submission)
        finally:
            torch.set_num_threads(threads)
        return replace(
            mark,
            seconds=time.monotonic() - started,
            cpu_seconds=time.process_time() - computed + session.cpu_seconds,
            memory_bytes=session.memory,
        )


class _Marking:
    """The grading of one submission."""

    def __init__(self, grader: Grader, session: Session) -> None:
        self.assignment, self.exercises, self.session = grader.assignment, grader.exercises, session
        self.files: list[FileRead] = []
        self.notes: list[str] = []

    def mark(self, submission: Submission) -> SubmissionMark:
        wanted = [name for one in self.exercises for name in definitions.names_of(one)]
        self.files = read_files(self.session, submission.files, wanted)
        self.notes = [note for file in self.files for note in (*file.notes, *([file.problem] if file.problem else []))]
        if all(file.problem for file in self.files):
            nothing = ungraded(self.assignment, submission.student, State.NOT_GRADABLE, self.session.sandbox.kind)
            return replace(nothing, notes=tuple(map(shown, self.notes)))
        marks: dict[int, ExerciseMark] = {}
        for group in share_a_process(self.exercises):
            self.session.provide(self.files, sources_for([self.exercises[index] for index in group]))
            marks |= {index: self._exercise(index) for index in group}
        notes = dict.fromkeys((*self.notes, *self.session.notes))
        return SubmissionMark(
            student=submission.student,
            state=State.GRADER_ERROR if any(one.state is State.GRADER_ERROR for one in marks.values()) else State.OK,
            exercises=tuple(marks[index] for index in sorted(marks)),
            sandbox=self.session.sandbox.kind,
            notes=tuple(map(shown, notes)),
        )

    def _exercise(self, index: int) -> ExerciseMark:
        exercise, possible, started = self.exercises[index], self.assignment.exercises[index].points, time.monotonic()
        definition = definitions.chosen(exercise, self.files)
        verdict = self._guarded(exercise, definition)
        return ExerciseMark(
            exercise_id=exercise.id,
            title=exercise.title,
            state=verdict.state,
            earned=round(verdict.share * possible, 6),
            possible=possible,
            hint_id=verdict.hint_id,
            message=shown(verdict.message),
            cases=verdict.cases,
            warnings=definitions.warnings_about(self.files[definition[0]]) if definition else (),
            similarity=definitions.similarity(exercise, definition[2]) if definition else None,
            seconds=time.monotonic() - started,
        )

    def _guarded(self, exercise: Exercise, definition: Definition | None) -> Verdict:
        """The verdict on one exercise. Our own mistakes cost nobody a mark; what a submission sends costs its own."""
        try:
            expectations(exercise, self.assignment.inputs_seed, exercise.cases)
        except Exception as error:
            return self._failed(exercise, error)
        try:
            return self._verdict(exercise, definition)
        except SandboxError as error:
            return self._failed(exercise, error)
        except Exception as error:
            self.notes.append(f"{exercise.id}: what came of it cannot be compared ({type(error).__name__}: {error})")
            self.session.close()
            return unseen(exercise, State.CRASH, "crash", "What your code gives cannot be compared with anything.")

    def _failed(self, exercise: Exercise, error: Exception) -> Verdict:
        self.notes.append("".join(traceback.format_exception(error))[-2000:])
        return unseen(exercise, State.GRADER_ERROR, None, f"the grader failed: {type(error).__name__}: {error}")

    def _verdict(self, exercise: Exercise, definition: Definition | None) -> Verdict:
        if definition is None:
            return self._missing(exercise)
        file, name, facts = definition
        if definitions.is_untouched(exercise, facts):
            text = wording.not_started(name, is_puzzle=is_puzzle(exercise))
            return unseen(exercise, State.MISSING, "not_started", text)
        answer = RemoteAnswer(self.session, file, name)
        problem = self._cannot_load(exercise, answer)
        return verdict_on(exercise, answer, self.assignment.inputs_seed) if problem is None else problem

    def _missing(self, exercise: Exercise) -> Verdict:
        if definitions.is_broken(exercise, self.files) or any(file.problem for file in self.files):
            text = f"`{exercise.name}` stands where the file cannot be read as Python; a human will look at it."
            return unseen(exercise, State.NOT_GRADABLE, None, text)
        return unseen(exercise, State.MISSING, None, f"`{exercise.name}` was not handed in.")

    def _cannot_load(self, exercise: Exercise, answer: RemoteAnswer) -> Verdict | None:
        n_inputs = len(make_inputs(exercise, exercise.cases[0], self.assignment.inputs_seed))
        try:
            looks = checked_looks(answer.session.see(answer.file, answer.name, n_inputs))
            problem = cannot_load(exercise, looks, input_names(exercise, n_inputs))
        except Trouble as trouble:
            return unseen(exercise, State(trouble.kind), trouble.kind, f"While it is loaded: {trouble}.")
        except Malformed:
            return unseen(exercise, State.CRASH, "crash", f"While it is loaded: {answer.session.crashed()}.")
        except Exception as error:
            if not is_from_worker(error):
                raise
            failed = " ".join(answer.session.failed.values()) or wording.error(error)
            return unseen(exercise, State.ERROR, "cannot_load", f"`{answer.name}` is not defined: {failed}")
        return None if problem is None else unseen(exercise, State.ERROR, "cannot_load", problem)


def exercises_of(assignment: Assignment) -> list[Exercise]:
    """Return the exercises that an assignment asks for, with those of their cases hidden that it hides."""
    return [_as_asked(find(one.exercise_id), one) for one in assignment.exercises]


def _as_asked(exercise: Exercise, worth: Worth) -> Exercise:
    hidden = [worth.case_hidden(case.name, case.hidden) for case in exercise.cases]
    if hidden == [case.hidden for case in exercise.cases]:
        return exercise
    pairs = zip(exercise.cases, hidden, strict=True)
    return replace(exercise, cases=tuple(replace(case, hidden=is_hidden) for case, is_hidden in pairs))
