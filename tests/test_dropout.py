"""Dropout against what it promises: the share, the scale, the gradient, and whose random numbers it uses."""

import threading

import pytest
import torch
from torch import nn

from ttutor.layers import Dropout, drawing_from


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
def test_the_share_dropped_is_p(p):
    torch.manual_seed(0)
    dropped = Dropout(p)(torch.ones(250_000)) == 0
    deviation = (p * (1 - p) / 250_000) ** 0.5
    assert abs(dropped.double().mean().item() - p) < 5 * deviation


@pytest.mark.parametrize("p", [0.1, 0.3])
def test_neighbours_are_dropped_independently(p):
    torch.manual_seed(1)
    dropped = (Dropout(p)(torch.ones(250_000)) == 0).double()
    for distance in range(1, 9):  # four features share a word of 64 bits
        both = (dropped[distance:] * dropped[:-distance]).mean().item()
        assert abs(both - p * p) < 5 * (p * p * (1 - p * p) / 250_000) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_stays_is_scaled_so_that_the_mean_stays(dtype):
    torch.manual_seed(0)
    features = torch.randn(7, 5, 3, dtype=dtype)
    dropped = Dropout(0.2)(features)
    assert dropped.dtype == dtype
    assert torch.equal(dropped[dropped != 0], (features * 1.25)[dropped != 0])
    assert 0 < (dropped == 0).sum() < dropped.numel()


def test_the_gradient_is_that_of_the_features_that_stayed():
    features = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    dropped = Dropout(0.5)(features)
    dropped.sum().backward()
    assert torch.equal(features.grad, torch.where(dropped.detach() == 0, 0.0, 2.0).double())


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3, 5), (0, 4), (4, 0)])
def test_any_shape_will_do(shape):
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_in_evaluation_and_at_zero_nothing_happens():
    features = torch.randn(5, 3)
    assert Dropout(0.5).eval()(features) is features
    assert Dropout(0.0)(features) is features


def test_the_seed_decides_with_the_default_generator_and_with_ones_own():
    dropout, ones = Dropout(0.5), torch.ones(64)
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


def test_a_generator_is_in_force_in_its_own_thread_alone():
    dropout, ones = Dropout(0.5), torch.ones(200)
    with drawing_from(seeded(0)):
        alone = [dropout(ones) for _ in range(100)]
    found: dict[int, list[torch.Tensor]] = {}
    start = threading.Barrier(2)

    def draw(seed: int) -> None:
        start.wait()
        with drawing_from(seeded(seed)):
            found[seed] = [dropout(ones) for _ in range(100)]

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(one, other) for one, other in zip(found[0], alone, strict=True))
    assert not torch.equal(found[0][0], found[1][0])


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_a_probability_that_is_none_is_refused(p):
    with pytest.raises(ValueError, match="must be at least 0 and below 1"):
        Dropout(p)


def test_it_has_nothing_to_store_and_prints_its_probability():
    assert not Dropout(0.1).state_dict()
    assert repr(nn.Sequential(Dropout(0.1))).splitlines()[1] == "  (0): Dropout(p=0.1)"
