"""Who hears whom: which outputs of a function move when one input is nudged, and by how much."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ttutor.widgets.base import number_array, rounded_array


def influence(function: Callable[[Any], Any], inputs: Any) -> np.ndarray:
    r"""How much each output moves when each input is nudged, ``outputs inputs``: $\|\partial y_i/\partial x_j\|$.

    The number is the root mean square over all directions of a nudge of length 1 (the Frobenius norm over the root of
    the input's width), at this one point, by autograd. A zero is exact: the output did not move at all.

    Args:
        function: maps a tensor ``tokens features`` to one of as many tokens.
        inputs: ``tokens features``. A tensor keeps its dtype; a module is asked in the dtype of its parameters.

    >>> influence(lambda hidden: hidden.cumsum(dim=0), torch.zeros(3, 2)).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    parameter = next(function.parameters(), None) if isinstance(function, nn.Module) else None
    own = inputs.dtype if isinstance(inputs, Tensor) and inputs.is_floating_point() else torch.get_default_dtype()
    point = torch.tensor(number_array("inputs", inputs), dtype=own if parameter is None else parameter.dtype)
    if point.ndim != 2 or not point.numel() or not torch.isfinite(point).all():
        raise ValueError(f"inputs have to be finite numbers, tokens features, but have shape {tuple(point.shape)}")
    point.requires_grad_()
    first, again = function(point), function(point)
    if first.shape[:1] != point.shape[:1] or first.ndim != 2:
        raise ValueError(
            f"the function made {tuple(first.shape)} of inputs {tuple(point.shape)}; expected tokens features, as many "
            "tokens as came in. For a layer with a batch axis write lambda hidden: layer(hidden[None])[0]"
        )
    if not torch.equal(first, again):
        raise ValueError("the function gives other outputs for the same inputs; switch dropout off: model.eval()")
    if not first.requires_grad:
        raise ValueError("the outputs are cut off from the inputs: they have no gradient")
    blocks = torch.autograd.functional.jacobian(function, point.detach())
    if not torch.isfinite(blocks).all():
        raise ValueError("a derivative of the function is NaN or infinite; look at its outputs at these inputs")
    return (blocks.double().square().sum(dim=(1, 3)) / point.shape[1]).sqrt().numpy()


MAX_TOKENS = 16
MAX_MAPS = 8
_DIGITS = 3


def checked_maps(maps: Any, size: int) -> dict[str, list[list[float]]]:
    """Tables of influence by name, each of the right size and without negative numbers, kept to three digits."""
    if not isinstance(maps, Mapping) or not 0 < len(maps) <= MAX_MAPS:
        raise ValueError(f'maps has to be a dict of 1 to {MAX_MAPS} names and tables, such as {{"attention": table}}')
    return {str(name): _checked(name, table, size) for name, table in maps.items()}


def measured_maps(
    functions: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]], inputs: Any
) -> dict[str, np.ndarray]:
    """`influence` of one function, or of several by name, at these inputs."""
    named = functions if isinstance(functions, Mapping) else {getattr(functions, "__name__", "function"): functions}
    return {name: _measured(name, function, inputs) for name, function in named.items()}


def _measured(name: str, function: Callable[[Any], Any], inputs: Any) -> np.ndarray:
    """`influence`, with the function's name in what it complains of."""
    try:
        return influence(function, inputs)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _checked(name: str, table: Any, size: int) -> list[list[float]]:
    """A table of the right size without negative numbers, each number kept to three digits, however small it is."""
    rounded_array(name, table, (size, size), _DIGITS, axes="outputs, inputs")
    values = number_array(name, table)
    if (values < 0).any():
        raise ValueError(f"{name} has negative numbers; expected how far an output moves, 0 or more")
    return [[_short(value) for value in row] for row in values.tolist()]


def _short(value: float) -> float:
    """Three digits that count: 0.012345 gives 0.0123."""
    return round(value, _DIGITS - 1 - math.floor(math.log10(value))) if value > 0 else 0.0
