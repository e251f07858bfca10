"""The loss, against torch's and against numbers worked out by hand."""

import math

import pytest
import torch
from torch.nn import functional

from ttutor.errors import ShapeError
from ttutor.tokenization import PAD_ID
from ttutor.training.loss import chunked_linear_cross_entropy, smoothed_cross_entropy

POSITIONS, D_MODEL, VOCAB = 7, 5, 11


@pytest.fixture
def random():
    return torch.Generator().manual_seed(0)


def problem(random, dtype=torch.float64):
    hidden = torch.randn(POSITIONS, D_MODEL, generator=random, dtype=dtype)
    weight = torch.randn(VOCAB, D_MODEL, generator=random, dtype=dtype)
    targets = torch.randint(1, VOCAB, (POSITIONS,), generator=random)
    return hidden.requires_grad_(), weight.requires_grad_(), targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_equals_torch_s_cross_entropy_with_padding(random, smoothing):
    hidden, weight, targets = problem(random)
    targets[[1, 4]] = PAD_ID
    logits = hidden @ weight.T
    expected = functional.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=PAD_ID)
    torch.testing.assert_close(smoothed_cross_entropy(logits, targets, smoothing=smoothing), expected)


def test_by_hand():
    """Two tokens, the right one with probability 3/4, smoothing 0.2: targets are 0.9 and 0.1."""
    logits = torch.tensor([[math.log(3.0), 0.0]], dtype=torch.float64)
    loss = smoothed_cross_entropy(logits, torch.tensor([0]), smoothing=0.2, pad_id=-1)
    assert loss.item() == pytest.approx(-0.9 * math.log(0.75) - 0.1 * math.log(0.25))


def test_padding_never_counts(random):
    """Whatever the logits at a padded position, loss and gradient stay the same, and the gradient there is zero."""
    logits = torch.randn(4, VOCAB, generator=random, dtype=torch.float64)
    targets = torch.tensor([3, PAD_ID, 5, PAD_ID])
    results = []
    for value in (0.0, 1e6):
        changed = logits.clone()
        changed[1] = value
        changed.requires_grad_()
        loss = smoothed_cross_entropy(changed, targets)
        loss.backward()
        results.append((loss.item(), changed.grad))
        assert (changed.grad[[1, 3]] == 0).all()
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_the_version_to_run_equals_the_version_to_read(random, smoothing, chunk):
    hidden, weight, targets = problem(random)
    reference = smoothed_cross_entropy(hidden @ weight.T, targets, smoothing=smoothing)
    expected = torch.autograd.grad(3 * reference, (hidden, weight))
    loss = chunked_linear_cross_entropy(hidden, weight, targets, smoothing=smoothing, chunk=chunk)
    torch.testing.assert_close(loss, reference)
    for gradient, wanted in zip(torch.autograd.grad(3 * loss, (hidden, weight)), expected, strict=True):
        torch.testing.assert_close(gradient, wanted)


def test_under_autocast_loss_and_gradient_are_close_and_of_the_right_kind(random):
    hidden, weight, targets = problem(random, torch.float32)
    exact = chunked_linear_cross_entropy(hidden, weight, targets)
    wanted = torch.autograd.grad(exact, (hidden, weight))
    with torch.autocast("cpu", torch.bfloat16):
        loss = chunked_linear_cross_entropy(hidden.bfloat16(), weight, targets)
    gradients = torch.autograd.grad(loss, (hidden, weight))
    assert loss.dtype == gradients[0].dtype == gradients[1].dtype == torch.float32
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0.02)
    for gradient, expected in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=0.05, atol=0.01)


def test_errors_name_what_came(random):
    hidden, weight, targets = problem(random)
    with pytest.raises(ValueError, match="every one of the 2 targets is padding"):
        smoothed_cross_entropy(torch.zeros(2, 3), torch.tensor([PAD_ID, PAD_ID]))
    with pytest.raises(ValueError, match=r"smoothing must be at least 0 and below 1, got 1\.0"):
        chunked_linear_cross_entropy(hidden, weight, targets, smoothing=1.0)
    with pytest.raises((ShapeError, TypeError)):
        smoothed_cross_entropy(torch.zeros(2, 3), torch.tensor([1, 2, 1]))
