"""Grading submissions one after the other: each is read and run in a process of its own, and judged here."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from pathlib import Path

import torch

from ttutor.exercises import wording
from ttutor.exercises.exercise import Exercise
from ttutor.exercises.known import expectations
from ttutor.exercises.registry import find
from ttutor.exercises.running import input_names, make_inputs
from ttutor.exercises.student_code import is_puzzle
from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.judging import definitions
from ttutor.grading.judging.bundles import share_a_process, sources_for
from ttutor.grading.judging.raised import Trouble, is_from_worker, shown
from ttutor.grading.judging.session import Limits, RemoteAnswer, Session
from ttutor.grading.judging.submitted import FileRead, read_files
from ttutor.grading.judging.verdict import Verdict, cannot_be_called, unseen, verdict_on
from ttutor.grading.marks import ExerciseMark, State, Submission, SubmissionMark
from ttutor.grading.sandbox.choose import BUBBLEWRAP, Sandbox, SandboxError
from ttutor.grading.worker.framing import Malformed

__all__ = ["Grader", "exercises_of"]

Definition = tuple[int, str, definitions.Facts]
PROBE_MEMORY = 1 << 30


class Grader:
    """Grades submissions one after the other.

    Args:
        assignment: what was asked and how it is marked.
        sandbox: how submissions are shut in, one of `ttutor.grading.sandbox.choose.KINDS`.
        hidden: places of the class, which no submission may read.

    Raises:
        SandboxError: that cannot be had here; the message says why and what to do.
    """

    def __init__(self, assignment: Assignment, *, sandbox: str = BUBBLEWRAP, hidden: tuple[Path, ...] = ()) -> None:
        self.assignment, self.seed = assignment, assignment.inputs_seed
        self.exercises = exercises_of(assignment)
        self.sandbox = Sandbox(sandbox, hidden)
        self._try_sandbox()

    @property
    def level(self) -> str:
        """The sandbox's name."""
        return self.sandbox.kind

    def grade(self, submission: Submission) -> SubmissionMark:
        """Return what a submission is worth; nothing that a submission contains makes it raise."""
        started, threads = time.monotonic(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            mark = _Marking(self, submission).mark()
        finally:
            torch.set_num_threads(threads)
        return replace(mark, seconds=time.monotonic() - started)

    def worth(self, index: int) -> float:
        """What an exercise is worth in the assignment."""
        return float(self.assignment.exercises[index].points)

    def session(self) -> Session:
        """Open a session for one submission."""
        limits = Limits(self.assignment.seconds, self.assignment.longest, self.assignment.memory << 20)
        return Session(self.sandbox, limits)

    def _try_sandbox(self) -> None:
        """See whether a worker starts and answers."""
        why = self.sandbox.problem()
        if why is None:
            try:
                with Session(self.sandbox, Limits(60.0, 60.0, PROBE_MEMORY)) as session:
                    why = None if session.read((), []) == [] else "its process does not answer as it should"
            except SandboxError as error:
                why = str(error)
        if why is not None:
            raise SandboxError(
                f"submissions cannot be shut in by {self.sandbox.kind} here: {why}. Use a machine on which that works, "
                "or --trusted where you would run every submission by hand"
            )


class _Marking:
    """The grading of one submission."""

    def __init__(self, grader: Grader, submission: Submission) -> None:
        self.grader, self.submission = grader, submission
        self.files: list[FileRead] = []
        self.notes: list[str] = []
        self.memory = 0

    def mark(self) -> SubmissionMark:
        if self.submission.problem is not None:
            return self._whole(State.NOT_GRADABLE, [self.submission.problem])
        if not self.submission.files:
            return self._whole(State.MISSING, [])
        with self.grader.session() as session:
            try:
                return self._marked(session)
            finally:
                session.close()
                self.memory = session.memory

    def _marked(self, session: Session) -> SubmissionMark:
        exercises = self.grader.exercises
        wanted = [name for one in exercises for name in definitions.names_of(one)]
        self.files = read_files(session, self.submission.files, wanted)
        self.notes = [note for file in self.files for note in (*file.notes, *([file.problem] if file.problem else []))]
        if all(file.problem for file in self.files):
            return self._whole(State.NOT_GRADABLE, self.notes)
        marks: dict[int, ExerciseMark] = {}
        for group in share_a_process(exercises):
            session.provide(self.files, sources_for([exercises[index] for index in group]))
            marks |= {index: self._exercise(session, index) for index in group}
        self.notes += [note for note in session.notes if note not in self.notes]
        self.memory = session.memory
        failed = any(one.state is State.GRADER_ERROR for one in marks.values())
        state = State.GRADER_ERROR if failed else State.OK
        return self._fields(state, tuple(marks[index] for index in range(len(exercises))), self.notes)

    def _exercise(self, session: Session, index: int) -> ExerciseMark:
        exercise, started = self.grader.exercises[index], time.monotonic()
        definition = definitions.chosen(exercise, self.files)
        verdict = self._guarded(session, exercise, definition)
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
            warnings=definitions.warnings_about(self.files[definition[0]]) if definition else (),
            similarity=definitions.similarity(exercise, facts) if facts else None,
            seconds=time.monotonic() - started,
        )

    def _guarded(self, session: Session, exercise: Exercise, definition: Definition | None) -> Verdict:
        """The verdict on one exercise. Our own mistakes cost nobody a mark; what a submission sends costs its own."""
        try:
            expectations(exercise, self.grader.seed, exercise.cases)
        except Exception as error:
            return self._failed(exercise, error)
        try:
            return self._verdict(session, exercise, definition)
        except SandboxError as error:
            return self._failed(exercise, error)
        except Exception as error:
            self.notes.append(f"{exercise.id}: what came of it cannot be compared ({type(error).__name__}: {error})")
            session.close()
            return unseen(exercise, State.CRASH, "crash", "What your code gives cannot be compared with anything.")

    def _failed(self, exercise: Exercise, error: Exception) -> Verdict:
        self.notes.append("".join(traceback.format_exception(error))[-2000:])
        return unseen(exercise, State.GRADER_ERROR, None, f"the grader failed: {type(error).__name__}: {error}")

    def _verdict(self, session: Session, exercise: Exercise, definition: Definition | None) -> Verdict:
        if definition is None:
            return self._missing(exercise)
        file, name, facts = definition
        if definitions.is_untouched(exercise, facts):
            text = wording.not_started(name, is_puzzle=is_puzzle(exercise))
            return unseen(exercise, State.MISSING, "not_started", text)
        answer = RemoteAnswer(session, file, name)
        problem = self._cannot_load(exercise, answer)
        return verdict_on(exercise, answer, self.grader.seed) if problem is None else problem

    def _missing(self, exercise: Exercise) -> Verdict:
        if definitions.is_broken(exercise, self.files) or any(file.problem for file in self.files):
            text = f"`{exercise.name}` stands where the file cannot be read as Python; a human will look at it."
            return unseen(exercise, State.NOT_GRADABLE, None, text)
        return unseen(exercise, State.MISSING, None, f"`{exercise.name}` was not handed in.")

    def _cannot_load(self, exercise: Exercise, answer: RemoteAnswer) -> Verdict | None:
        inputs = make_inputs(exercise, exercise.cases[0], self.grader.seed)
        try:
            seen = answer.session.see(answer.file, answer.name)
            problem = cannot_be_called(exercise, seen, inputs, input_names(exercise, len(inputs)))
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

    def _whole(self, state: State, notes: list[str]) -> SubmissionMark:
        marks = [
            ExerciseMark(
                exercise_id=exercise.id,
                title=exercise.title,
                state=state,
                earned=0.0,
                possible=self.grader.worth(index),
                cases=unseen(exercise, state, None, "").cases,
            )
            for index, exercise in enumerate(self.grader.exercises)
        ]
        return self._fields(state, tuple(marks), notes)

    def _fields(self, state: State, exercises: tuple[ExerciseMark, ...], notes: list[str]) -> SubmissionMark:
        return SubmissionMark(
            student=self.submission.student,
            state=state,
            exercises=exercises,
            sandbox=self.grader.level,
            notes=tuple(map(shown, notes)),
            memory_bytes=self.memory,
        )


def exercises_of(assignment: Assignment) -> list[Exercise]:
    """Return the exercises that an assignment asks for, with those of their cases hidden that it hides."""
    return [_as_asked(find(one.exercise_id), one) for one in assignment.exercises]


def _as_asked(exercise: Exercise, worth: Worth) -> Exercise:
    hidden = [worth.case_hidden(case.name, case.hidden) for case in exercise.cases]
    if hidden == [case.hidden for case in exercise.cases]:
        return exercise
    pairs = zip(exercise.cases, hidden, strict=True)
    return replace(exercise, cases=tuple(replace(case, hidden=is_hidden) for case, is_hidden in pairs))
