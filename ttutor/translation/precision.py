"""Which number format the matrix products of a training run in."""

from contextlib import AbstractContextManager, nullcontext

import torch

PRECISIONS = ("fp32", "bf16")
"""What a training can run in, once "auto" is decided."""

BF16_FEATURES = ("avx512_bf16", "amx_bf16")
"""Instructions that multiply bfloat16; without them a CPU converts back and forth and bf16 is slower than float32."""


def resolve_precision(wanted: str) -> str:
    """ "fp32" or "bf16"; "auto" becomes bf16 where the CPU multiplies it natively.

    >>> resolve_precision("fp32")
    'fp32'
    """
    if wanted != "auto":
        return wanted
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()  # older releases of torch cannot tell
    return "bf16" if any(capabilities.get(feature) for feature in BF16_FEATURES) else "fp32"


def products_in(precision: str) -> AbstractContextManager:
    """A context in which matrix products run in that format; weights, norms and softmax stay in float32."""
    return torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else nullcontext()
