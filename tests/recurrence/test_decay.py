"""The decaying mean in both its programs against the formula, its stability, and the mixing layer around it."""

import math

import pytest
import torch
from einops import einsum

from ttutor.errors import ShapeError
from ttutor.recurrence import DecayMixing, decay_recurrent


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
    """All tokens at once: a causal softmax over all pairs of them, without queries."""
    at = torch.arange(key.shape[1])
    distance = at[:, None] - at
    faded = -decay[:, None, None] * (distance - 1).clamp(min=0) + bonus[:, None, None] * (distance == 0)
    weights = (key.mT[:, :, None] + faded).masked_fill(distance < 0, -math.inf).softmax(dim=-1)
    return einsum(weights, value, "batch d queries keys, batch keys d -> batch queries d")


def test_the_loop_and_the_closed_form_equal_the_formula(key, value, decay, bonus):
    expected = by_formula(key, value, decay, bonus)
    torch.testing.assert_close(decay_recurrent(key, value, decay, bonus)[0], expected, rtol=0, atol=1e-13)
    torch.testing.assert_close(closed_form(key, value, decay, bonus), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("shift", [-1000.0, 1000.0])
def test_keys_that_would_overflow_give_the_same_mean(key, value, decay, bonus, shift):
    expected = by_formula(key, value, decay, bonus)  # a constant added to all keys cancels in the fraction
    tensors = [tensor.requires_grad_() for tensor in (key + shift, value, decay, bonus)]
    for mean in (decay_recurrent(*tensors)[0], closed_form(*tensors)):
        torch.testing.assert_close(mean, expected, rtol=0, atol=1e-11)
        gradients = torch.autograd.grad(mean.sum(), tensors)
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_sequence_may_be_read_in_parts(key, value, decay, bonus):
    whole, last = decay_recurrent(key, value, decay, bonus)
    state, parts = None, []
    for k, v in zip(key.split([1, 4, 2], dim=1), value.split([1, 4, 2], dim=1), strict=True):
        mean, state = decay_recurrent(k, v, decay, bonus, state)
        parts.append(mean)
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert all(torch.equal(part, other) for part, other in zip(state, last, strict=True))


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
        decay_recurrent(key, value, decay, bonus[:4])
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in hidden but must be 3"):
        DecayMixing(3)(key)
