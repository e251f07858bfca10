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


def test_each_matrix_is_treated_as_if_it_were_alone():
    given = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1))
    together = newton_schulz(given, torch.float32)
    for one, found in zip(given, together, strict=True):
        torch.testing.assert_close(newton_schulz(one[None], torch.float32)[0], found)


def test_a_matrix_of_zeros_stays_one():
    assert torch.equal(newton_schulz(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_the_number_format_of_the_answer_is_that_of_the_question():
    found = newton_schulz(torch.randn(1, 4, 4), torch.bfloat16)
    assert found.dtype == torch.float32
    assert torch.equal(found, found.bfloat16().float())  # and it was computed in the one asked for


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


def test_matrices_without_a_gradient_stay_as_they_are():
    parameters = matrices(0)
    give_gradients(parameters[:2], 0)
    Muon(parameters, lr=0.1, weight_decay=0.5).step()
    assert [torch.equal(one, start) for one, start in zip(parameters, matrices(0), strict=True)] == [False] * 2 + [
        True
    ] * 3


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match=r"for matrices, but got a parameter of the shape \(3,\)"):
        Muon([nn.Parameter(torch.zeros(3))])
