"""The decaying mean in both its programs against the formula, its stability, and the mixing layer around it."""

import math

import pytest
import torch
from einops import einsum

from ttutor.recurrence import DecayMixing, decay_recurrent, decay_weights
from ttutor.shapes import ShapeError


@pytest.fixture
def key():
    return torch.randn(2, 7, 5, dtype=torch.float64)


@pytest.fixture
def value():
    return torch.randn(2, 7, 5, dtype=torch.float64)


@pytest.fixture
def decay():
    return torch.tensor([0.0, 0.1, 1.0, 3.0, 20.0], dtype=torch.float64)


@pytest.fixture
def bonus():
    return torch.randn(5, dtype=torch.float64)


def by_formula(key, value, decay, bonus):
    """The paper's fraction, one number at a time."""
    mean = torch.zeros_like(value)
    for b, t, d in torch.cartesian_prod(torch.arange(2), torch.arange(7), torch.arange(5)).tolist():
        weights = [math.exp(-(t - 1 - i) * decay[d].item() + key[b, i, d].item()) for i in range(t)]
        weights.append(math.exp(bonus[d].item() + key[b, t, d].item()))
        total = sum(weight * value[b, i, d].item() for i, weight in enumerate(weights))
        mean[b, t, d] = total / sum(weights)
    return mean


def closed_form(key, value, decay, bonus):
    """All tokens at once, by the table of weights."""
    return einsum(decay_weights(key, decay, bonus), value, "batch d queries keys, batch keys d -> batch queries d")


def test_the_loop_and_the_closed_form_equal_the_formula(key, value, decay, bonus):
    expected = by_formula(key, value, decay, bonus)
    torch.testing.assert_close(decay_recurrent(key, value, decay, bonus)[0], expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(closed_form(key, value, decay, bonus), expected, rtol=0, atol=1e-13)


def test_both_programs_have_the_same_gradients(key, value, decay, bonus):
    tensors = [tensor.requires_grad_() for tensor in (key, value, decay, bonus)]
    slope = torch.randn(2, 7, 5, dtype=torch.float64)
    loop = torch.autograd.grad((decay_recurrent(*tensors)[0] * slope).sum(), tensors)
    closed = torch.autograd.grad((closed_form(*tensors) * slope).sum(), tensors)
    for gradient, other in zip(loop, closed, strict=True):
        torch.testing.assert_close(gradient, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [-1000.0, 1000.0])
def test_keys_that_would_overflow_give_the_same_mean(key, value, decay, bonus, shift):
    expected = by_formula(key, value, decay, bonus)  # a constant added to all keys cancels in the fraction
    tensors = [tensor.requires_grad_() for tensor in (key + shift, value, decay, bonus)]
    for mean in (decay_recurrent(*tensors)[0], closed_form(*tensors)):
        torch.testing.assert_close(mean, expected, rtol=0, atol=1e-11)
        gradients = torch.autograd.grad(mean.sum(), tensors)
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_one_key_far_above_the_rest_decides_until_it_has_faded():
    key, value = torch.zeros(1, 61, 1), torch.zeros(1, 61, 1)
    key[0, 5], value[0, 5] = 500.0, 1.0
    decay, bonus = torch.tensor([20.0]), torch.tensor([0.0])
    for mean in (decay_recurrent(key, value, decay, bonus)[0], closed_form(key, value, decay, bonus)):
        assert mean[0, 5:25].flatten().tolist() == [1.0] * 20
        assert mean[0, 40:].max() < 1e-6


def test_a_sequence_may_be_read_in_parts(key, value, decay, bonus):
    whole, last = decay_recurrent(key, value, decay, bonus)
    state, parts = None, []
    for k, v in zip(key.split([1, 4, 2], dim=1), value.split([1, 4, 2], dim=1), strict=True):
        mean, state = decay_recurrent(k, v, decay, bonus, state)
        parts.append(mean)
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert all(torch.equal(part, other) for part, other in zip(state, last, strict=True))


def test_weights_are_distributions_over_the_past(key, decay, bonus):
    weights = decay_weights(key, decay, bonus)
    assert weights.shape == (2, 5, 7, 7)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 5, 7, dtype=torch.float64))
    assert (weights.triu(1) == 0).all()


def test_no_decay_and_no_bonus_is_the_running_mean(value):
    zeros = torch.zeros(5, dtype=torch.float64)
    expected = value.cumsum(dim=1) / torch.arange(1, 8)[:, None]
    torch.testing.assert_close(closed_form(torch.zeros_like(value), value, zeros, zeros), expected)


def test_order_matters_though_there_are_no_positions():
    """Swap two earlier tokens: the mixing layer's last output moves, that of the mean over all tokens does not."""
    mixing, hidden = DecayMixing(4).double(), torch.randn(2, 7, 4, dtype=torch.float64)
    swapped = hidden[:, [0, 3, 2, 1, 4, 5, 6]]
    assert (mixing(hidden)[:, -1] - mixing(swapped)[:, -1]).abs().max() > 1e-4
    torch.testing.assert_close(hidden.mean(dim=1), swapped.mean(dim=1))


def test_the_mixing_layer_equals_its_formula(inputs):
    mixing = DecayMixing(3).double()
    torch.nn.init.uniform_(mixing.shares_of_now)
    torch.nn.init.normal_(mixing.bonus)
    expected = []
    for row in inputs:
        previous = torch.cat([torch.zeros(1, 3, dtype=torch.float64), row[:-1]])
        mu_r, mu_k, mu_v = mixing.shares_of_now
        r = (mu_r * row + (1 - mu_r) * previous) @ mixing.to_receptance.weight.T
        k = (mu_k * row + (1 - mu_k) * previous) @ mixing.to_key.weight.T
        v = (mu_v * row + (1 - mu_v) * previous) @ mixing.to_value.weight.T
        wkv = closed_form(k[None], v[None], mixing.log_decay.exp(), mixing.bonus)[0]
        expected.append((torch.sigmoid(r) * wkv) @ mixing.to_output.weight.T)
    torch.testing.assert_close(mixing(inputs), torch.stack(expected))


def test_the_mixing_layer_does_not_look_ahead(inputs):
    mixing = DecayMixing(3).double()
    before = mixing(inputs)
    for t in range(7):
        changed = inputs.clone()
        changed[:, t] += 1.0
        after = mixing(changed)
        assert torch.equal(before[:, :t], after[:, :t])
        assert (before[:, t] != after[:, t]).any()


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_named(key, value, decay, bonus):
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in key but 6 in value"):
        decay_recurrent(key, value[:, :6], decay, bonus)
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in key but 4 in bonus"):
        decay_weights(key, decay, bonus[:4])
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in hidden but must be 3"):
        DecayMixing(3)(key)


def test_of_no_tokens_there_is_no_mean_and_the_state_goes_on(key, value, decay, bonus):
    _, state = decay_recurrent(key, value, decay, bonus)
    mean, same = decay_recurrent(key[:, :0], value[:, :0], decay, bonus, state)
    assert mean.shape == value[:, :0].shape
    assert all(torch.equal(before, after) for before, after in zip(state, same, strict=True))
