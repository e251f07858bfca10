"""Shapes with names: one check whose message says which axis of which tensor is wrong.

A tensor's shape is written as whole-word axes, as in einops: ``"batch heads queries d_head"``. The same word
means the same size in every tensor of one call.
"""

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from ttutor.errors import ShapeError

__all__ = [
    "check_broadcasts",
    "check_dtypes",
    "check_shapes",
    "has_free_sizes",
    "has_values",
    "is_recorded",
    "is_transformed",
]


def is_recorded() -> bool:
    """Whether PyTorch records the computation, for other sizes and numbers than those at hand.

    So it is in `torch.compile`, `torch.export` and `torch.jit.trace`: what was checked or chosen here for one size
    would hold for all.
    """
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def has_free_sizes() -> bool:
    """Whether what PyTorch records will run with other sizes than those at hand: in export and tracing."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()


def is_transformed(tensor: Tensor) -> bool:
    """Whether `torch.func` lets a tensor stand for others, or it carries the tangent of a derivative taken forwards."""
    if torch.compiler.is_compiling():
        return False
    is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return is_wrapped or forward_ad.unpack_dual(tensor).tangent is not None


def has_values(tensor: Tensor) -> bool:
    """Whether a check may read a tensor's numbers, and not just its shape.

    Not while the computation is recorded, not where `torch.func` lets one number stand for many, not on the device
    `meta`, and not on a GPU, which would have to be waited for.
    """
    return (
        not is_recorded()
        and tensor.device.type == "cpu"
        and type(tensor) in (Tensor, nn.Parameter)  # a fake tensor has a shape alone
        and not is_transformed(tensor)
    )


def check_shapes(sizes: dict[str, int] | None = None, /, **tensors: tuple[Tensor, str]) -> dict[str, int]:
    """Check that tensors have the axes they should have, and that equal names mean equal sizes.

    Args:
        sizes: sizes that are fixed beforehand, by axis name, such as a layer's own ``{"d_model": 512}``.
        **tensors: for each argument its tensor and its axes, separated by blanks. A leading ``...`` stands for any
            number of axes, which are not compared; an axis called ``_`` or ``1`` has any size, or size one.

    Returns:
        The size of every named axis.

    Example:
        >>> key, value = torch.zeros(2, 7, 8), torch.zeros(2, 6, 8)
        >>> check_shapes(key=(key, "batch keys d_head"), value=(value, "batch keys d_head"))
        Traceback (most recent call last):
        ...
        ttutor.errors.ShapeError: axis 'keys' is 7 in key but 6 in value
        expected: key [batch keys d_head], value [batch keys d_head]
        came:     key (2, 7, 8), value (2, 6, 8)
    """
    if is_recorded():  # it was checked, or will be, when it runs as it is written
        return {}
    shapes = tuple((name, axes, _shape(name, tensor, axes)) for name, (tensor, axes) in tensors.items())
    return dict(_sizes_by_axis(tuple((sizes or {}).items()), shapes))


@lru_cache(4096)  # in decoding the same few shapes come many thousand times
def _sizes_by_axis(
    fixed: tuple[tuple[str, int], ...], shapes: tuple[tuple[str, str, torch.Size], ...]
) -> dict[str, int]:
    """What `check_shapes` says of tensors with these names, axes and shapes."""
    found: dict[str, tuple[int, str]] = {axis: (size, "") for axis, size in (("1", 1), *fixed)}
    for name, pattern, shape in shapes:
        for axis, size in zip(*_named_axes(name, pattern, shape), strict=True):
            known, where = found.setdefault(axis, (size, name))
            if axis == "_" or known == size:
                continue
            if not where:
                message = f"axis {axis!r} is {size} in {name} but must be {known}"
            else:
                message = f"axis {axis!r} is {known} in {where} but {size} in {name}"
            raise ShapeError(message + _both_sides(shapes))
    return {axis: size for axis, (size, _) in found.items() if axis not in {"_", "1"}}


def check_broadcasts(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check that a tensor can be broadcast to a shape whose axes are ``batch heads queries keys``, not enlarging it.

    Example:
        >>> check_broadcasts("mask", torch.ones(2, 5), (2, 3, 4, 5))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ttutor.errors.ShapeError: mask has shape (2, 5), which does not broadcast to `batch heads queries keys` ...
    """
    if is_recorded():
        return
    aligned = zip(reversed(tensor.shape), reversed(shape), strict=False)
    if tensor.ndim > len(shape) or any(size not in (1, wanted) for size, wanted in aligned):
        raise ShapeError(
            f"{name} has shape {tuple(tensor.shape)}, which does not broadcast to `batch heads queries keys` = "
            f"{tuple(shape)}; what differs from sentence to sentence needs the axes `batch 1 1 keys`, "
            "as ttutor.masks.padding_mask gives them"
        )


def check_dtypes(layer: nn.Module | None = None, /, **tensors: Tensor) -> None:
    """Check that tensors have one number format, that of a layer's weight where one is given.

    A layer whose weight is no tensor of numbers with a point (it is quantised, say) says itself what it takes.
    Inside `torch.autocast` formats may differ: PyTorch converts them.

    Example:
        >>> check_dtypes(query=torch.zeros(2), key=torch.zeros(2, dtype=torch.float64))
        Traceback (most recent call last):
        ...
        TypeError: expected tensors of one number format, but query is float32, key is float64; convert with .to(...)
    """
    if is_recorded():
        return
    found = [tensor.dtype for tensor in tensors.values()]
    weight = None if layer is None else layer.weight
    if layer is not None and not (isinstance(weight, Tensor) and weight.is_floating_point()):
        return
    wanted = weight.dtype if isinstance(weight, Tensor) else found[0]
    if not wanted.is_floating_point:
        came = f"but the tensors are {str(wanted).removeprefix('torch.')}"
        raise TypeError(f"expected numbers with a point, {came}; convert with .float()")
    if all(dtype is wanted for dtype in found):
        return
    if torch.is_autocast_enabled(next(iter(tensors.values())).device.type):
        return
    came = ", ".join(
        f"{name} is {str(dtype).removeprefix('torch.')}" for name, dtype in zip(tensors, found, strict=True)
    )
    if layer is None:
        raise TypeError(f"expected tensors of one number format, but {came}; convert with .to(...)")
    format_ = str(wanted).removeprefix("torch.")
    raise TypeError(
        f"this layer's weights are {format_}, but {came}; convert what comes in by .to(torch.{format_}), or the layer"
    )


def _shape(name: str, tensor: Tensor, axes: str) -> torch.Size:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor with axes [{axes}], but came as {type(tensor).__name__}")
    return tensor.shape


def _named_axes(name: str, axes: str, shape: torch.Size) -> tuple[list[str], tuple[int, ...]]:
    """The axis names of one tensor and their sizes, the open leading axes left out."""
    names = axes.split()
    is_open = bool(names) and names[0] == "..."
    names = names[1:] if is_open else names
    if len(shape) < len(names) or (len(shape) > len(names) and not is_open):
        at_least = "at least " if is_open else ""
        raise ShapeError(
            f"{name} must have {at_least}{len(names)} axes [{axes}], but its shape {tuple(shape)} has {len(shape)}"
        )
    return names, shape[len(shape) - len(names) :]


def _both_sides(shapes: tuple[tuple[str, str, torch.Size], ...]) -> str:
    expected = ", ".join(f"{name} [{axes}]" for name, axes, _ in shapes)
    came = ", ".join(f"{name} {tuple(shape)}" for name, _, shape in shapes)
    return f"\nexpected: {expected}\ncame:     {came}"
