"""Encoder layer and stack against torch's, and what must not matter to them."""

import pytest
import torch

from tests.torch_twins import layer_twin, randomised
from ttutor.encoder import Encoder, EncoderLayer
from ttutor.masks import Mask

D_MODEL, N_HEADS, D_FF = 12, 3, 20


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("padded", [False, True])
def test_layer_equals_torch_in_values_and_gradients(norm, activation, padded):
    ours = randomised(EncoderLayer(D_MODEL, N_HEADS, D_FF, norm=norm, activation=activation))
    theirs = layer_twin(ours, norm, activation)
    mine = torch.randn(2, 5, D_MODEL, dtype=torch.float64, requires_grad=True)
    other = mine.detach().clone().requires_grad_()
    real = (
        torch.tensor([[True] * 5, [True, True, True, False, False]]) if padded else torch.ones(2, 5, dtype=torch.bool)
    )
    out = ours(mine, Mask(dense=real.reshape(2, 1, 1, 5)))[real]
    expected = theirs(other, src_key_padding_mask=~real)[real]
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(out.square().sum(), mine)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), other)
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_stands_in_the_padding_never_matters(norm):
    stack = randomised(Encoder(D_MODEL, N_HEADS, D_FF, n_layers=2, norm=norm))
    hidden = torch.randn(2, 5, D_MODEL, dtype=torch.float64)
    real = torch.tensor([[True] * 5, [False, True, True, True, False]])
    other = torch.where(real.unsqueeze(-1), hidden, 50 * torch.randn_like(hidden))
    mask = real.reshape(2, 1, 1, 5)
    assert torch.equal(stack(hidden, mask)[real], stack(other, mask)[real])
    torch.testing.assert_close(stack(hidden, mask)[1, 1:4], stack(hidden[1:, 1:4])[0])


def test_a_row_of_padding_only_stays_finite_forward_and_backward():
    stack = randomised(Encoder(D_MODEL, N_HEADS, D_FF, n_layers=2))
    hidden = torch.randn(2, 3, D_MODEL, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 3, [False] * 3]).reshape(2, 1, 1, 3)
    out = stack(hidden, mask)
    out.square().sum().backward()
    assert out.isfinite().all()
    assert hidden.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in stack.parameters())


def test_dropout_acts_while_training_only():
    layer = EncoderLayer(D_MODEL, N_HEADS, D_FF, dropout=0.3)
    hidden = torch.randn(1, 5, D_MODEL)
    assert not torch.equal(layer(hidden), layer(hidden))
    layer.eval()
    assert torch.equal(layer(hidden), layer(hidden))
