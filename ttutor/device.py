"""The device to work on, the number format in which its products run fast, and how many threads share them."""

import os
from typing import Any

import torch
from torch import Tensor

from ttutor.names import answer_other_names

__all__ = ["choose_device", "choose_threads", "half_precision", "to_device"]

BF16_FEATURES = ("avx512_bf16", "amx_bf16")
"""Instructions that multiply bfloat16; without them a CPU converts back and forth, and half precision is slower."""

WORTH_A_THREAD = 2**29
"""Multiplications of a product from which threads share it: at 2**28, `ttutor gpt` at size small, two threads took 1.75
times as long as one beside a program that kept one of two cores busy, and 1.3 times as long without it."""


def choose_device(wanted: str = "auto") -> torch.device:
    """The device to work on: the one asked for if it is there, or the fastest kind there is.

    Args:
        wanted: ``"auto"``, or a name that PyTorch understands, such as ``"cpu"`` or ``"cuda:1"``.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return torch.device("cuda" if has_cuda else "mps" if has_mps else "cpu")
    there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count())), *(["mps"] if has_mps else [])]
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise ValueError(f'device must be "auto" or one of {there}, but is {wanted!r}') from None
    name = f"cuda:{device.index or 0}" if device.type == "cuda" else device.type
    if name not in there:
        raise ValueError(f"there is no device {wanted!r} here; there is {', '.join(there)}")
    return device


def choose_threads(multiplications: int = 0) -> int:
    """How many threads of a CPU should share products of so many multiplications.

    Threads that share a product wait for one another at its end. Where another program uses a core, one of them gets
    only a part of it, and all wait, thousands of times a second if the products are small. So these have one thread,
    and large ones as many as PyTorch has. ``OMP_NUM_THREADS``, where it is set, decides alone.

    Args:
        multiplications: of the largest product in a layer: its rows times the numbers in its weight matrix.

    Example:
        >>> choose_threads(2**30) == torch.get_num_threads()
        True
    """
    is_small = multiplications < WORTH_A_THREAD and "OMP_NUM_THREADS" not in os.environ
    return 1 if is_small else torch.get_num_threads()


def half_precision(device: torch.device | str) -> torch.dtype | None:
    """The half-precision format in which this device multiplies fast; None where it has none.

    In float16 the loss must be scaled against underflow; bfloat16 needs no scaling.

    Example:
        >>> half_precision("mps")
        torch.float16
    """
    device = torch.device(device)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.get_device_capability(device) >= (8, 0) else torch.float16
    if device.type == "mps":
        return torch.float16
    # Older releases of PyTorch cannot tell.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.bfloat16 if any(capabilities.get(feature) for feature in BF16_FEATURES) else None


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Move a tensor without waiting for it.

    On the way to an NVIDIA GPU it is copied into pinned memory first, so that the transfer runs beside the computation.

    Example:
        >>> to_device(torch.tensor([1]), "cpu")
        tensor([1])
    """
    to_gpu = torch.device(device).type == "cuda"
    pinned = tensor.pin_memory() if to_gpu and tensor.device.type == "cpu" else tensor
    return pinned.to(device, non_blocking=to_gpu)


answer_other_names(__name__)
