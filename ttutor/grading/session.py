"""One submission's code at work: read, run and asked in a process of its own, which is ended when it hangs.

Each exercise, and apart from it its hidden cases, meets a process in which no other code of the submission has run.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.running import Observed
from ttutor.exercises.verify import functions_in
from ttutor.grading.answer import Definition, FileRead, Piece, files_read, shown_name
from ttutor.grading.assignment import Limits
from ttutor.grading.bundle import functions_for, sources_for
from ttutor.grading.marks import SourceFile
from ttutor.grading.sandbox import Sandbox, SandboxError
from ttutor.grading.student_error import StudentCodeFailed, exception_of, other_of
from ttutor.grading.worker.confine import can_fork
from ttutor.grading.worker.framing import Malformed, parse_json
from ttutor.grading.worker.values import Packer, Unpacker
from ttutor.grading.worker_process import Ended, Process, TimedOut

START_SECONDS, READ_SECONDS = 180.0, 60.0


class ChildEnded(Ended):
    """The process that ran a student's code is gone; what made it can make another."""


class Session:
    """The code of one submission, in processes that are started when needed; a context manager."""

    def __init__(self, sandbox: Sandbox, limits: Limits, seconds: float) -> None:
        self.sandbox, self.limits = sandbox, limits
        self.deadline = time.monotonic() + seconds
        self.notes: list[str] = []
        self.failed: dict[tuple[int, int], str] = {}  # definitions that raised, hung or crashed, and what to say
        self.hung: set[tuple[int, int]] = set()
        self.memory, self.cpu_seconds, self.asked = 0, 0.0, 0
        self._process: Process | None = None
        self._room: tuple[str, bool] | None = None  # the exercise, and whether its hidden cases, that may run here
        self._has_begun = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its process."""
        self._room, self._has_begun = None, False
        if self._process is not None:
            process, self._process = self._process, None
            memory, cpu_seconds = process.end()
            self.memory, self.cpu_seconds = max(self.memory, memory), self.cpu_seconds + cpu_seconds

    def read(self, files: tuple[SourceFile, ...], wanted: list[str]) -> list[FileRead] | None:
        """Have files taken apart, before anything of them runs; None where the process does not live through it."""
        about = [{"name": shown_name(file), "size": len(file.data)} for file in files]
        body = b"".join(file.data for file in files)
        header = {"do": "read", "files": about, "wanted": wanted}
        self._begin()
        try:
            reply, found = self._exchange(header, body, time.monotonic() + READ_SECONDS)
            if set(reply) != {"id", "read"}:
                raise Malformed("expected what the files hold")
            return files_read(parse_json(found), len(files))
        except (TimedOut, Ended, Malformed):
            self.close()
            return None

    def enter(self, exercise: Exercise, definition: Definition, *, hidden: bool) -> None:
        """Have a process in which nothing has run but what an answer needs; raises `StudentCodeFailed`."""
        given = {
            "sources": sources_for(exercise),
            "forbids": list(exercise.forbids),
            "functions": functions_for(exercise),
        }
        self.get_ready((exercise.id, hidden), given, definition)

    def get_ready(self, room: tuple[str, bool], given: dict[str, Any], definition: Definition) -> None:
        """Run all pieces of a definition in a fresh process; those that end it are left out when it begins anew."""
        while self._room != room:
            if time.monotonic() >= self.deadline:
                raise StudentCodeFailed("timeout", self._too_slow())
            self._room = None
            self._begin()
            reply, _ = self._exchange({"do": "modules"} | given, b"", time.monotonic() + START_SECONDS)
            if set(reply) != {"id", "done"}:
                raise SandboxError(f"a worker does not get ready: {str(reply)[:300]}")
            pieces = [pair for pair in definition.pieces if (definition.file, pair[0]) not in self.hung]
            if all(self._define(definition.file, number, piece) for number, piece in pieces):
                self._room = room

    def see(self, definition: Definition, n_inputs: int) -> Any:
        """Return what can be seen of an answer; raises what the worker says was raised, or `StudentCodeFailed`."""
        header = {"do": "see", "file": definition.file, "name": definition.name, "n_inputs": n_inputs}
        return self._ask(header, b"", ("seen",))[0]["seen"]

    def run(self, header: dict[str, Any], inputs: tuple[Any, ...], expected: tuple[str, ...]) -> dict[str, Any]:
        """Run an answer on inputs; return the values of its reply, by the names that are expected.

        Raises what the answer raised, or `StudentCodeFailed`.
        """
        packer = Packer(from_judge=True)
        header = header | {"inputs": packer.pack(list(inputs))}
        reply, body = self._ask(header, packer.body(), expected)
        try:
            source = Unpacker(body, other_of)
            return {name: source.unpack(reply[name]) for name in expected}
        except Exception as error:  # whatever it is: the worker sent it
            raise self.crashed() from error

    def crashed(self) -> StudentCodeFailed:
        """End the process, since nothing that it says can be used; return what to raise."""
        self.close()
        return StudentCodeFailed("crash", "your code ended the process that ran it")

    def _ask(self, header: dict[str, Any], body: bytes, expected: tuple[str, ...]) -> tuple[dict[str, Any], bytes]:
        try:
            reply, content = self._exchange(header, body, self._soon())
            if set(reply) == {"id", "raised"}:
                raise exception_of(reply["raised"])
            if set(reply) != {"id", *expected}:
                raise Malformed("a reply must have what was asked for")
            return reply, content
        except (TimedOut, Ended, Malformed) as error:
            raise self._failure(error) from error

    def _exchange(self, header: dict[str, Any], body: bytes, deadline: float) -> tuple[dict[str, Any], bytes]:
        assert self._process is not None
        self.asked += 1
        reply, content = self._process.ask({"id": self.asked} | header, body, deadline)
        if type(reply.get("id")) is not int or reply["id"] != self.asked:
            raise Malformed("a reply must be to what was asked")
        if set(reply) == {"id", "ended"}:
            raise ChildEnded("the process that runs a student's code is gone")
        return reply, content

    def _failure(self, error: Exception) -> StudentCodeFailed:
        """Return what to raise where a process did not answer as it should; end it where that is not done yet."""
        if isinstance(error, TimedOut):
            self.close()
            return StudentCodeFailed("timeout", self._too_slow())
        if not isinstance(error, ChildEnded):
            return self.crashed()
        self._room = None
        return StudentCodeFailed("crash", "your code ended the process that ran it")

    def _soon(self) -> float:
        """Until when the next call has to be over."""
        return min(time.monotonic() + self.limits.seconds_per_call, self.deadline)

    def _too_slow(self) -> str:
        if time.monotonic() >= self.deadline:
            return "the time for the whole submission is over"
        return f"your code was still running after {self.limits.seconds_per_call:g} s"

    def _begin(self) -> None:
        """Have a fresh process, and wait until it answers, which is not the student's time."""
        started = time.monotonic()
        if self._has_begun and not can_fork():
            self.close()
        if self._process is None:
            self._process = Process(self.sandbox, self.limits.memory << 20)
        try:
            reply, _ = self._exchange({"do": "begin"}, b"", started + START_SECONDS)
        except (TimedOut, Ended, Malformed) as error:
            self.close()
            raise SandboxError(f"a worker does not start under {self.sandbox.kind}: {error}") from error
        if set(reply) != {"id", "done"}:
            self.close()
            raise SandboxError(f"a worker does not get ready: {str(reply)[:300]}")
        self._has_begun = True
        self.deadline += time.monotonic() - started

    def _define(self, file: int, number: int, piece: Piece) -> bool:
        """Run one definition; return whether the process has lived through it."""
        request = {"do": "run", "file": file, "where": piece.where, "source": piece.source, "line": piece.line}
        try:
            reply, _ = self._exchange(request, b"", self._soon())
            if set(reply) == {"id", "raised"}:
                error = exception_of(reply["raised"])
                said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                self._note(file, number, f"{piece.where}, line {piece.line} was left out: {said}")
            elif set(reply) != {"id", "done"}:
                raise Malformed("a definition has run or has raised")
        except (TimedOut, Ended, Malformed) as error:
            trouble = self._failure(error)
        else:
            return True
        self.hung.add((file, number))
        self._note(file, number, f"{piece.where}, line {piece.line} was left out: {trouble}")
        return False

    def _note(self, file: int, number: int, text: str) -> None:
        self.failed[file, number] = text
        if text not in self.notes:
            self.notes.append(text)


def check_sandbox(sandbox: Sandbox) -> None:
    """See whether a worker starts and answers.

    Raises:
        SandboxError: it does not; the message says why and what to do.
    """
    why = sandbox.problem()
    if why is None:
        try:
            with Session(sandbox, Limits(), START_SECONDS) as session:
                why = None if session.read((), []) == [] else "its process does not answer as it should"
        except SandboxError as error:
            why = str(error)
    if why is not None:
        raise SandboxError(
            f"submissions cannot be shut in by {sandbox.kind} here: {why}. Use a machine on which that works, or "
            "--trusted where you would run every submission by hand"
        )


class RemoteAnswer:
    """A student's function or class, in a worker: see `ttutor.exercises.running.Elsewhere`."""

    def __init__(self, session: Session, definition: Definition) -> None:
        self.session, self.definition = session, definition
        self.trouble: StudentCodeFailed | None = None
        self.failure: Exception | None = None  # what went wrong in the grader itself

    def observe(self, exercise: Exercise, case: Case, inputs: tuple[Any, ...], seed: int) -> Observed:
        """Run it as `Exercise.observe` does."""
        header = {"do": "observe", "grad": torch.is_grad_enabled()}
        came = self._run(header, exercise, case, inputs, seed, ("value", "inputs"))
        if type(came["inputs"]) is not list or len(came["inputs"]) != len(inputs):
            self.trouble = self.session.crashed()
            raise self.trouble
        return Observed(came["value"], tuple(came["inputs"]))

    def gradients(
        self, exercise: Exercise, case: Case, inputs: tuple[Any, ...], seed: int
    ) -> list[Tensor | None] | None:
        """Run it, and return the gradients that come back."""
        came = self._run({"do": "gradients"}, exercise, case, inputs, seed, ("gradients",))["gradients"]
        if came is None or (type(came) is list and len(came) == len(inputs) and all(map(_is_like, came, inputs))):
            return came
        self.trouble = self.session.crashed()
        raise self.trouble

    def _run(
        self,
        header: dict[str, Any],
        exercise: Exercise,
        case: Case,
        inputs: tuple[Any, ...],
        seed: int,
        expected: tuple[str, ...],
    ) -> dict[str, Any]:
        observe = None if exercise.calls_directly else [exercise.observe.__module__, exercise.observe.__name__]
        names = {(one.__module__, getattr(one, "__name__", type(one).__name__)) for one in functions_in(inputs)}
        if lost := names - set(functions_for(exercise)):  # which a property hands over
            self.failure = SandboxError(f"{exercise.id} hands over what no worker can find: {sorted(map(str, lost))}")
            raise self.failure
        about = {"file": self.definition.file, "name": self.definition.name, "observe": observe, "seed": seed}
        try:
            self.session.enter(exercise, self.definition, hidden=case.hidden)
            return self.session.run(header | about, inputs, expected)
        except StudentCodeFailed as trouble:
            self.trouble = trouble
            raise
        except Exception as error:
            self.failure = None if getattr(error, "by_worker", False) else error
            raise


def _is_like(found: Any, given: Any) -> bool:
    """Whether something is a gradient of an input, or none."""
    is_tensor = type(found) is Tensor and isinstance(given, Tensor)
    return found is None or (is_tensor and found.shape == given.shape and found.dtype == given.dtype)
