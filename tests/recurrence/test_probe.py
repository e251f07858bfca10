"""The gradient through time against the product of step Jacobians, and what is known of it beforehand."""

import pytest
import torch
from torch import nn

from ttutor.errors import ShapeError
from ttutor.recurrence import GRUCell, LSTMCell, RNNCell, gradient_norms, jacobians_through_time
from ttutor.recurrence import unroll as unroll_cell


def state_jacobian(cell, inputs, state):
    """One row's Jacobian of the whole new state with respect to the whole old one, by torch's own function."""
    d_model = cell.d_model

    def step(flat):
        return torch.cat(cell(inputs[None], tuple(flat.reshape(cell.n_parts, 1, d_model))), dim=-1)[0]

    return torch.autograd.functional.jacobian(step, torch.cat(state))


@pytest.mark.parametrize(("cell_type", "part"), [(RNNCell, 0), (LSTMCell, 0), (LSTMCell, 1), (GRUCell, 0)])
def test_equals_the_product_of_the_steps_jacobians(cell_type, part, inputs):
    cell = cell_type(3, 5).double()
    states = unroll_cell(cell, inputs)
    mine = jacobians_through_time(cell, inputs, part=part)
    assert mine.shape == (8, 2, 5, 5)
    block = slice(5 * part, 5 * part + 5)
    for b in range(2):
        product = torch.eye(5 * cell.n_parts, dtype=torch.float64)
        for t in reversed(range(8)):
            torch.testing.assert_close(mine[t, b], product[block, block], rtol=0, atol=1e-13)
            if t > 0:
                step = state_jacobian(cell, inputs[b, t - 1], [tensor[b] for tensor in states[t - 1]])
                product = product @ step


@pytest.mark.parametrize("gain", [0.9, 1.0, 1.1])
def test_a_scaled_rotation_shrinks_keeps_or_blows_up_exponentially(gain):
    cell = RNNCell(3, 8, activation="linear").double()
    cell.from_hidden.weight.data = gain * nn.init.orthogonal_(torch.empty(8, 8, dtype=torch.float64))
    inputs, steps_left = torch.randn(2, 100, 3, dtype=torch.float64), torch.arange(100, -1, -1)
    expected = (gain ** steps_left.double())[:, None].expand(101, 2)
    torch.testing.assert_close(gradient_norms(cell, inputs), expected)


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(inputs):
    cell = RNNCell(3, 5).double()
    with pytest.raises(ValueError, match="the state of RNNCell has parts 0 to 0, but part is 1"):
        gradient_norms(cell, inputs, part=1)
    with pytest.raises(ShapeError, match="axis 'd_input' is 2 in inputs but must be 3"):
        gradient_norms(cell, inputs[..., :2])
