"""Functions of the judge that a worker may call: those that an exercise or a property hands to an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ttutor.grading.apart.framing import Malformed
from ttutor.grading.apart.graphs import products
from ttutor.grading.apart.packing import Packer, Unpacker
from ttutor.grading.remote_tensors import other_of

__all__ = ["Given"]

MOST_GRAPHS = 64


class Given:
    """The functions that were handed over with one call, by number, and what came of calling them.

    They are the course's own and are called with whatever a worker sends: what they raise goes back to it.
    """

    def __init__(self) -> None:
        self.functions: list[Callable[..., Any]] = []
        self.graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self.calls = 0

    def number_of(self, value: Any) -> int | None:
        """Return the number under which a worker can call a function; None for what is none."""
        if not callable(value) or isinstance(value, type):
            return None
        if not any(value is one for one in self.functions):
            self.functions.append(value)
        return next(number for number, one in enumerate(self.functions) if one is value)

    def function(self, number: int) -> Callable[..., Any] | None:
        """Return the function of a number, or None."""
        return self.functions[number] if 0 <= number < len(self.functions) else None

    def answer(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do what a worker asks for in the middle of a call: call a function, or go back through a former call.

        Raises:
            Malformed: it asks for neither.
        """
        if set(request) == {"id", "call", "args"}:
            return self._call(request["call"], request["args"], body)
        if set(request) == {"id", "graph", "weights"}:
            return self._back(request["graph"], request["weights"], body)
        raise Malformed("expected a reply, or a call")

    def _call(self, number: Any, args: Any, body: bytes) -> tuple[dict[str, Any], bytes]:
        function = self.function(number) if type(number) is int else None
        if function is None or type(args) is not list:
            raise Malformed("it calls a function that it was not given")
        source, packer = Unpacker(body, self.function, other_of), Packer(self.number_of)
        arguments = [source.unpack(one) for one in args]
        try:
            reply = {"value": packer.pack(function(*arguments)), "graph": self.calls}
        except Exception as error:
            return _raised(error)
        self.graphs[self.calls] = packer.traced, source.leaves
        self.graphs.pop(self.calls - MOST_GRAPHS, None)
        self.calls += 1
        return reply, packer.body()

    def _back(self, graph: Any, weights: Any, body: bytes) -> tuple[dict[str, Any], bytes]:
        if type(graph) is not int or graph not in self.graphs or type(weights) is not list:
            raise Malformed("it goes back through a call that is not known")
        source, packer = Unpacker(body, self.function, other_of), Packer(self.number_of)
        given = [source.unpack(one) for one in weights]
        try:
            found = products(*self.graphs[graph], given)
        except Exception as error:
            return _raised(error)
        return {"gradients": [packer.pack(one) for one in found]}, packer.body()


def _raised(error: Exception) -> tuple[dict[str, Any], bytes]:
    return {"raised": {"type": type(error).__name__, "text": str(error)[:2000]}}, b""
