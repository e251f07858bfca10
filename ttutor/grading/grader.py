"""Grading submissions one after the other: each is read and run in a process of its own, and judged here.

The verdict on an answer comes of the same cases, values, hints and words as in `check`. Only what belongs to a worker
is added: hanging, dying, and what may be said of cases that students must not know.
"""

from __future__ import annotations

import ast
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from ttutor.exercises import wording
from ttutor.exercises.diagnosis import Diagnosis, Sitting
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.forbidden import Shortcut
from ttutor.exercises.known import expectations, fingerprint, known_mistakes, outcomes_of
from ttutor.exercises.registry import find
from ttutor.exercises.running import Outcome, input_names, make_inputs
from ttutor.exercises.student_code import cannot_load, is_puzzle
from ttutor.grading.answer import Definition, FileRead, chosen, is_broken, is_untouched, names_of, read_files
from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.bundle import sources_for
from ttutor.grading.marks import CaseMark, ExerciseMark, State, Submission, SubmissionMark, number, ungraded
from ttutor.grading.sandbox import Sandbox, SandboxError
from ttutor.grading.session import RemoteAnswer, Session
from ttutor.grading.student_error import KNOWN, StudentCodeFailed, is_from_worker, place_of, shown
from ttutor.grading.vocabulary import strange_words
from ttutor.grading.worker.framing import Malformed
from ttutor.grading.worker.reader import BINDS

NOT_RIGHT = (State.WRONG, State.ERROR, State.TIMEOUT, State.CRASH)
CALLS_A_WRONG_ONE = "calls_a_wrong_one"
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
        marks = self._with_causes([self._exercise(index) for index in range(len(self.exercises))])
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

    def _with_causes(self, marks: list[ExerciseMark]) -> tuple[ExerciseMark, ...]:
        """Say of a wrong answer which other wrong ones of the hand-in it calls: its mistake may be theirs."""
        answers = [chosen(exercise, self.files) for exercise in self.exercises]
        wrong = [one if mark.state in NOT_RIGHT else None for one, mark in zip(answers, marks, strict=True)]
        told = []
        for answer, mark in zip(wrong, marks, strict=True):
            if names := [f"`{one.name}`" for one in wrong if one and answer and _calls(answer, one)]:
                are, those = ("is", "that") if len(names) == 1 else ("are", "those")
                cause = f"It calls your {' and '.join(names)}, which {are} not right: mend {those} first."
                mark = replace(
                    mark,
                    hint_id=CALLS_A_WRONG_ONE,
                    message=shown(f"{cause} What follows may come from there: {mark.message}"),
                )
            told.append(mark)
        return tuple(told)

    def _guarded(self, exercise: Exercise, definition: Definition | None) -> Verdict:
        """The verdict on one exercise. Our own mistakes cost nobody a mark; what a submission sends costs its own."""
        try:
            expectations(exercise, self.assignment.inputs_seed, exercise.cases)
            sources_for(exercise)
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


def _calls(answer: Definition, other: Definition) -> bool:
    """Whether the code of an answer names another answer of its file, which therefore has to run for it."""
    if answer.file != other.file or not set(other.facts.needs) < set(answer.facts.needs):
        return False
    try:
        own = [ast.parse(piece.source) for place, piece in answer.pieces if place not in other.facts.needs]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # as the student is told already
        return False
    defined = [one for tree in own for one in tree.body if isinstance(one, BINDS)]  # a call beside them is not its own
    return any(isinstance(node, ast.Name) and node.id == other.name for one in defined for node in ast.walk(one))


def exercises_of(assignment: Assignment) -> list[Exercise]:
    """Return the exercises that an assignment asks for, with those of their cases hidden that it hides."""
    return [_as_asked(find(one.exercise_id), one) for one in assignment.exercises]


def _as_asked(exercise: Exercise, worth: Worth) -> Exercise:
    hidden = [worth.case_hidden(case.name, case.hidden) for case in exercise.cases]
    if hidden == [case.hidden for case in exercise.cases]:
        return exercise
    pairs = zip(exercise.cases, hidden, strict=True)
    return replace(exercise, cases=tuple(replace(case, hidden=is_hidden) for case, is_hidden in pairs))


IN_HIDDEN = "In a check that runs at grading only: "
GENERIC_HIDDEN = {
    "raises": "Try inputs of other sizes, types and values than those in the book.",
    "type": "your result is not of the type that is asked for.",
    "shape": "your result does not have the right shape. Try inputs all of whose sizes differ.",
    "dtype": "your result does not have the right dtype. Does it follow the inputs?",
    "input_changed": "the inputs change while your code runs; leave the caller's data alone.",
    "non_finite": "your result has entries that are NaN or infinite. Try very large and very small inputs.",
    "differs": "your result differs from what it should be. Try inputs of other sizes and values.",
    "timeout": "your code does not come to an end in time.",
    "crash": "your code ends the process that runs it.",
}


@dataclass(frozen=True)
class Verdict:
    """What came of an answer: its state, its cases, and what to say of it."""

    state: State
    cases: tuple[CaseMark, ...]
    hint_id: str | None = None
    message: str = ""

    @property
    def share(self) -> float:
        """The share of the points that it earned, from 0 to 1."""
        possible = sum(case.possible for case in self.cases)
        return sum(case.earned for case in self.cases) / possible if possible else 0.0


def verdict_on(exercise: Exercise, answer: RemoteAnswer, seed: int) -> Verdict:
    """Try an answer on every case and return what came of it."""
    cases = exercise.cases
    expected = expectations(exercise, seed, cases)
    came = tuple(_outcome(exercise, case, answer, value, seed) for case, value in zip(cases, expected, strict=True))
    if used := [str(one.error) for one in came if isinstance(one.error, Shortcut)]:
        name = next((name for name in used if name in exercise.forbids), "what you call")  # not what a student says
        return unseen(exercise, State.WRONG, "shortcut", wording.shortcut(name))
    if all(isinstance(one.error, NotImplementedError) for one in came):
        return unseen(exercise, State.MISSING, "not_started", wording.not_started(exercise.name, is_puzzle=False))
    marks = tuple(map(_mark, cases, came))
    if all(one.right for one in came):
        return Verdict(State.OK, marks, None, wording.passed(len(cases), 0))
    state = next(state for state in (State.CRASH, State.TIMEOUT, State.ERROR, State.WRONG) if _has(marks, state))
    mistakes = known_mistakes(exercise, seed, cases)
    if (hint_id := fingerprint(mistakes, came)) is not None:
        return Verdict(state, marks, hint_id, exercise.known_mistake(hint_id).says)
    hint_id, message = _Sitting(exercise, answer, seed, cases, expected, mistakes, came).said()
    if isinstance(answer.failure, SandboxError):  # where a property looked, which takes it for the answer's
        raise answer.failure
    return Verdict(state, marks, hint_id, message)


def unseen(exercise: Exercise, state: State, hint_id: str | None, message: str) -> Verdict:
    """Return the verdict on an answer that was not run."""
    marks = [CaseMark(name=c.name, state=state, earned=0, possible=c.points, hidden=c.hidden) for c in exercise.cases]
    return Verdict(state, tuple(marks), hint_id, message)


def checked_looks(came: Any) -> dict[str, Any]:
    """Return what a worker says that it has seen of an answer; raises `Malformed` where it says nothing of the kind."""
    kinds = {"type": (str,), "class": (bool,), "callable": (bool,), "unbound": (str, type(None))}
    if type(came) is not dict or set(came) != set(kinds) or any(type(came[one]) not in kinds[one] for one in kinds):
        raise Malformed("expected what can be seen of an answer")
    return came


def _outcome(exercise: Exercise, case: Case, answer: RemoteAnswer, expected: object, seed: int) -> Outcome:
    """Try an answer on a case; trouble on the way, also while a property looked, is what came of it."""
    answer.trouble = None
    (found,) = outcomes_of(exercise, answer, (expected,), seed, (case,), exercise.forbids)
    if answer.failure is not None:
        raise answer.failure
    return found if answer.trouble is None else Outcome(error=answer.trouble)


def _mark(case: Case, came: Outcome) -> CaseMark:
    earned = case.points if came.right else 0
    return CaseMark(name=case.name, state=_state(came), earned=earned, possible=case.points, hidden=case.hidden)


def _state(came: Outcome) -> State:
    if came.right:
        return State.OK
    if isinstance(came.error, StudentCodeFailed):
        return State(came.error.kind)
    return State.WRONG if came.error is None else State.ERROR


def _has(marks: tuple[CaseMark, ...], state: State) -> bool:
    return any(mark.state is state for mark in marks)


class _Sitting(Sitting):
    """The diagnosis, which also knows what a worker can do, and what must not be said."""

    def said(self) -> tuple[str, str]:
        """Return the hint's id and what to say to the student, nothing of a hidden case in it."""
        for index in self.wrong:
            for found in self._findings(index):
                if found is not None:
                    return found[0], self._allowed(index, found)
        hint_id, message, _ = self._differs()
        return hint_id, self._allowed(next(iter(self.differences)), (hint_id, message, None))

    def _allowed(self, index: int, found: Diagnosis) -> str:
        hint_id, message, _ = found
        if not self.cases[index].hidden:
            return message
        says = {one.id: one.says for one in self.exercise.mistakes}
        says |= {one.id: one.says for one in self.exercise.properties}
        error = self.came[index].error
        raised = f"your code raises {_kind_and_line(error)}. " if hint_id == "raises" and error is not None else ""
        return IN_HIDDEN + raised + (says.get(hint_id) or GENERIC_HIDDEN[hint_id])

    def _findings(self, index: int) -> Iterator[Diagnosis | None]:
        error = self.came[index].error
        if isinstance(error, StudentCodeFailed):
            yield error.kind, f"{self._with(index)} {error}.", None
        else:
            yield from super()._findings(index)

    def _raised(self, index: int, error: BaseException) -> Diagnosis:
        place = str(place_of(error) or "")
        raised = f"{wording.error(error)}{place}.{wording.advice(error, place)}"
        return "raises", f"{self._with(index)} your code raises {raised} {self._shapes(index)}".strip(), None

    def _differs(self) -> Diagnosis:
        if not self.differences:  # right when it was first looked at, and wrong when it was looked at again
            return "differs", "Your code does not give the same result twice.", None
        index, difference = next(iter(self.differences.items()))
        pairs = zip(self.cases, self.came, strict=True)
        right = [case.name for case, one in pairs if one.right and not case.hidden]
        text = f"{self._with(index)} your result {difference.text}."
        return "differs", f"{text} {wording.what_is_right(right)}", None


def _kind_and_line(error: BaseException) -> str:
    """An exception without its text, which could tell of inputs that nobody may know."""
    name, place = type(error).__name__, place_of(error)
    kind = f"a {name}" if name in KNOWN else "an exception of its own"
    return f"{kind} (line {place.line})" if place is not None else kind
