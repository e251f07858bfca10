"""Which forbidden functions an answer calls, seen while it runs: by name, out of a table, a default or a string."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

LIBRARIES = ("torch", "ttutor", "numpy", "scipy", "sklearn", "transformers", "jax")
"""Only their functions count: a student may call a helper as he likes."""
OWN = "ttutor.exercises"
ALSO_CALLED = {"thnnfusedlstmcell": "lstmcell", "multiheadattentionforward": "multiheadattention"}


@contextmanager
def watched(forbids: Sequence[str], used: set[str]) -> Iterator[None]:
    """Watch what runs, and add those forbidden names that are called to a set.

    Calls from Python are seen by the interpreter's profiler, operators of PyTorch also where C calls them.

    >>> import torch
    >>> used = set()
    >>> with watched(["softmax"], used):
    ...     _ = getattr(torch, "soft" + "max")(torch.zeros(3), 0)
    >>> used
    {'softmax'}
    """
    if not forbids:
        yield
        return
    watch = _Watch(forbids, used)
    before = sys.getprofile()
    sys.setprofile(watch.event)
    try:
        with _Operators(watch):
            yield
    finally:
        sys.setprofile(before)


class _Watch:
    def __init__(self, forbids: Sequence[str], used: set[str]) -> None:
        self.wanted, self.used = {_plain(name): name for name in reversed(forbids)}, used

    def saw(self, name: str) -> None:
        plain = _plain(name)
        found = self.wanted.get(plain) or self.wanted.get(ALSO_CALLED.get(plain, ""))
        if found is not None:
            self.used.add(found)

    def event(self, frame: FrameType, event: str, function: Any) -> None:
        """What the profiler calls: Python functions by their code, others by their own name."""
        if event == "c_call":
            self.saw(function.__name__)
        elif event == "call":
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] in LIBRARIES and not module.startswith(OWN):
                for name in frame.f_code.co_qualname.split("."):  # of a method also its class
                    self.saw(name)


class _Operators(TorchDispatchMode):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled; without this PyTorch would load its compiler first, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.watch.saw(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _plain(name: str) -> str:
    """A name without what differs between a module, a function and its kernels.

    >>> _plain("LayerNorm"), _plain("native_layer_norm"), _plain("_softmax")
    ('layernorm', 'layernorm', 'softmax')
    """
    plain = name.lower().replace("_", "").removeprefix("native")
    return "scaleddotproductattention" if plain.startswith("scaleddotproduct") else plain
