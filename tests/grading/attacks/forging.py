"""Attacks that forge values, types and comparisons: whatever might make a wrong answer look right."""

from __future__ import annotations

from tests.grading.attacks.attack import Attack, python

__all__ = ["ATTACKS"]


def _returns(name: str, says: str, source: str) -> Attack:
    return python(name, says, source)


ATTACKS = (
    _returns(
        "always_equal",
        "returns an object that equals everything",
        """
        class Anything:
            shape, dtype, device, layout = (4, 7), None, None, None

            def __eq__(self, other):
                return True

            def __ne__(self, other):
                return False

            def __getattr__(self, name):
                return lambda *args, **kwargs: self

            def __bool__(self):
                return True

        def softmax(scores, dim=-1):
            return Anything()
        """,
    ),
    _returns(
        "tensor_that_agrees",
        "returns a tensor of a kind that agrees with all comparisons",
        """
        import torch

        class Agrees(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if "eq" in function.__name__ or "close" in function.__name__:
                    return True
                return super().__torch_function__(function, types, args, kwargs or {})

        def softmax(scores, dim=-1):
            return scores.as_subclass(Agrees)
        """,
    ),
    _returns(
        "pickle_bomb",
        "returns an object that runs code when it is unpickled",
        """
        import os

        class Bomb:
            def __reduce__(self):
                return os.system, ("touch /tmp/ttutor-was-here",)

        def softmax(scores, dim=-1):
            return [Bomb(), {"x": Bomb()}]
        """,
    ),
    _returns(
        "patches_comparisons",
        "replaces what compares tensors",
        """
        import builtins, math, torch

        torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
        torch.testing.assert_close = lambda *a, **k: None
        torch.Tensor.__eq__ = lambda self, other: True
        builtins.all = builtins.any = lambda *a: True
        math.isclose = lambda *a, **k: True

        def softmax(scores, dim=-1):
            return scores
        """,
    ),
    _returns(
        "patches_the_worker",
        "replaces the worker's own functions",
        """
        import sys

        for name, module in list(sys.modules.items()):
            if "worker" in name or "packing" in name or "framing" in name:
                for key in list(vars(module)):
                    if callable(vars(module)[key]) and not key.startswith("__"):
                        setattr(module, key, lambda *a, **k: {"right": True, "points": 100})

        def softmax(scores, dim=-1):
            return "right"
        """,
    ),
    _returns(
        "finds_the_worker",
        "takes the worker from the stack and answers in its place",
        """
        import sys

        def softmax(scores, dim=-1):
            frame = sys._getframe()
            while frame:
                worker = frame.f_locals.get("self")
                if hasattr(worker, "_reply"):
                    for number in range(99):
                        worker._reply({"id": number, "value": True, "inputs": [], "points": 100}, b"")
                frame = frame.f_back
            return scores
        """,
    ),
    _returns(
        "lying_numbers",
        "returns numbers and texts whose types lie",
        """
        class One(float):
            def __eq__(self, other):
                return True

            def __sub__(self, other):
                return 0.0

            __rsub__ = __mul__ = __abs__ = __sub__

        class Text(str):
            def __eq__(self, other):
                return True

            __hash__ = str.__hash__

        def softmax(scores, dim=-1):
            return {Text("x"): One(1.0)}
        """,
    ),
    _returns(
        "hostile_exception",
        "raises an exception that explodes when it is looked at",
        """
        class Passed(Exception):
            def __str__(self):
                raise SystemExit(0)

            __repr__ = __str__

        def softmax(scores, dim=-1):
            raise Passed()
        """,
    ),
    _returns(
        "exception_of_the_judge",
        "raises an exception named as the judge's own",
        """
        class Trouble(Exception):
            kind = "ok"

        class Malformed(ValueError):
            pass

        def softmax(scores, dim=-1):
            raise (Trouble if dim == -1 else Malformed)("ok " * 10**6)
        """,
    ),
    _returns(
        "not_started_for_ever",
        "says NotImplementedError, for mercy",
        """
        def softmax(scores, dim=-1):
            raise NotImplementedError("all tests passed")
        """,
    ),
    _returns(
        "nothing_but_nan",
        "returns NaN, which no comparison dislikes",
        """
        def softmax(scores, dim=-1):
            return scores * float("nan")
        """,
    ),
    _returns(
        "changes_the_question",
        "changes the inputs so that its answer would be right",
        """
        def softmax(scores, dim=-1):
            scores.data = scores.data.new_zeros(1)
            return scores.new_ones(1)
        """,
    ),
    _returns(
        "takes_the_shortcut",
        "calls what it should build",
        """
        import torch

        def softmax(scores, dim=-1):
            return torch.softmax(scores, dim)
        """,
    ),
)
