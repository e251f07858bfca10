"""One submission's code at work: read, run and asked in a process of its own, which is ended when it hangs.

Where it is gone, another is started for what is left.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from ttutor.exercises.exercise import Exercise
from ttutor.exercises.running import Observed
from ttutor.grading.assignment import Limits
from ttutor.grading.judging.bundles import sources_for
from ttutor.grading.judging.raised import Trouble, exception_of, other_of
from ttutor.grading.judging.submitted import FileRead, Piece, files_read, shown_name
from ttutor.grading.marks import SourceFile
from ttutor.grading.sandbox.choose import Sandbox, SandboxError
from ttutor.grading.sandbox.process import Ended, Malformed, Process, TimedOut
from ttutor.grading.worker.framing import parse_json
from ttutor.grading.worker.values import Packer, Unpacker

START_SECONDS, READ_SECONDS = 180.0, 60.0


class Session:
    """The code of one submission, in a process that is started when needed; a context manager."""

    def __init__(self, sandbox: Sandbox, limits: Limits, seconds: float) -> None:
        self.sandbox, self.limits = sandbox, limits
        self.deadline = time.monotonic() + seconds
        self.files: list[FileRead] = []
        self.modules = sources_for([])
        self.notes: list[str] = []
        self.failed: dict[tuple[int, int], str] = {}  # definitions that raised, hung or crashed, and what to say
        self.hung: set[tuple[int, int]] = set()
        self.memory, self.cpu_seconds, self.asked = 0, 0.0, 0
        self._process: Process | None = None
        self._is_ready = False

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its process."""
        if self._process is not None:
            process, self._process, self._is_ready = self._process, None, False
            memory, cpu_seconds = process.end()
            self.memory, self.cpu_seconds = max(self.memory, memory), self.cpu_seconds + cpu_seconds

    def read(self, files: tuple[SourceFile, ...], wanted: list[str]) -> list[FileRead] | None:
        """Have files taken apart, before anything of them runs; None where the process does not live through it."""
        about = [{"name": shown_name(file), "size": len(file.data)} for file in files]
        body = b"".join(file.data for file in files)
        header = {"do": "read", "files": about, "wanted": wanted}
        self._open()
        try:
            reply, found = self._exchange(header, body, time.monotonic() + READ_SECONDS)
            if set(reply) != {"id", "read"}:
                raise Malformed("expected what the files hold")
            return files_read(parse_json(found), len(files))
        except (TimedOut, Ended, Malformed):
            self.close()
            return None

    def provide(self, files: list[FileRead], modules: dict[str, str]) -> None:
        """Say what is to run from now on: a submission's files, beside some of the course's modules, as source."""
        if self._is_ready:
            self.close()
        self.files, self.modules = files, modules

    def see(self, file: int, name: str, n_inputs: int) -> Any:
        """Return what can be seen of an answer; raises what the worker says was raised, or `Trouble`."""
        header = {"do": "see", "file": file, "name": name, "n_inputs": n_inputs}
        return self._ask(header, b"", ("seen",))[0]["seen"]

    def run(self, header: dict[str, Any], inputs: tuple[Any, ...], expected: tuple[str, ...]) -> dict[str, Any]:
        """Run an answer on inputs; return the values of its reply, by the names that are expected.

        Raises what the answer raised, or `Trouble`.
        """
        packer = Packer(from_judge=True)
        header = header | {"inputs": packer.pack(list(inputs))}
        reply, body = self._ask(header, packer.body(), expected)
        try:
            source = Unpacker(body, other_of)
            values = {name: source.unpack(reply[name]) for name in expected if name != "used"}
            return {"used": reply.get("used", [])} | values
        except Exception as error:  # whatever it is: the worker sent it
            raise self.crashed() from error

    def crashed(self) -> Trouble:
        """End the process, since nothing that it says can be used; return what to raise."""
        self.close()
        return Trouble("crash", "your code ended the process that ran it")

    def _ask(self, header: dict[str, Any], body: bytes, expected: tuple[str, ...]) -> tuple[dict[str, Any], bytes]:
        if not self._is_ready:
            self._get_ready()
        try:
            reply, content = self._exchange(header, body, self._soon())
            if type(used := reply.get("used", [])) is not list or not all(type(one) is str for one in used):
                raise Malformed("expected names")
            if "raised" in reply and set(reply) <= {"id", "raised", "used"}:
                raise exception_of(reply["raised"], used)
            if set(reply) != {"id", *expected}:
                raise Malformed("a reply must have what was asked for")
            return reply, content
        except TimedOut as error:
            self.close()
            raise Trouble("timeout", self._too_slow()) from error
        except (Ended, Malformed) as error:
            raise self.crashed() from error

    def _exchange(self, header: dict[str, Any], body: bytes, deadline: float) -> tuple[dict[str, Any], bytes]:
        assert self._process is not None
        self.asked += 1
        reply, content = self._process.ask({"id": self.asked} | header, body, deadline)
        if type(reply.get("id")) is not int or reply["id"] != self.asked:
            raise Malformed("a reply must be to what was asked")
        return reply, content

    def _soon(self) -> float:
        """Until when the next call has to be over."""
        return min(time.monotonic() + self.limits.seconds_per_call, self.deadline)

    def _too_slow(self) -> str:
        if time.monotonic() >= self.deadline:
            return "the time for the whole submission is over"
        return f"your code was still running after {self.limits.seconds_per_call:g} s"

    def _open(self) -> None:
        """Have a process, and wait until it answers, which is not the student's time."""
        if self._process is not None:
            return
        started = time.monotonic()
        self._process = Process(self.sandbox, self.limits.memory << 20)
        try:
            reply, _ = self._exchange({"do": "modules", "sources": self.modules}, b"", started + START_SECONDS)
        except (TimedOut, Ended, Malformed) as error:
            self.close()
            raise SandboxError(f"a worker does not start under {self.sandbox.kind}: {error}") from error
        if set(reply) != {"id", "done"}:
            self.close()
            raise SandboxError(f"a worker does not get ready: {str(reply)[:300]}")
        self.deadline += time.monotonic() - started

    def _get_ready(self) -> None:
        """Run all definitions but those that hung or crashed before; where another does so, begin anew."""
        while not self._is_ready:
            if time.monotonic() >= self.deadline:
                raise Trouble("timeout", self._too_slow())
            if self._process is None:
                self._open()
            else:
                self._exchange({"do": "modules", "sources": self.modules}, b"", time.monotonic() + START_SECONDS)
            pieces = [(file, *pair) for file, read in enumerate(self.files) for pair in enumerate(read.pieces)]
            self._is_ready = all(
                self._define(file, number, piece) for file, number, piece in pieces if (file, number) not in self.hung
            )

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
        except TimedOut:
            trouble: Exception = Trouble("timeout", self._too_slow())
        except (Ended, Malformed):
            trouble = self.crashed()
        else:
            return True
        self.close()
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

    def __init__(self, session: Session, file: int, name: str) -> None:
        self.session, self.file, self.name = session, file, name
        self.trouble: Trouble | None = None
        self.failure: Exception | None = None  # what went wrong in the grader itself

    def observe(
        self, exercise: Exercise, inputs: tuple[Any, ...], seed: int, forbids: tuple[str, ...], used: set[str]
    ) -> Observed:
        """Run it as `Exercise.observe` does."""
        header = {"forbids": list(forbids), "grad": torch.is_grad_enabled()}
        came = self._run("observe", exercise, inputs, seed, header, ("value", "inputs", "used"), used)
        used |= set(came["used"]) & set(forbids)
        if type(came["inputs"]) is not list or len(came["inputs"]) != len(inputs):
            self.trouble = self.session.crashed()
            raise self.trouble
        return Observed(came["value"], tuple(came["inputs"]))

    def gradients(self, exercise: Exercise, inputs: tuple[Any, ...], seed: int) -> list[Tensor | None] | None:
        """Run it, and return the gradients that come back."""
        came = self._run("gradients", exercise, inputs, seed, {}, ("gradients",), set())["gradients"]
        if came is None or (type(came) is list and len(came) == len(inputs) and all(map(_is_like, came, inputs))):
            return came
        self.trouble = self.session.crashed()
        raise self.trouble

    def _run(
        self,
        deed: str,
        exercise: Exercise,
        inputs: tuple[Any, ...],
        seed: int,
        more: dict[str, Any],
        expected: tuple[str, ...],
        used: set[str],
    ) -> dict[str, Any]:
        watch = None if exercise.calls_directly else [exercise.observe.__module__, exercise.observe.__name__]
        header = {"do": deed, "file": self.file, "name": self.name, "observe": watch, "seed": seed} | more
        try:
            return self.session.run(header, inputs, expected)
        except Trouble as trouble:
            self.trouble = trouble
            raise
        except Exception as error:
            used |= set(getattr(error, "used", ())) & set(exercise.forbids)
            self.failure = None if getattr(error, "by_worker", False) else error
            raise


def _is_like(found: Any, given: Any) -> bool:
    """Whether something is a gradient of an input, or none."""
    is_tensor = type(found) is Tensor and isinstance(given, Tensor)
    return found is None or (is_tensor and found.shape == given.shape and found.dtype == given.dtype)
