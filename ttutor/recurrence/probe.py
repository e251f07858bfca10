r"""Probes: how much the end of a sequence still feels of each earlier moment, and which inputs an output depends on."""

from collections.abc import Callable

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.recurrence.cells import RecurrentCell, State


def jacobians_through_time(
    cell: RecurrentCell,
    inputs: Float[Tensor, "batch tokens d_input"],
    state: State | None = None,
    *,
    part: int = 0,
) -> Float[Tensor, "times batch d_model d_model"]:
    r"""$\partial h_T / \partial h_t$ for $t = 0, 1, \dots, T$: one backward pass through the unrolled recurrence.

    Entry ``[t, b, i, j]`` says how much feature $i$ at the end moves when feature $j$ moves after $t$ tokens. By the
    chain rule that is the product of the steps' Jacobians (Pascanu et al. 2013, equation 5).

    Args:
        cell: what reads one token.
        inputs: one vector for each token.
        state: where to begin; the cell's ``initial_state`` when left out.
        part: which tensor of the state, at both ends: 0 is the hidden vector, 1 the LSTM's cell. The other parts are
            held fixed at time $t$ and follow afterwards.
    """
    if not 0 <= part < cell.n_parts:
        raise ValueError(f"the state of {type(cell).__name__} has parts 0 to {cell.n_parts - 1}, but part is {part}")
    with torch.enable_grad():
        state, moments = cell.initial_state(inputs) if state is None else state, []
        for t in range(inputs.shape[1] + 1):
            # A copy, since the LSTM's hidden vector is made from its cell: what is differentiated must not know that.
            state = tuple(tensor.clone().requires_grad_() for tensor in state)
            moments.append(state[part])
            state = cell(inputs[:, t], state) if t < inputs.shape[1] else state
        directions = repeat(
            torch.eye(cell.d_model, dtype=inputs.dtype, device=inputs.device),
            "rows d_model -> rows batch d_model",
            batch=inputs.shape[0],
        )
        jacobians = torch.autograd.grad(moments[-1], moments, directions, is_grads_batched=True)
    return torch.stack([rearrange(jacobian, "rows batch d_model -> batch rows d_model") for jacobian in jacobians])


def gradient_norms(
    cell: RecurrentCell,
    inputs: Float[Tensor, "batch tokens d_input"],
    state: State | None = None,
    *,
    part: int = 0,
) -> Float[Tensor, "times batch"]:
    r"""$\lVert \partial h_T / \partial h_t \rVert$ for $t = 0, 1, \dots, T$; the last is that of the identity.

    The norm is the spectral one, the largest factor by which any direction is stretched. Bengio et al. (1994), section
    4; Pascanu et al. (2013), section 2. In float32 numbers below about 1e-38 are lost, so use float64 for long
    sequences.

    Args:
        cell, inputs, state, part: as for `jacobians_through_time`.

    Example:
        >>> from ttutor.recurrence import RNNCell
        >>> cell = RNNCell(1, 2, activation="linear")
        >>> cell.from_hidden.weight.data = torch.tensor([[0.0, 0.5], [0.5, 0.0]])
        >>> gradient_norms(cell, torch.randn(1, 3, 1)).flatten()
        tensor([0.1250, 0.2500, 0.5000, 1.0000])
    """
    return torch.linalg.matrix_norm(jacobians_through_time(cell, inputs, state, part=part), ord=2)


def depends_on(
    function: Callable[[Tensor], Tensor], inputs: Float[Tensor, "tokens d_input"]
) -> Bool[Tensor, "outputs tokens"]:
    r"""Which inputs each output depends on: where $\partial y_i / \partial x_j$ is not zero.

    A measurement at one point: a ReLU that happens to be shut hides what lies behind it, and a derivative too small for
    the dtype counts as none.

    Args:
        function: maps ``1 tokens d_input`` to ``1 outputs d_output``.
        inputs: one sequence, without the batch axis.

    Example:
        >>> from ttutor.recurrence import convolve
        >>> depends_on(lambda hidden: convolve(hidden, torch.ones(2, 1, 1), causal=True), torch.ones(3, 1)).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """

    def alone(tokens: Tensor) -> Tensor:
        return function(rearrange(tokens, "tokens d_input -> 1 tokens d_input"))[0]

    jacobian = torch.autograd.functional.jacobian(alone, inputs, vectorize=True)
    by_token = rearrange(jacobian, "outputs d_output tokens d_input -> outputs tokens (d_output d_input)")
    return (by_token != 0).any(dim=-1)
