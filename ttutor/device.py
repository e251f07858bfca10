"""The device to work on, and the number format in which its matrix products run fast."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["DeviceChoice", "choose_device", "half_precision", "to_device"]

BF16_FEATURES = ("avx512_bf16", "amx_bf16")
"""Instructions that multiply bfloat16; without them a CPU converts back and forth, and half precision is slower."""


class DeviceChoice(NamedTuple):
    """A device and the reason for taking it."""

    device: torch.device
    reason: str


def choose_device(wanted: str = "auto") -> DeviceChoice:
    """The device to work on: the one asked for if it is there, or the fastest kind there is.

    Args:
        wanted: ``"auto"``, or a name that PyTorch understands, such as ``"cpu"`` or ``"cuda:1"``.

    Example:
        >>> choose_device("cpu")
        DeviceChoice(device=device(type='cpu'), reason='asked for')
    """
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        if has_cuda:
            return DeviceChoice(torch.device("cuda"), f"an NVIDIA GPU is here: {torch.cuda.get_device_name(0)}")
        if has_mps:
            return DeviceChoice(torch.device("mps"), "an Apple GPU is here")
        return DeviceChoice(torch.device("cpu"), "PyTorch finds no GPU")
    there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count())), *(["mps"] if has_mps else [])]
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise ValueError(f'device must be "auto" or one of {there}, but is {wanted!r}') from None
    name = f"cuda:{device.index or 0}" if device.type == "cuda" else device.type
    if name not in there:
        raise ValueError(f"there is no device {wanted!r} here; there is {', '.join(there)}")
    return DeviceChoice(device, "asked for")


def half_precision(device: torch.device | str) -> tuple[torch.dtype | None, str]:
    """The half-precision format in which this device multiplies fast, and why; None where it has none.

    Example:
        >>> half_precision("mps")[0]
        torch.float16
    """
    device = torch.device(device)
    if device.type == "cuda":
        if torch.cuda.get_device_capability(device) >= (8, 0):
            return torch.bfloat16, "this GPU multiplies bfloat16, which needs no scaling of the loss"
        return torch.float16, "this GPU is older than bfloat16; scale the loss against underflow"
    if device.type == "mps":
        return torch.float16, "Apple GPUs multiply float16; scale the loss against underflow"
    capabilities: dict[str, Any] = getattr(
        torch.cpu, "get_capabilities", dict
    )()  # older releases of PyTorch cannot tell
    found = [feature for feature in BF16_FEATURES if capabilities.get(feature)]
    if found:
        return torch.bfloat16, f"this CPU multiplies bfloat16 ({', '.join(found)})"
    return None, "this CPU would convert half precision back and forth"


def to_device(batch: Any, device: torch.device | str) -> Any:
    """Move the tensors of a batch, in whatever tuples, lists and dictionaries they stand, without waiting for them.

    On the way to an NVIDIA GPU they are copied into pinned memory first, so that the transfer runs beside the
    computation. What is no tensor is handed through.

    Example:
        >>> to_device({"ids": torch.tensor([1]), "lengths": (3,)}, "cpu")
        {'ids': tensor([1]), 'lengths': (3,)}
    """
    device = torch.device(device)
    if isinstance(batch, Tensor):
        pinned = batch.pin_memory() if device.type == "cuda" and batch.device.type == "cpu" else batch
        return pinned.to(device, non_blocking=device.type == "cuda")
    if isinstance(batch, dict):
        return {name: to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):  # a named tuple
        return type(batch)(*(to_device(part, device) for part in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(part, device) for part in batch)
    return batch
