"""The parallel scan of a linear recurrence against the loop, and its number of rounds."""

import math

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.recurrence import RNNCell, hidden_of, linear_scan, unroll


def by_loop(factor, inputs):
    hidden, seen = torch.zeros_like(inputs[:, 0]), []
    for t in range(inputs.shape[1]):
        hidden = factor[:, t] * hidden + inputs[:, t]
        seen.append(hidden)
    return torch.stack(seen, dim=1)


@pytest.mark.parametrize("n_tokens", [1, 2, 3, 7, 8, 9, 64])
def test_equals_the_loop_in_logarithmically_many_rounds(n_tokens):
    factor, inputs = torch.randn(2, 2, n_tokens, 5, dtype=torch.float64)
    hidden, n_rounds = linear_scan(factor, inputs)
    torch.testing.assert_close(hidden, by_loop(factor, inputs), rtol=1e-12, atol=1e-12)
    assert n_rounds == math.ceil(math.log2(n_tokens))


def test_it_solves_a_linear_cell_with_a_diagonal_recurrence_and_not_a_tanh_cell():
    inputs, diagonal = torch.randn(2, 64, 3, dtype=torch.float64), torch.linspace(0.5, 1.0, 5, dtype=torch.float64)
    for activation, solves in (("linear", True), ("tanh", False)):
        cell = RNNCell(3, 5, activation=activation).double()
        cell.from_hidden.weight.data = torch.diag(diagonal)
        hidden, _ = linear_scan(diagonal.expand(2, 64, 5), cell.from_input(inputs))
        error = (hidden - hidden_of(unroll(cell, inputs))).abs().max()
        assert error < 1e-12 if solves else error > 0.1


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named():
    with pytest.raises(ShapeError, match="axis 'tokens' is 6 in factor but 7 in inputs"):
        linear_scan(torch.ones(2, 6, 5), torch.ones(2, 7, 5))
