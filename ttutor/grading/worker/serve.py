"""The worker: reads a submission, runs its code as the judge asks, and gives back values; it knows no right answer.

It speaks over its standard input and output, as every system has them. It gets the files of a submission through the
pipe, and nothing else of the class. On Linux what has loaded PyTorch stays outside, and each exercise gets a process
that is forked from it, confined before it meets a student's code, and killed when the next one begins: nothing that
code leaves in memory is there when the next exercise, or its hidden cases, are run.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

from .confine import can_fork, confine, die_with_parent
from .framing import BODY_CAP, Malformed, frame, read_frame, write_all
from .reader import READ_CAP, read_file
from .student import BundledImporter, Student, describe_error
from .values import Packer, Unpacker

Reply = tuple[dict[str, Any], bytes]


def main(memory: int) -> None:
    """Get ready, and serve until the judge hangs up."""
    die_with_parent()
    preload()
    reads, writes = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # a student's print goes nowhere
        os.dup2(empty, standard)
    if os.name == "posix":
        os.closerange(max(reads, writes, empty) + 1, 4096)
    os.environ.clear()
    os.environ |= {"HOME": "/", "OMP_NUM_THREADS": "1"}
    if can_fork():
        Relay(reads, writes, memory).serve()
    else:
        run_worker(reads, writes, memory)
    os._exit(0)


def run_worker(reads: int, writes: int, memory: int) -> None:
    """Give up what is not needed, then serve."""
    confine(memory)
    sys.setrecursionlimit(1000)
    Worker(reads, writes).serve()


def preload() -> None:
    """Import what nearly every answer needs, and have PyTorch start whatever it starts at the first use."""
    names = (
        "abc collections.abc contextlib copy dataclasses enum fractions functools heapq itertools math operator re "
        "statistics string time types typing torch.nn.functional einops jaxtyping"
    )
    for name in names.split():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    _stand_in_for_the_compiler()
    torch.set_num_threads(1)
    leaf = torch.ones(3, 4, requires_grad=True)
    (leaf @ torch.ones(4, 5)).softmax(-1).sum().backward()


def _stand_in_for_the_compiler() -> None:
    """Take the place of ``torch._dynamo``, which optimisers import at their first step.

    It takes seconds to load and has to write files; of it they only use what stands here, and nothing is compiled.
    """
    compiler = ModuleType("torch._dynamo")
    vars(compiler).update(graph_break=lambda: None, disable=lambda function, *args, **kwargs: function)
    sys.modules[compiler.__name__] = torch._dynamo = compiler


class Relay:
    """Stands between the judge and the process that runs a student's code, and makes a new one when it is told to."""

    def __init__(self, reads: int, writes: int, memory: int) -> None:
        self.reads, self.writes, self.memory = reads, writes, memory
        self.child, self.to_child, self.from_child = 0, -1, -1

    def serve(self) -> None:
        """Hand on one request after the other, and whatever whole frame comes back for it."""
        while (came := read_frame(self.reads, max(READ_CAP, BODY_CAP))) is not None:
            request, body = came
            if request["do"] == "begin":
                self._end_child()
                self._fork()
                reply: Reply = {"id": request["id"], "done": True}, b""
            else:
                reply = self._handed_on(request, body)
            write_all(self.writes, frame(*reply))
        self._end_child()

    def _handed_on(self, request: dict[str, Any], body: bytes) -> Reply:
        try:
            write_all(self.to_child, frame(request, body))
            reply = read_frame(self.from_child)
        except (OSError, Malformed):
            reply = None
        if reply is not None:
            return reply
        self._end_child()
        return {"id": request["id"], "ended": True}, b""

    def _fork(self) -> None:
        from_judge, self.to_child = os.pipe()
        self.from_child, to_judge = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            die_with_parent()
            for descriptor in (self.reads, self.writes, self.to_child, self.from_child):
                os.close(descriptor)
            try:
                run_worker(from_judge, to_judge, self.memory)
            finally:
                os._exit(0)
        os.close(from_judge)
        os.close(to_judge)

    def _end_child(self) -> None:
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.close(self.to_child)
            os.close(self.from_child)
            self.child = 0


class Worker:
    """Serves one exercise of one submission, or as much of it as one process does."""

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes = reads, writes
        self.student, self.importer = Student(), BundledImporter()
        self.asked: dict[str, Callable[[dict[str, Any], bytes], Reply]] = {
            "begin": lambda request, body: ({"done": True}, b""),
            "read": self._read,
            "modules": self._modules,
            "run": self._run,
            "see": self._see,
            "observe": self._observe,
            "gradients": self._gradients,
        }

    def serve(self) -> None:
        """Answer one request after the other until there are no more."""
        self.importer.install()
        while (came := read_frame(self.reads, max(READ_CAP, BODY_CAP))) is not None:
            request, body = came
            try:
                reply, content = self.asked[request["do"]](request, body)
            except BaseException as error:  # whatever a student's code raises is an answer
                reply, content = {"raised": describe_error(self.student, error)}, b""
            self._reply({"id": request["id"]} | reply, content)

    def _reply(self, reply: dict[str, Any], content: bytes) -> None:
        try:
            text = frame(reply, content)
        except (Malformed, ValueError) as error:  # a value whose description is too long
            text = frame({"id": reply["id"], "raised": describe_error(self.student, error)})
        write_all(self.writes, text)

    def _read(self, request: dict[str, Any], body: bytes) -> Reply:
        """Take the files apart: their names and sizes stand in the header, their bytes one after the other."""
        found, place = [], 0
        for one in request["files"]:
            found.append(read_file(one["name"], body[place : place + one["size"]], request["wanted"]))
            place += one["size"]
        return {"read": True}, json.dumps(found).encode()

    def _modules(self, request: dict[str, Any], body: bytes) -> Reply:
        """Take over the course's modules, and take what is forbidden out of use, before any code of the student's."""
        self.importer.sources |= request["sources"]
        self.seen = importlib.import_module("ttutor.exercises.student_code").seen
        self.gradients_of = importlib.import_module("ttutor.exercises.running").gradients_of
        for module, name in request.get("functions", ()):  # were one missing, it would be no mistake of the student's
            getattr(importlib.import_module(module), name)
        importlib.import_module("ttutor.exercises.forbidden").disable(request["forbids"])
        return {"done": True}, b""

    def _run(self, request: dict[str, Any], body: bytes) -> Reply:
        self.student.run(request["file"], request["where"], request["source"], request["line"])
        return {"done": True}, b""

    def _see(self, request: dict[str, Any], body: bytes) -> Reply:
        return {"seen": self.seen(self.student.answer(request["file"], request["name"]), request["n_inputs"])}, b""

    def _observe(self, request: dict[str, Any], body: bytes) -> Reply:
        """Run an answer."""
        observe, inputs = self._prepared(request, body)
        packer = Packer()
        with torch.set_grad_enabled(request["grad"]):
            value = observe(*inputs)
        return {"value": packer.pack(value), "inputs": packer.pack(inputs)}, packer.body()

    def _gradients(self, request: dict[str, Any], body: bytes) -> Reply:
        """Run an answer, and go back through what it gives."""
        observe, inputs = self._prepared(request, body)
        packer = Packer()
        return {"gradients": packer.pack(self.gradients_of(observe, inputs))}, packer.body()

    def _prepared(self, request: dict[str, Any], body: bytes) -> tuple[Callable[..., Any], list[Any]]:
        """Return the answer as it is observed, and its inputs, in the state in which every answer is run."""
        source = Unpacker(body, function=lambda module, name: getattr(importlib.import_module(module), name))
        inputs = source.unpack(request["inputs"])
        answer = self.student.answer(request["file"], request["name"])
        torch.set_default_dtype(torch.float32)  # see `ttutor.exercises.running.settled`
        torch.default_generator.manual_seed(request["seed"])
        random.seed(request["seed"])
        np.random.seed(request["seed"])  # noqa: NPY002
        if request["observe"] is None:
            return answer, inputs
        module, name = request["observe"]
        observe = getattr(importlib.import_module(module), name)
        return lambda *given: observe(answer, *given), inputs
