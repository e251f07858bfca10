"""The worker: runs a student's code as the judge asks, and gives back values; it knows no right answer."""

from __future__ import annotations

import builtins
import gc
import importlib
import pkgutil
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .framing import Malformed, frame, read_frame, write_all
from .graphs import connected, products
from .modules import Given
from .packing import Packer, Unpacker
from .student import Student, seen, told

__all__ = ["Worker", "preload", "preload_everything"]

MOST_GRAPHS = 64
ODD = (  # of the standard library: they open windows or pages, belong to other systems, or run when imported
    "__main__ antigravity idlelib lib2to3 msilib test tests this tkinter turtle turtledemo windows_events "
    "windows_utils popen_spawn_win32 pgen2 macosxsupport"
).split()


def preload(*, all_of_torch: bool) -> None:
    """Import what nearly every answer needs, once, before any worker is forked.

    Args:
        all_of_torch: also what PyTorch itself imports late, as its optimisers do; worth it where many are forked.
    """
    names = (
        "abc collections.abc contextlib copy dataclasses enum fractions functools heapq itertools math operator re "
        "statistics string time types typing warnings torch.nn.functional einops jaxtyping"
    )
    for name in names.split():
        _import(name)
    if all_of_torch:
        _import("torch._dynamo")
    torch.set_num_threads(1)
    np.random.seed(0)  # noqa: NPY002
    (torch.ones(3, 4) @ torch.ones(4, 5)).softmax(-1).sum().item()
    gc.freeze()


def preload_everything() -> None:
    """Import the whole standard library, for a user who will not be able to read it."""
    for name in sorted(sys.stdlib_module_names):
        if name not in ODD and not name.startswith("_"):
            _import(name)
            for inner in pkgutil.iter_modules(getattr(sys.modules.get(name), "__path__", ())):
                if inner.name not in ODD:
                    _import(f"{name}.{inner.name}")


def _import(name: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except ImportError:  # not everything is everywhere: whoever imports it will hear of it
        return


class Worker:
    """Serves one submission, or as much of it as one process does.

    Args:
        reads: the file descriptor on which requests come.
        writes: the one on which replies go.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes = reads, writes
        self.student, self.given, self.request = Student(), Given(), 0
        self.graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self.asked: dict[str, Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]] = {
            "modules": self._modules,
            "run": self._run,
            "see": self._see,
            "observe": self._observe,
            "back": self._back,
        }

    def serve(self) -> None:
        """Answer one request after the other until there are no more."""
        self.given.install()
        while (came := read_frame(self.reads)) is not None:
            request, body = came
            self.request = request["id"]
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

    def _modules(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        self.given.sources |= request["sources"]
        return {"done": True}, b""

    def _run(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        self.student.run(request["file"], request["where"], request["source"], request["line"])
        return {"done": True}, b""

    def _see(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        return {"seen": seen(self.student.answer(request["file"], request["name"]))}, b""

    def _observe(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        functions: dict[int, Callable[..., Any]] = {}
        numbers: dict[int, int] = {}
        source = Unpacker(body, lambda number: self._function(number, functions, numbers), layout=True)
        inputs = [source.unpack(spec) for spec in request["inputs"]]
        answer = self.student.answer(request["file"], request["name"])
        _settle(request["seed"])
        with torch.set_grad_enabled(request["grad"]):
            if request["observe"] is None:
                value = answer(*inputs)
            else:
                module, name = request["observe"]
                value = getattr(importlib.import_module(module), name)(answer, *inputs)
        packer = Packer(lambda value: numbers.get(id(value)))
        reply = {"value": packer.pack(value)}
        n_traced = len(packer.traced)
        reply["inputs"] = [packer.pack(one) for one in inputs]
        self.graphs[request["id"]] = (packer.traced[:n_traced], source.leaves)
        for old in sorted(self.graphs)[:-MOST_GRAPHS]:
            del self.graphs[old]
        return reply, packer.body()

    def _function(
        self, number: int, functions: dict[int, Callable[..., Any]], numbers: dict[int, int]
    ) -> Callable[..., Any]:
        """Return a function that lets the judge do what its original does."""
        if number not in functions:

            def ask(*args: Any) -> Any:
                packer = Packer(lambda value: numbers.get(id(value)))
                header = {"id": self.request, "call": number, "args": [packer.pack(one) for one in args]}
                reply, source = self._ask_judge(header, packer, functions)
                value, graph = source.unpack(reply["value"]), reply["graph"]

                def back(weights: list[Tensor | None]) -> list[Tensor | None]:
                    packer = Packer(lambda value: None)
                    header = {"id": self.request, "graph": graph, "weights": [packer.pack(one) for one in weights]}
                    reply, source = self._ask_judge(header, packer, functions)
                    return [source.unpack(one) for one in reply["gradients"]]

                return connected(value, source.leaves, packer.traced, back)

            functions[number], numbers[id(ask)] = ask, number
        return functions[number]

    def _ask_judge(
        self, header: dict[str, Any], packer: Packer, functions: dict[int, Callable[..., Any]]
    ) -> tuple[dict[str, Any], Unpacker]:
        write_all(self.writes, frame(header, packer.body()))
        came = read_frame(self.reads)
        if came is None:
            raise EOFError("the judge is gone")
        if "raised" in came[0]:
            raise _exception(**came[0]["raised"])
        return came[0], Unpacker(came[1], functions.get)

    def _back(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        outputs, leaves = self.graphs[request["graph"]]
        source = Unpacker(body, lambda number: None)
        weights = [source.unpack(spec) for spec in request["weights"]]
        found = products(outputs, leaves, weights)
        packer = Packer(lambda value: None)
        return {"gradients": [packer.pack(one) for one in found]}, packer.body()


def _settle(seed: int) -> None:
    """Take the state in which every answer is run: see `ttutor.exercises.running.settled`."""
    torch.set_default_dtype(torch.float32)
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def _exception(type: str, text: str) -> Exception:
    """Make the exception that a function raised at the judge."""
    kind = getattr(builtins, type, None)
    known = isinstance(kind, builtins.type) and issubclass(kind, Exception)
    return kind(text) if known else RuntimeError(f"{type}: {text}")
