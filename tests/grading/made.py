"""What the tests of the class's side are made of: assignments, marks, archives, and a class to grade."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.grading.fake import HIDDEN
from ttutor.grading.assignment import Assignment, Lateness, assignment_of
from ttutor.grading.grade_request import LOCK
from ttutor.grading.marks import CaseMark, ExerciseMark, State, SubmissionMark
from ttutor.grading.record import Record

SOFTMAX, MASK = "attention.softmax", "attention.causal_mask"
THEN = 1_790_000_000
"""A moment for files, so that dates are the same in every run."""


def asked(**more: object) -> Assignment:
    """An assignment of two exercises, with whatever else a test asks for."""
    return assignment_of({"title": "Homework 1", "seed": "a secret", "exercises": {SOFTMAX: 4, MASK: 2}, **more})


def marked(exercise_id: str = SOFTMAX, state: State = State.OK, **more: object) -> ExerciseMark:
    """An exercise with two cases to be seen and one hidden."""
    cases = tuple(
        CaseMark(name=name, state=state, earned=int(state is State.OK), possible=1, hidden=name == HIDDEN)
        for name in ("one row", "two rows", HIDDEN)
    )
    whole = {SOFTMAX: 4.0, MASK: 2.0}[exercise_id]
    plain = {"title": "Softmax", "earned": whole * (state is State.OK), "possible": whole, "cases": cases}
    return ExerciseMark(exercise_id=exercise_id, state=state, **{**plain, **more})


def recorded(
    student: str = "ada", *exercises: ExerciseMark, state: State = State.OK, notes: tuple[str, ...] = (), **more: object
) -> Record:
    """A record of two exercises, both right unless told otherwise."""
    exercises = exercises or (marked(SOFTMAX), marked(MASK))
    mark = SubmissionMark(student=student, state=state, exercises=exercises, sandbox="none", notes=notes)
    return Record(**{"key": "k", "shown": student.title(), **more}, mark=mark)


LATE = Lateness(5.0, 10.0)


def zipped(files: Mapping[str, bytes], *, links: tuple[str, ...] = (), when: tuple = (2026, 1, 1, 0, 0, 0)) -> bytes:
    """A zip with these files; those named in `links` are links to what they hold."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, when)
            info.external_attr = (stat.S_IFLNK if name in links else stat.S_IFREG | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return written.getvalue()


def put(folder: Path, files: Mapping[str, bytes | str], when: float = THEN) -> Path:
    """Write files under a folder, all of one date; return the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(path, (when, when))
    return folder


RIGHT = f"{SOFTMAX}=ok {MASK}=ok"


def class_of_twelve(folder: Path) -> Path:
    """Twelve submissions as they come: right, wrong, broken, zipped, renamed, hostile, empty."""
    many = "\n".join(f"an unusual line number {number}" for number in range(20))
    put(
        folder,
        {
            "ada.py": RIGHT + "\n" + many,
            "bela.ipynb": f"{SOFTMAX}=ok {MASK}=wrong (Your `x` sums to 1)",
            "copy.py": "COPIED " + RIGHT + "\n" + many,
            "dora/hw1.py": f"{SOFTMAX}=wrong",
            "dora/hw1 (1).py": f"{SOFTMAX}=ok",
            "emil.zip": zipped({"../../evil.py": b"x", "hw/hw1.py": f"{SOFTMAX}=error (ValueError: <b>)".encode()}),
            "=fay().py": f"{SOFTMAX}=timeout {MASK}=crash",
            "guy.py": b"\xff\xfe not UTF-8",
            "hal.py": "NOT_GRADABLE NOTE its syntax cannot be read",
            "ida.zip": b"PK\x05\x06 no zip at all",
            "jo/report.pdf": b"%PDF",
            "kim.py": f"{SOFTMAX}=wrong NOTE cell 3 was left out",
            "Zoë Ångström_417_assignsubmission_file/hw1.py": RIGHT,
        },
    )
    os.utime(folder / "dora" / "hw1 (1).py", (THEN + 60, THEN + 60))
    return folder


def all_bytes(out: Path) -> dict[str, bytes]:
    """Every file of a folder of results but the timings and the lock, which says who graded here last."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.relative_to(out).parts[0] not in ("timings", LOCK)
    }
