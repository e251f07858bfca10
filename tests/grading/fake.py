"""A grader that runs nothing: a submission says in words how each of its exercises is to end.

``attention.softmax=ok`` anywhere in its files; an exercise that is not named is missing. ``GRADER_BUG`` makes it
raise, ``GRADER_DIES`` ends its process, ``GRADER_SLEEPS`` makes it slow.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from ttutor.grading.assignment import Assignment, Worth
from ttutor.grading.marks import CaseMark, ExerciseMark, State, Submission, SubmissionMark
from ttutor.grading.sandbox import Sandbox

HIDDEN = "the case that nobody may see"
NUMBER_OF_GRADINGS = "TTUTOR_TEST_GRADINGS"


class FakeGrader:
    """Marks as the submission says."""

    def __init__(self, assignment: Assignment, sandbox: Sandbox, own: Path | None) -> None:
        self.assignment, self.sandbox = assignment, sandbox

    def grade(self, submission: Submission) -> SubmissionMark:
        text = b"\n".join(file.data for file in submission.files).decode("utf-8", "replace")
        if path := os.environ.get(NUMBER_OF_GRADINGS):
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{submission.student}\n")
        if "GRADER_BUG" in text:
            raise ZeroDivisionError("a mistake in the grader")
        if "GRADER_DIES" in text:
            os._exit(9)
        if "GRADER_SLEEPS" in text:
            time.sleep(0.3)
        whole = State.NOT_GRADABLE if "NOT_GRADABLE" in text else State.OK
        exercises = tuple(_exercise(worth, text) for worth in self.assignment.exercises)
        notes = (*submission.notes, *re.findall(r"NOTE (.*)", text))
        return SubmissionMark(
            student=submission.student,
            state=whole,
            exercises=exercises,
            sandbox=self.sandbox.kind,
            notes=notes,
            seconds=time.monotonic(),
            memory_bytes=os.getpid(),
            cpu_seconds=time.process_time(),
        )


def _exercise(worth: Worth, text: str) -> ExerciseMark:
    found = re.search(rf"{re.escape(worth.exercise_id)}=(\w+)(?: \((.*)\))?", text)
    state = State(found[1]) if found else State.MISSING
    states = [State.OK if state is State.OK else state, State.OK if state is State.WRONG else state, state]
    names = ("one row", "two rows", HIDDEN)
    cases = tuple(
        CaseMark(
            name=name,
            state=one,
            earned=int(one is State.OK),
            possible=1,
            hidden=worth.case_hidden(name, name == HIDDEN),
        )
        for name, one in zip(names, states, strict=True)
    )
    return ExerciseMark(
        exercise_id=worth.exercise_id,
        title=worth.exercise_id.partition(".")[2].replace("_", " ").capitalize(),
        state=state,
        earned=worth.points * sum(case.earned for case in cases) / 3,
        possible=worth.points,
        hint_id="global_sum" if state is State.WRONG else None,
        message=(found[2] if found and found[2] else f"It is {state.value}."),
        cases=() if state is State.MISSING else cases,
        seconds=time.monotonic(),
    )
