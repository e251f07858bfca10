"""The worker: reads a submission, runs its code as the judge asks, and gives back values; it knows no right answer.

It speaks over its standard input and output, as every system has them. It gets the files of a submission through the
pipe, and nothing else of the class.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

from .confine import confine
from .framing import BODY_CAP, Malformed, frame, read_frame, write_all
from .modules import Given
from .reader import READ_CAP, read_file
from .student import Student, told
from .values import Packer, Unpacker

Reply = tuple[dict[str, Any], bytes]


def main(memory: int) -> None:
    """Get ready, give up what is not needed, and serve until the judge hangs up."""
    preload()
    reads, writes = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # a student's print goes nowhere
        os.dup2(empty, standard)
    if os.name == "posix":
        os.closerange(max(reads, writes, empty) + 1, 4096)
    os.environ.clear()
    os.environ |= {"HOME": "/", "OMP_NUM_THREADS": "1"}
    confine(memory)
    sys.setrecursionlimit(1000)
    Worker(reads, writes).serve()
    os._exit(0)


def preload() -> None:
    """Import what nearly every answer needs, and have PyTorch start whatever it starts at the first use."""
    names = (
        "abc collections.abc contextlib copy dataclasses enum fractions functools heapq itertools math operator re "
        "statistics string time types typing torch.nn.functional einops jaxtyping torch.utils._python_dispatch"
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


class Worker:
    """Serves one submission, or as much of it as one process does."""

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes = reads, writes
        self.student, self.given = Student(), Given()
        self.asked: dict[str, Callable[[dict[str, Any], bytes], Reply]] = {
            "read": self._read,
            "modules": self._modules,
            "run": self._run,
            "see": self._see,
            "observe": self._observe,
            "gradients": self._gradients,
        }

    def serve(self) -> None:
        """Answer one request after the other until there are no more."""
        self.given.install()
        while (came := read_frame(self.reads, max(READ_CAP, BODY_CAP))) is not None:
            request, body = came
            try:
                reply, content = self.asked[request["do"]](request, body)
            except BaseException as error:  # whatever a student's code raises is an answer
                reply, content = {"raised": told(self.student, error)}, b""
            self._reply({"id": request["id"]} | reply, content)

    def _reply(self, reply: dict[str, Any], content: bytes) -> None:
        try:
            text = frame(reply, content)
        except (Malformed, ValueError) as error:  # a value whose description is too long
            text = frame({"id": reply["id"], "raised": told(self.student, error)})
        write_all(self.writes, text)

    def _read(self, request: dict[str, Any], body: bytes) -> Reply:
        """Take the files apart: their names and sizes stand in the header, their bytes one after the other."""
        found, place = [], 0
        for one in request["files"]:
            found.append(read_file(one["name"], body[place : place + one["size"]], request["wanted"]))
            place += one["size"]
        return {"read": True}, json.dumps(found).encode()

    def _modules(self, request: dict[str, Any], body: bytes) -> Reply:
        self.given.sources |= request["sources"]
        self.watched = importlib.import_module("ttutor.exercises.forbidden").watched
        self.seen = importlib.import_module("ttutor.exercises.student_code").seen
        self.gradients_of = importlib.import_module("ttutor.exercises.running").gradients_of
        return {"done": True}, b""

    def _run(self, request: dict[str, Any], body: bytes) -> Reply:
        self.student.run(request["file"], request["where"], request["source"], request["line"])
        return {"done": True}, b""

    def _see(self, request: dict[str, Any], body: bytes) -> Reply:
        return {"seen": self.seen(self.student.answer(request["file"], request["name"]), request["n_inputs"])}, b""

    def _observe(self, request: dict[str, Any], body: bytes) -> Reply:
        """Run an answer, while the functions that it must not call are watched."""
        watch, inputs = self._prepared(request, body)
        used: set[str] = set()
        packer = Packer()
        try:
            with torch.set_grad_enabled(request["grad"]), self.watched(request["forbids"], used):
                value = watch(*inputs)
            reply = {"value": packer.pack(value), "inputs": packer.pack(inputs)}
        except BaseException as error:
            return {"raised": told(self.student, error), "used": sorted(used)}, b""
        return reply | {"used": sorted(used)}, packer.body()

    def _gradients(self, request: dict[str, Any], body: bytes) -> Reply:
        """Run an answer, and go back through what it gives."""
        watch, inputs = self._prepared(request, body)
        packer = Packer()
        return {"gradients": packer.pack(self.gradients_of(watch, inputs))}, packer.body()

    def _prepared(self, request: dict[str, Any], body: bytes) -> tuple[Callable[..., Any], list[Any]]:
        """Return the answer as it is watched, and its inputs, in the state in which every answer is run."""
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
