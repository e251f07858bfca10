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
from ttutor.grading.answer import Definition, FileRead, chosen, is_broken, is_untouched, names_of, read_files
from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.marks import ExerciseMark, State, Submission, SubmissionMark, number, ungraded
from ttutor.grading.sandbox import Sandbox, SandboxError
from ttutor.grading.session import RemoteAnswer, Session
from ttutor.grading.student_error import StudentCodeFailed, is_from_worker, shown
from ttutor.grading.verdict import Verdict, checked_looks, unseen, verdict_on
from ttutor.grading.vocabulary import strange_words
from ttutor.grading.worker.framing import Malformed

WAITS = "Something stands in it that this exercise gives no reason for (below): a person looks before it has a mark."


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
        wanted = [name for one in self.exercises for name in names_of(one)]
        self.files = read_files(self.session, submission.files, wanted)
        self.notes = [note for file in self.files for note in (*file.notes, *([file.problem] if file.problem else []))]
        if all(file.problem for file in self.files):
            nothing = ungraded(self.assignment, submission.student, State.NOT_GRADABLE, self.session.sandbox.kind)
            return replace(nothing, notes=tuple(map(shown, self.notes)))
        marks = tuple(map(self._exercise, range(len(self.exercises))))
        notes = dict.fromkeys((*self.notes, *self.session.notes))
        return SubmissionMark(
            student=submission.student,
            state=State.GRADER_ERROR if any(one.state is State.GRADER_ERROR for one in marks) else State.OK,
            exercises=marks,
            sandbox=self.session.sandbox.kind,
            notes=tuple(map(shown, notes)),
        )

    def _exercise(self, index: int) -> ExerciseMark:
        exercise, possible, started = self.exercises[index], self.assignment.exercises[index].points, time.monotonic()
        definition = chosen(exercise, self.files)
        strange = strange_words(exercise, [piece for _, piece in definition.pieces]) if definition else ()
        verdict = self._guarded(exercise, definition)
        if strange and self.assignment.strict and verdict.state is not State.GRADER_ERROR:
            strange = (*strange, f"the grader by itself would give {number(verdict.share * possible)} points")
            verdict = unseen(exercise, State.NOT_GRADABLE, None, WAITS)
        return ExerciseMark(
            exercise_id=exercise.id,
            title=exercise.title,
            state=verdict.state,
            earned=round(verdict.share * possible, 6),
            possible=possible,
            hint_id=verdict.hint_id,
            message=shown(verdict.message),
            cases=verdict.cases,
            warnings=strange,
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
            self.notes.append(f"{exercise.id}: what came of it cannot be compared ({type(error).__name__})")
            self.session.close()
            return unseen(exercise, State.CRASH, "crash", "What your code gives cannot be compared with anything.")

    def _failed(self, exercise: Exercise, error: Exception) -> Verdict:
        self.notes.append("".join(traceback.format_exception(error))[-2000:])
        return unseen(exercise, State.GRADER_ERROR, None, f"the grader failed: {type(error).__name__}: {error}")

    def _verdict(self, exercise: Exercise, definition: Definition | None) -> Verdict:
        if definition is None:
            return self._missing(exercise)
        if is_untouched(exercise, definition.facts):
            text = wording.not_started(definition.name, is_puzzle=is_puzzle(exercise))
            return unseen(exercise, State.MISSING, "not_started", text)
        answer = RemoteAnswer(self.session, definition)
        problem = self._cannot_load(exercise, answer)
        return verdict_on(exercise, answer, self.assignment.inputs_seed) if problem is None else problem

    def _missing(self, exercise: Exercise) -> Verdict:
        if is_broken(exercise, self.files) or any(file.problem for file in self.files):
            text = f"`{exercise.name}` stands where the file cannot be read as Python; a human will look at it."
            return unseen(exercise, State.NOT_GRADABLE, None, text)
        return unseen(exercise, State.MISSING, None, f"`{exercise.name}` was not handed in.")

    def _cannot_load(self, exercise: Exercise, answer: RemoteAnswer) -> Verdict | None:
        n_inputs = len(make_inputs(exercise, exercise.cases[0], self.assignment.inputs_seed))
        try:
            self.session.enter(exercise, answer.definition, hidden=False)
            looks = checked_looks(self.session.see(answer.definition, n_inputs))
            problem = cannot_load(exercise, looks, input_names(exercise, n_inputs))
        except StudentCodeFailed as trouble:
            return unseen(exercise, State(trouble.kind), trouble.kind, f"While it is loaded: {trouble}.")
        except Malformed:
            return unseen(exercise, State.CRASH, "crash", f"While it is loaded: {self.session.crashed()}.")
        except Exception as error:
            if not is_from_worker(error):
                raise
            places = [(answer.definition.file, at) for at, _ in answer.definition.pieces]
            failed = [self.session.failed[place] for place in places if place in self.session.failed]
            why = " ".join(failed) or wording.error(error)
            return unseen(exercise, State.ERROR, "cannot_load", f"`{answer.definition.name}` is not defined: {why}")
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
