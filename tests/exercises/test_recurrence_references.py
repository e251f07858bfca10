"""What the exercises on recurrence take as right meets the package and torch."""

import torch
from torch import nn

from ttutor.exercises import find
from ttutor.recurrence import LSTMCell, RNNCell, hidden_of, unroll


def test_reading_is_the_packages_loop():
    cell, words = RNNCell(3, 4), torch.randn(2, 6, 3)
    weights = cell.from_input.weight.T, cell.from_hidden.weight.T, cell.from_input.bias
    came = find("recurrence.read_words").reference(words, *weights)
    torch.testing.assert_close(came, hidden_of(unroll(cell, words)))


def test_gates_are_the_packages_lstm():
    cell = LSTMCell(3, 4)
    word, hidden, memory_cell = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    affine = cell.from_input(word) + cell.from_hidden(hidden)
    came = find("recurrence.lstm_gates").reference(affine, memory_cell)
    torch.testing.assert_close(came, cell(word, (hidden, memory_cell)))


def test_half_of_the_cell_is_left_after_its_half_life():
    cell, half_life = LSTMCell(2, 2).double(), 12
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        bias = find("recurrence.forget_bias").reference(torch.tensor([float(half_life)], dtype=torch.float64))
        cell.biases().forget.fill_(bias.item())
        cell.biases().input.fill_(-60.0)
        start = torch.randn(1, 2, dtype=torch.float64)
        words = torch.randn(1, half_life, 2, dtype=torch.float64)
        *_, (_, end) = unroll(cell, words, state=(torch.zeros_like(start), start))
    torch.testing.assert_close(end, start / 2)


def test_looking_back_is_written_out():
    asked, offered, direction = torch.randn(1, 2, 3), torch.randn(1, 4, 3), torch.randn(3)
    came = find("recurrence.look_back_weights").reference(asked, offered, direction, torch.ones(1, 4).bool())
    for target in range(2):
        scores = torch.stack([torch.tanh(asked[0, target] + offered[0, j]).dot(direction) for j in range(4)])
        torch.testing.assert_close(came[0, target], nn.functional.softmax(scores, dim=0))


def test_a_scan_is_the_loop():
    factor, added = torch.rand(9, 2), torch.randn(9, 2)
    came, n_rounds = find("recurrence.scan_rounds").reference(factor, added)
    hidden = torch.zeros(2)
    for state, a, b in zip(came, factor, added, strict=True):
        hidden = a * hidden + b
        torch.testing.assert_close(state, hidden)
    assert n_rounds == 4
