"""Each cell's gates against the formulas, and what it refuses; `test_unrolling` compares their steps with torch's."""

import pytest
import torch
from torch import nn

from ttutor.errors import ShapeError
from ttutor.recurrence import GRUCell, LSTMCell, RNNCell

CELLS = [RNNCell, LSTMCell, GRUCell]


def step_inputs(n_parts):
    return torch.randn(2, 3, dtype=torch.float64), tuple(torch.randn(2, 5, dtype=torch.float64) for _ in range(n_parts))


def test_an_lstm_is_made_of_the_gates_it_hands_out():
    cell = LSTMCell(3, 5).double()
    inputs, state = step_inputs(2)
    gate = cell.gates(inputs, state)
    new_cell = gate.forget * state[1] + gate.input * gate.candidate
    torch.testing.assert_close(cell(inputs, state), (gate.output * new_cell.tanh(), new_cell))
    forget_rows = slice(5, 10)
    affine = nn.functional.linear(inputs, cell.from_input.weight[forget_rows], cell.from_input.bias[forget_rows])
    affine = affine + nn.functional.linear(state[0], cell.from_hidden.weight[forget_rows])
    torch.testing.assert_close(gate.forget, affine.sigmoid())


def test_an_lstm_whose_gates_are_shut_keeps_its_cell_for_a_thousand_steps():
    cell = LSTMCell(3, 5).double()
    with torch.no_grad():
        cell.biases().forget.fill_(50.0)
        cell.biases().input.fill_(-50.0)
        inputs, state = step_inputs(2)
        begin = state[1]
        for _ in range(1000):
            state = cell(inputs, state)
    torch.testing.assert_close(state[1], begin, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell_type", CELLS)
def test_a_cell_starts_as_torchs_does(cell_type):
    cell = cell_type(16, 400)
    bound = 400**-0.5
    for parameter in cell.parameters():
        assert parameter.abs().max() <= bound
        assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
        assert abs(parameter.mean().item()) < 0.1 * bound


@pytest.mark.parametrize("cell_type", CELLS)
@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(cell_type):
    cell = cell_type(3, 5)
    state = cell.initial_state(torch.zeros(2, 3))
    assert [part.tolist() for part in state] == [[[0.0] * 5] * 2] * cell.n_parts
    with pytest.raises(ShapeError, match="axis 'd_input' is 4 in inputs but must be 3"):
        cell(torch.zeros(2, 4), state)
    with pytest.raises(ShapeError, match=r"axis 'batch' is 1 in inputs but 2 in state\[0\]"):
        cell(torch.zeros(1, 3), state)
    with pytest.raises(ValueError, match=rf"is a tuple of {cell.n_parts} tensors, but came as one of 3"):
        cell(torch.zeros(2, 3), (state[0],) * 3)
    with pytest.raises(ValueError, match="d_input=0 and d_model=5"):
        cell_type(0, 5)
