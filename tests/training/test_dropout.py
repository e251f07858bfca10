"""Fast dropout: the share, the scale, the gradient, and whose random numbers it uses."""

import pytest
import torch
from torch import nn

from ttutor.training.dropout import FastDropout, drawing_from, with_fast_dropout


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
def test_the_share_dropped_is_p(p):
    torch.manual_seed(0)
    dropped = FastDropout(p)(torch.ones(250_000)) == 0
    deviation = (p * (1 - p) / 250_000) ** 0.5
    assert abs(dropped.double().mean().item() - p) < 5 * deviation


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_stays_is_scaled_so_that_the_mean_stays(dtype):
    torch.manual_seed(0)
    features = torch.randn(7, 5, 3, dtype=dtype)
    dropped = FastDropout(0.2)(features)
    assert dropped.dtype == dtype
    assert torch.equal(dropped[dropped != 0], (features * 1.25)[dropped != 0])
    assert 0 < (dropped == 0).sum() < dropped.numel()


def test_the_gradient_is_that_of_the_features_that_stayed():
    features = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    dropped = FastDropout(0.5)(features)
    dropped.sum().backward()
    assert torch.equal(features.grad, torch.where(dropped.detach() == 0, 0.0, 2.0).double())


def test_in_evaluation_and_at_zero_nothing_happens():
    features = torch.randn(5, 3)
    assert FastDropout(0.5).eval()(features) is features
    assert FastDropout(0.0)(features) is features


def test_the_seed_decides_with_the_default_generator_and_with_ones_own():
    dropout, ones = FastDropout(0.5), torch.ones(64)
    torch.manual_seed(3)
    first = dropout(ones)
    torch.manual_seed(3)
    assert torch.equal(dropout(ones), first)
    state = torch.get_rng_state()
    with drawing_from(seeded(3)):
        own = dropout(ones)
    assert torch.equal(torch.get_rng_state(), state)
    with drawing_from(seeded(3)):
        assert torch.equal(dropout(ones), own)
    with drawing_from(seeded(4)):
        assert not torch.equal(dropout(ones), own)


def test_every_dropout_of_a_model_is_replaced_and_nothing_else():
    shared = nn.Dropout(0.2)
    model = nn.Sequential(nn.Linear(3, 3), shared, nn.Sequential(shared, nn.LayerNorm(3))).eval()
    names, before = list(model.state_dict()), model(torch.ones(2, 3))
    assert with_fast_dropout(model) is model
    found = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert [(type(one), one.p, one.training) for one in found] == [(FastDropout, 0.2, False)] * 2
    assert list(model.state_dict()) == names
    assert torch.equal(model(torch.ones(2, 3)), before)
