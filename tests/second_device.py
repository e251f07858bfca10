"""A second device without any hardware: its tensors say that they are elsewhere, and compute on the CPU all the same.

On it, code that makes a tensor on the CPU beside those of the model fails as it would on a GPU. Its name is that of
PyTorch's device without memory, ``meta``, for which every operation may be asked.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ELSEWHERE = torch.device("meta")

BETWEEN_DEVICES = ("_to_copy", "copy_", "index", "index_put_", "_index_put_impl_")
"""Operations whose tensors may be on two devices, on a GPU too."""

FROM_NUMBERS = (torch.tensor, torch.as_tensor, torch.scalar_tensor)


class Elsewhere(Tensor):
    """A tensor of the second device; ``held`` has its numbers."""

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        """A tensor of the same sizes, without memory of its own."""
        return Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=ELSEWHERE,
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """As for every tensor, but for one method that PyTorch refuses to subclasses."""
        if function is Tensor.tolist:
            return args[0].held.tolist()
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        """Run an operation on the numbers."""
        return _run(operation, args, kwargs or {})


def _held(value: Any) -> Any:
    return value.held if isinstance(value, Elsewhere) else value


def _run(operation: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the numbers of its tensors; refuse tensors of both devices, as a GPU does."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    on_the_cpu = [tuple(tensor.shape) for tensor in tensors if tensor.ndim and not isinstance(tensor, Elsewhere)]
    is_elsewhere = any(isinstance(tensor, Elsewhere) for tensor in tensors)
    name = operation.overloadpacket.__name__
    if on_the_cpu and is_elsewhere and name not in BETWEEN_DEVICES:
        raise RuntimeError(f"{name} got tensors of two devices; on the CPU are those of shape {on_the_cpu}")
    if kwargs.get("device") is not None:
        is_elsewhere = kwargs["device"] == ELSEWHERE
        kwargs = {**kwargs, "device": torch.device("cpu")}
    elif name in BETWEEN_DEVICES:
        is_elsewhere = isinstance(args[0], Elsewhere)
    given = {id(_held(tensor)): tensor for tensor in tensors}
    found = operation(*tree_map(_held, args), **tree_map(_held, kwargs))

    def placed(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        same = given.get(id(value))  # changed in place, or moved without a copy, since both devices are the CPU
        if same is not None and isinstance(same, Elsewhere) == is_elsewhere:
            return same
        return Elsewhere(value) if is_elsewhere else value

    return tree_map(placed, found)


class _Operations(TorchDispatchMode):
    """Lets operations without any tensor, such as ``zeros``, work on the second device."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Lets functions that make a tensor of numbers, such as ``tensor``, work on the second device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in FROM_NUMBERS and kwargs.get("device") == ELSEWHERE:
            return Elsewhere(function(*args, **{**kwargs, "device": "cpu"}))
        return function(*args, **kwargs)


@contextmanager
def second_device() -> Iterator[torch.device]:
    """The second device, while it is there."""
    unknown = {  # what PyTorch has for devices that it knows, and not for wrapped tensors
        "is_autocast_enabled": lambda *_: False,
        "autocast": lambda *_, **__: nullcontext(),
        "inference_mode": torch.no_grad,
    }
    with mock.patch.multiple(torch, **unknown), sdpa_kernel(SDPBackend.MATH), _Operations(), _Functions():
        yield ELSEWHERE


def moved(model: nn.Module) -> nn.Module:
    """A copy of a model on the second device."""
    model, there = copy.deepcopy(model), {}  # a parameter that stands at two places stays one
    for module in model.modules():
        for name, one in module.named_parameters(recurse=False):
            if one not in there:
                there[one] = nn.Parameter(Elsewhere(one.data), requires_grad=one.requires_grad)
            module._parameters[name] = there[one]
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = Elsewhere(buffer)
    return model
