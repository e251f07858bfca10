"""How much each output of a function on tokens moves when each input is nudged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ttutor.widgets.base import number_array


def influence(function: Callable[[Any], Any], inputs: Any) -> np.ndarray:
    r"""How much each output moves when each input is nudged, ``outputs inputs``: $\|\partial y_i/\partial x_j\|$.

    The number is the root mean square over all directions of a nudge of length 1 (the Frobenius norm over the root of
    the input's width), at this one point. It comes from autograd; where a function has no gradient (NumPy, or a tensor
    cut off from the graph), from central differences. A zero is exact: the output did not move at all.

    Args:
        function: maps ``tokens features`` to ``tokens features``, a tensor or, failing that, an array.
        inputs: ``tokens features``. A tensor keeps its dtype; a module is asked in the dtype of its parameters.

    Raises:
        ValueError: the function fails, is random, gives another number of tokens, or gives NaN.

    >>> influence(lambda hidden: hidden.cumsum(dim=0), torch.zeros(3, 2)).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    point, ask = _asker(function, inputs)
    first, again = ask(point), ask(point)
    if first.shape[:1] != point.shape[:1] or first.ndim != 2:
        raise ValueError(
            f"the function made {tuple(first.shape)} of inputs {tuple(point.shape)}; expected tokens features, as many "
            "tokens as came in. For a layer with a batch axis write lambda hidden: layer(hidden[None])[0]"
        )
    if not torch.equal(first, again):
        raise ValueError("the function gives other outputs for the same inputs; switch dropout off: model.eval()")
    blocks = _by_autograd(ask, point) if first.requires_grad else _by_differences(ask, point)
    if not torch.isfinite(blocks).all():
        raise ValueError("a derivative of the function is NaN or infinite; look at its outputs at these inputs")
    return (blocks.double().square().sum(dim=(1, 3)) / point.shape[1]).sqrt().numpy()


def _asker(function: Callable[[Any], Any], inputs: Any) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The inputs as a tensor, and the function from tensor to tensor, whatever it speaks itself."""
    parameter = next(function.parameters(), None) if isinstance(function, nn.Module) else None
    own = inputs.dtype if isinstance(inputs, Tensor) and inputs.is_floating_point() else torch.get_default_dtype()
    point = torch.tensor(number_array("inputs", inputs), dtype=own if parameter is None else parameter.dtype)
    if point.ndim != 2 or not point.numel() or not torch.isfinite(point).all():
        raise ValueError(f"inputs have to be finite numbers, tokens features, but have shape {tuple(point.shape)}")
    point.requires_grad_()

    def ask(here: Tensor) -> Tensor:
        return torch.as_tensor(function(here))

    def ask_numpy(here: Tensor) -> Tensor:
        return torch.as_tensor(np.asarray(function(here.detach().numpy().astype(np.float64))))

    try:
        ask(point)
    except Exception as error:  # whatever a reader's function raises on a tensor
        try:
            ask_numpy(point)
        except Exception:
            raise ValueError(
                f"the function failed on a tensor {tuple(point.shape)} of {point.dtype}: {error}. It has to map "
                "tokens features to tokens features; give inputs as a tensor of the dtype that it needs"
            ) from error
        return point.double(), ask_numpy
    return point, ask


def _by_autograd(ask: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    """``outputs d_output tokens d_input``, the exact derivatives."""
    return torch.autograd.functional.jacobian(ask, point.detach())


def _by_differences(ask: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    """The same by nudging each number up and down a little."""
    point = point.detach()
    step = torch.finfo(point.dtype).eps ** (1 / 3)
    columns = []
    for nudge in torch.eye(point.numel(), dtype=point.dtype) * step:
        moved = nudge.reshape(point.shape)
        columns.append((ask(point + moved).double() - ask(point - moved).double()) / (2 * step))
    return torch.stack(columns, dim=-1).unflatten(-1, tuple(point.shape))
