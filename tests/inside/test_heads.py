"""Head scores against loops over pairs of tokens, and on heads whose score is known."""

import math

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.inside import (
    attention_distance,
    attention_entropy,
    first_token_score,
    induction_score,
    previous_token_score,
    weight_on,
)

IDS = torch.tensor([[4, 9, 4, 9, 9, 1, 4], [3, 5, 6, 3, 5, 0, 0]])
IS_REAL = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
LEFT = torch.tensor([[True] * 7, [False] * 2 + [True] * 5])


@pytest.fixture
def weights():
    return torch.randn(2, 3, 7, 7, dtype=torch.float64).softmax(dim=-1)


def mean_by_loop(weights, is_wanted, is_real):
    """For each head, the mean over the queries with a wanted key of the weight on wanted keys."""
    means = []
    for head in range(weights.shape[1]):
        landed = []
        for row in range(weights.shape[0]):
            for i in range(weights.shape[2]):
                keys = [
                    j for j in range(weights.shape[3]) if is_wanted(row, i, j) and is_real[row, i] and is_real[row, j]
                ]
                if keys:
                    landed.append(sum(weights[row, head, i, j].item() for j in keys))
        means.append(sum(landed) / len(landed))
    return torch.tensor(means, dtype=weights.dtype)


@pytest.mark.parametrize("is_real", [None, IS_REAL, LEFT], ids=["unpadded", "padded right", "padded left"])
def test_scores_equal_loops_over_pairs(weights, is_real):
    everywhere = torch.ones_like(IS_REAL)
    real = everywhere if is_real is None else is_real
    first = [min(j for j in range(7) if real[row, j]) for row in range(2)]
    for score, is_wanted, counted in [
        (previous_token_score(weights), lambda row, i, j: j == i - 1, everywhere),
        (first_token_score(weights, is_real), lambda row, i, j: j == first[row], real),
        (induction_score(weights, IDS), lambda row, i, j: 0 < j <= i and IDS[row, j - 1] == IDS[row, i], everywhere),
    ]:
        torch.testing.assert_close(score, mean_by_loop(weights, is_wanted, counted), rtol=0, atol=1e-12)


def test_entropy_and_distance_equal_loops(weights):
    everywhere = torch.ones_like(IS_REAL)
    for score, of_query, counted in [
        (attention_entropy(weights, IS_REAL), lambda i, row: -sum(p * math.log(p) for p in row), IS_REAL),
        (attention_distance(weights), lambda i, row: sum(p * abs(i - j) for j, p in enumerate(row)), everywhere),
    ]:
        expected = [
            sum(of_query(i, weights[row, head, i].tolist()) for row in range(2) for i in range(7) if counted[row, i])
            / counted.sum()
            for head in range(3)
        ]
        torch.testing.assert_close(score, torch.tensor(expected, dtype=torch.float64))


def test_weight_on_separators(weights):
    is_separator = (IDS == 9)[:, None].expand(2, 7, 7)
    expected = weights[0, :, :, [1, 3, 4]].sum(-1).mean(-1)  # only the first row has separators
    torch.testing.assert_close(weight_on(weights, is_separator), expected)


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_cannot_be_scored_is_refused(weights):
    with pytest.raises(ValueError, match="nothing to average"):
        induction_score(weights, torch.arange(14).reshape(2, 7))
    with pytest.raises(ShapeError, match="axis 'tokens' is 7 in weights but 6"):
        previous_token_score(weights[..., :6])
    with pytest.raises(ShapeError, match="axis 'queries' is 7 in weights but 6 in is_real"):
        attention_entropy(weights, IS_REAL[:, :6])
