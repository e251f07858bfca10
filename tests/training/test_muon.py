"""Muon: the directions it finds, against a decomposition, and its steps, against PyTorch's."""

import pytest
import torch
from torch import nn

from ttutor.training.muon import Muon, newton_schulz

SHAPES = [(5, 8), (8, 5), (7, 7), (5, 8), (1, 3)]


def matrices(seed: int, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in SHAPES]


def give_gradients(parameters: list[nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


@pytest.mark.parametrize("shape", [(3, 5, 8), (3, 8, 5), (2, 7, 7)])
def test_the_directions_stay_and_the_singular_values_come_near_one(shape):
    given = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    left, sizes, right = torch.linalg.svd(given, full_matrices=False)
    along = left.mT @ newton_schulz(given, torch.float64) @ right.mT
    found = along.diagonal(dim1=-2, dim2=-1)
    assert (along - torch.diag_embed(found)).abs().max() < 1e-12
    assert sizes.max() / sizes.min() > 3
    assert 0.65 < found.min() <= found.max() < 1.25


def test_its_steps_are_those_of_pytorch_s_but_for_rounding_to_bfloat16():
    ours, theirs = matrices(0), matrices(0)
    mine = Muon(ours, lr=0.1, weight_decay=0.3, momentum=0.9)
    other = torch.optim.Muon(theirs, lr=0.1, weight_decay=0.3, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for seed in range(4):
        for parameters, optimizer in ((ours, mine), (theirs, other)):
            give_gradients(parameters, seed)
            optimizer.step()
    for one, another, start in zip(ours, theirs, matrices(0), strict=True):
        moved = (another - start).norm()
        assert (one - another).norm() < 0.02 * moved
