"""Which number format the matrix products of a training run in."""

from contextlib import AbstractContextManager, nullcontext

import torch

from ttutor.device import half_precision

PRECISIONS = ("fp32", "bf16")
"""What a training can run in, once "auto" is decided."""


def resolve_precision(wanted: str) -> str:
    """ "fp32" or "bf16"; "auto" becomes bf16 where the CPU multiplies it natively.

    >>> resolve_precision("fp32")
    'fp32'
    """
    if wanted != "auto":
        return wanted
    return "fp32" if half_precision("cpu")[0] is None else "bf16"


def products_in(precision: str) -> AbstractContextManager:
    """A context in which matrix products run in that format; weights, norms and softmax stay in float32.

    Weights are converted anew at each use: each is used once, and a store of converted ones is shared by all threads.
    """
    return torch.autocast("cpu", torch.bfloat16, cache_enabled=False) if precision == "bf16" else nullcontext()
