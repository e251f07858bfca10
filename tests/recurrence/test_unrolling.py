"""Whole sequences against torch's modules, and padding: packed sequences and each row alone as oracles."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.recurrence.torch_twins import our_gradients, torch_twin, twin_gradients
from ttutor.errors import ShapeError
from ttutor.recurrence import GRUCell, LSTMCell, RecurrentEncoder, RNNCell, hidden_of, unroll

CELLS = [RNNCell, LSTMCell, GRUCell]


def as_tuple(state):
    return state if isinstance(state, tuple) else (state,)


@pytest.fixture(params=CELLS)
def cell(request):
    return request.param(3, 5).double()


def test_outputs_last_states_and_gradients_equal_torch(cell, inputs):
    twin, their_inputs = torch_twin(cell), inputs.clone().requires_grad_()
    states = unroll(cell, inputs.requires_grad_())
    mine, expected = hidden_of(states), twin(their_inputs)
    torch.testing.assert_close(mine, expected[0], rtol=0, atol=1e-13)
    for part, other in zip(states[-1], as_tuple(expected[1]), strict=True):
        torch.testing.assert_close(part, other[0], rtol=0, atol=1e-13)

    slope = torch.randn_like(mine)
    (mine * slope).sum().backward()
    (expected[0] * slope).sum().backward()
    torch.testing.assert_close(inputs.grad, their_inputs.grad, rtol=0, atol=1e-12)
    for gradient, other in zip(our_gradients(cell), twin_gradients(twin), strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-12)
    if isinstance(cell, GRUCell):
        torch.testing.assert_close(cell.candidate_bias.grad, twin.bias_hh_l0.grad[10:], rtol=0, atol=1e-12)


def test_right_padding_equals_torchs_packed_sequences(cell, inputs):
    lengths = torch.tensor([7, 4])
    is_real = torch.arange(7) < lengths[:, None]
    packed = pack_padded_sequence(inputs, lengths, batch_first=True)
    output, last = torch_twin(cell)(packed)
    expected, _ = pad_packed_sequence(output, batch_first=True)
    hidden, state = RecurrentEncoder(cell)(inputs, is_real)
    torch.testing.assert_close(hidden[is_real], expected[is_real])
    for part, other in zip(state, as_tuple(last), strict=True):
        torch.testing.assert_close(part, other[0])


def test_a_row_padded_anywhere_equals_the_row_alone(cell, inputs, is_real):
    states = unroll(cell, inputs, is_real)
    alone = unroll(cell, inputs[1:, is_real[1]])
    torch.testing.assert_close(hidden_of(states)[1, is_real[1]], hidden_of(alone)[0])
    for part, other in zip(states[-1], alone[-1], strict=True):
        torch.testing.assert_close(part[1], other[0])


def test_no_leak_from_the_future(cell, inputs):
    before = hidden_of(unroll(cell, inputs))
    for t in range(7):
        changed = inputs.clone()
        changed[:, t] += 1.0
        after = hidden_of(unroll(cell, changed))
        assert torch.equal(before[:, :t], after[:, :t])
        assert (before[:, t:] != after[:, t:]).any(dim=-1).all()  # and every later moment feels it


def test_a_sequence_may_be_read_in_two_parts(cell, inputs):
    first = unroll(cell, inputs[:, :4])
    second = unroll(cell, inputs[:, 4:], state=first[-1])
    assert torch.equal(hidden_of(unroll(cell, inputs)), torch.cat([hidden_of(first), hidden_of(second)], dim=1))


def test_reading_from_both_ends_equals_torch(cell, inputs):
    backward_cell = type(cell)(3, 5).double()
    hidden, state = RecurrentEncoder(cell, backward_cell)(inputs)
    expected, last = torch_twin(cell, backward_cell)(inputs)
    torch.testing.assert_close(hidden, expected)
    for part, other in zip(state, as_tuple(last), strict=True):
        torch.testing.assert_close(part, torch.cat([other[0], other[1]], dim=-1))


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(cell, inputs, is_real):
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in inputs but 6 in is_real"):
        unroll(cell, inputs, is_real[:, :6])
    with pytest.raises(ShapeError, match="axis 'd_input' is 2 in inputs but must be 3"):
        unroll(cell, inputs[..., :2])
