"""One submission's code at work: asked and answered over pipes, ended when it hangs, started again when it is gone."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from ttutor.grading.apart.graphs import connected
from ttutor.grading.apart.packing import Packer, Unpacker
from ttutor.grading.callbacks import Given
from ttutor.grading.channel import Ended, Malformed, TimedOut
from ttutor.grading.raised import Trouble, exception_of
from ttutor.grading.reading import FileRead, Piece
from ttutor.grading.remote_tensors import other_of
from ttutor.grading.sandbox import SandboxError
from ttutor.grading.zygotes import Lane, Process

__all__ = ["Limits", "Session", "Target"]

MOST_CALLBACKS = 20_000
START_SECONDS = 180.0


class Limits:
    """What one submission may use.

    Args:
        call_seconds: for each call.
        seconds: for all of it.
        memory: in bytes, for each of its processes.
    """

    def __init__(self, call_seconds: float, seconds: float, memory: int) -> None:
        self.call_seconds, self.memory = call_seconds, memory
        self.deadline = time.monotonic() + seconds

    def of_call(self) -> float:
        """Until when the next call has to be over."""
        return min(time.monotonic() + self.call_seconds, self.deadline)


class Target:
    """What a call is for: which answer, and how it is watched.

    Args:
        file: the number of the file in which the answer stands.
        name: what it is called there.
        observe: module and name of the function that watches it, or None where it is called with the inputs.
    """

    def __init__(self, file: int, name: str, observe: tuple[str, str] | None) -> None:
        self.file, self.name, self.observe = file, name, observe


class Session:
    """The code of one submission, in a process that is started when needed.

    Args:
        lane: where it runs.
        files: what the reader found.
        modules: the parts of the course's package that it gets, as source.
        limits: what it may use.
    """

    def __init__(self, lane: Lane, files: list[FileRead], modules: dict[str, str], limits: Limits) -> None:
        self.lane, self.files, self.modules, self.limits = lane, files, modules, limits
        self.notes: list[str] = []
        self.failed: dict[tuple[int, int], str] = {}  # definitions that raised, hung or crashed, and what to say
        self.hung: set[tuple[int, int]] = set()
        self.memory = self.calls = 0
        self._process: Process | None = None

    def close(self) -> None:
        """End its process."""
        if self._process is not None:
            process, self._process = self._process, None
            self.memory = max(self.memory, process.end())

    def see(self, target: Target) -> Any:
        """Return what can be seen of an answer.

        Raises:
            Trouble: the process hung or died.
            BaseException: what the worker says was raised; a LookupError where the answer was not defined.
        """
        return self._ask({"do": "see", "file": target.file, "name": target.name}, b"", ("seen",))[0]["seen"]

    def observe(self, target: Target, inputs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """Run an answer; return its value, and the inputs as they are afterwards.

        Raises:
            Trouble: the process hung or died.
            BaseException: what the answer raised.
        """
        given = Given()
        packer = Packer(given.number_of, keep_layout=True)
        specs = [packer.pack(one) for one in inputs]
        header = {"do": "observe", "file": target.file, "name": target.name, "observe": target.observe}
        header |= {"inputs": specs, "seed": torch.initial_seed(), "grad": torch.is_grad_enabled()}
        reply, body = self._ask(header, packer.body(), ("value", "inputs"), given)
        graph, process = reply["id"], self._process
        try:
            source = Unpacker(body, given.function, other_of)
            value = source.unpack(reply["value"])
            n_traced = len(source.leaves)
            if type(reply["inputs"]) is not list or len(reply["inputs"]) != len(inputs):
                raise Malformed("as many inputs must come back as were sent")
            after = [source.unpack(one) for one in reply["inputs"]]
        except Exception as error:  # whatever it is: the worker sent it
            raise self.crashed() from error

        def back(weights: list[Tensor | None]) -> list[Tensor | None]:
            if self._process is not process:
                raise Trouble("crash", "the process that has the graph is gone")
            return self._back(graph, weights, packer.traced, given)

        return connected(value, source.leaves[:n_traced], packer.traced, back), after

    def _back(
        self, graph: int, weights: list[Tensor | None], inputs: list[Tensor], given: Given
    ) -> list[Tensor | None]:
        """Return the vector-Jacobian products of a call's inputs."""
        packer = Packer(lambda value: None)
        header = {"do": "back", "graph": graph, "weights": [packer.pack(one) for one in weights]}
        reply, body = self._ask(header, packer.body(), ("gradients",), given)
        try:
            source = Unpacker(body, lambda number: None, other_of)
            if type(reply["gradients"]) is not list:
                raise Malformed("expected a list of gradients")
            found = [source.unpack(one) for one in reply["gradients"]]
            if len(found) != len(inputs) or not all(map(_is_gradient, found, inputs)):
                raise Malformed("each gradient must be like its input")
        except Exception as error:  # whatever it is: the worker sent it
            raise self.crashed() from error
        return found

    def _ask(
        self,
        header: dict[str, Any],
        body: bytes,
        expected: tuple[str, ...],
        given: Given | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Ask, and do for the worker what functions of ours it calls; return a reply that has what is expected."""
        if self._process is None:
            self._start()
        return self._exchange(header, body, expected, given or Given())

    def _exchange(
        self, header: dict[str, Any], body: bytes, expected: tuple[str, ...], given: Given
    ) -> tuple[dict[str, Any], bytes]:
        self.calls += 1
        channel, deadline, number = self._process.channel, self.limits.of_call(), self.calls
        try:
            channel.send({"id": number} | header, body, deadline)
            for _ in range(MOST_CALLBACKS):
                reply, content = channel.receive(deadline)
                if reply.get("id") != number or type(reply["id"]) is not int:
                    raise Malformed("a reply must be to what was asked")
                if set(reply) == {"id", "raised"}:
                    raise exception_of(reply["raised"])
                if set(reply) == {"id", *expected}:
                    return reply, content
                answer, content = given.answer(reply, content)
                channel.send({"id": number} | answer, content, deadline)
            raise Malformed("it asks without end")
        except TimedOut as error:
            self.close()
            raise Trouble("timeout", self._too_slow()) from error
        except (Ended, Malformed) as error:
            raise self.crashed() from error

    def _too_slow(self) -> str:
        if time.monotonic() >= self.limits.deadline:
            return "the time for the whole submission is over"
        return f"your code was still running after {self.limits.call_seconds:g} s"

    def crashed(self) -> Trouble:
        """End the process, since nothing that it says can be used; return what to raise."""
        self.close()
        return Trouble("crash", "your code ended the process that ran it")

    def _start(self) -> None:
        """Start a process, and run all definitions but those that hung or crashed before."""
        if time.monotonic() >= self.limits.deadline:
            raise Trouble("timeout", self._too_slow())
        self._open()
        for file, read in enumerate(self.files):
            for number, piece in enumerate(read.pieces):
                if (file, number) not in self.hung and not self._run(file, number, piece):
                    return self._start()
        return None

    def _open(self) -> None:
        """Start a process and wait until it is ready, which is not the student's time.

        Raises:
            SandboxError: it does not get ready.
        """
        started = time.monotonic()
        process = self.lane.open("worker", self.limits.memory)
        try:
            process.channel.send({"id": 0, "do": "modules", "sources": self.modules}, b"", started + START_SECONDS)
            reply, _ = process.channel.receive(started + START_SECONDS)
        except (TimedOut, Ended, Malformed) as error:
            process.end()
            raise SandboxError(f"a worker does not start at the level {self.lane.level.name}: {error}") from error
        if reply != {"id": 0, "done": True}:
            process.end()
            raise SandboxError(f"a worker does not get ready: {str(reply)[:300]}")
        self._process = process
        self.limits.deadline += time.monotonic() - started

    def _run(self, file: int, number: int, piece: Piece) -> bool:
        """Run one definition; return whether the process has lived through it."""
        request = {"do": "run", "file": file, "where": piece.where, "source": piece.source, "line": piece.line}
        try:
            self._exchange(request, b"", ("done",), Given())
        except Trouble as trouble:
            self.hung.add((file, number))
            self._note(file, number, f"{piece.where}, line {piece.line} was left out: {trouble}")
            return False
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            self._note(file, number, f"{piece.where}, line {piece.line} was left out: {said}")
        return True

    def _note(self, file: int, number: int, text: str) -> None:
        self.failed[file, number] = text
        if text not in self.notes:
            self.notes.append(text)


def _is_gradient(found: Any, given: Tensor) -> bool:
    return found is None or (type(found) is Tensor and found.shape == given.shape and found.dtype == given.dtype)
