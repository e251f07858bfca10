"""Where a training runs, and in which number format its matrix products do."""

from contextlib import AbstractContextManager, nullcontext

import torch

from ttutor.device import choose_device, half_precision
from ttutor.errors import SettingError

PRECISIONS = ("fp32", "bf16")
"""The precisions of a training, once "auto" is decided."""

CPU = torch.device("cpu")


def training_device(wanted: str = "auto", local_rank: int = 0) -> torch.device:
    """The device for one process: with "auto", an NVIDIA GPU where PyTorch finds one, else the CPU.

    Args:
        wanted: "auto", "cpu", "cuda", or one GPU as "cuda:1".
        local_rank: the number of this process on its machine; each takes a GPU of its own.

    >>> training_device("cpu")
    device(type='cpu')
    """
    name = "cuda" if wanted == "auto" and torch.cuda.is_available() else wanted.replace("auto", "cpu")
    if name not in ("cpu", "cuda") and not name.startswith("cuda:"):
        raise SettingError(f"the device must be auto, cpu, cuda, or one GPU as cuda:1, got {wanted!r}")
    n_gpus = torch.cuda.device_count()
    if name == "cuda" and 0 < n_gpus <= local_rank:
        raise SettingError(
            f"there are more processes on this machine than its {n_gpus} GPUs: "
            f'start at most {n_gpus} here, or train with device="cpu" (--device cpu)'
        )
    try:
        return choose_device(f"cuda:{local_rank}" if name == "cuda" else name)
    except ValueError as error:
        raise SettingError(f'{error}; device="auto" (--device auto) takes what there is') from None


def place(processes: int, threads: int, device: str) -> str:
    """Where a training runs, in words.

    >>> place(processes=2, threads=1, device="cpu")
    '2 processes of 1 thread on cpu'
    """
    together = f"{processes} processes of " if processes > 1 else ""
    return f"{together}{threads} thread{'s' if threads > 1 else ''} on {device}"


def resolve_precision(wanted: str, device: torch.device = CPU) -> str:
    """ "fp32" or "bf16"; "auto" becomes bf16 where the device multiplies it natively.

    >>> resolve_precision("fp32")
    'fp32'
    """
    if wanted != "auto":
        return wanted
    return "bf16" if half_precision(device) is torch.bfloat16 else "fp32"


def products_in(precision: str, device: torch.device = CPU, *, keep: bool = False) -> AbstractContextManager:
    """A context in which matrix products run in that format; weights, norms and softmax stay in float32.

    Args:
        precision: "fp32" or "bf16".
        device: where the products run.
        keep: whether converted weights are kept until the context ends, which pays where each is used many times, as
            in a search. In a training each is used once, and a store of converted ones is shared by all threads.
    """
    if precision != "bf16":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=keep)
