"""Rollout against explicit matrix products and a sum over paths."""

import itertools

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.inside import attention_rollout


@pytest.fixture
def weights():
    return torch.randn(3, 2, 5, 4, 4, dtype=torch.float64).softmax(dim=-1)


def test_rollout_is_the_sum_over_all_paths(weights):
    rolled = attention_rollout(weights)
    mixed = 0.5 * weights.mean(dim=2) + 0.5 * torch.eye(4, dtype=torch.float64)
    expected = torch.zeros_like(rolled)
    for row, out, b, a, into in itertools.product(range(2), *[range(4)] * 4):
        expected[row, out, into] += mixed[2, row, out, b] * mixed[1, row, b, a] * mixed[0, row, a, into]
    torch.testing.assert_close(rolled, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("as_readers_run_it")
def test_other_axes_are_refused(weights):
    with pytest.raises(ShapeError, match="weights must have 5 axes"):
        attention_rollout(weights[0])
    with pytest.raises(ShapeError, match="axis 'tokens' is 4 in weights but 3"):
        attention_rollout(weights[..., :3])
