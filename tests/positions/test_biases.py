"""Positions that are added to scores: ALiBi's slopes and T5's buckets."""

import math

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.positions import AlibiPositions, RelativePositions, alibi_slopes, relative_bucket


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16])
def test_slopes_for_powers_of_two(n_heads):
    expected = [2.0 ** (-8 * i / n_heads) for i in range(1, n_heads + 1)]
    assert alibi_slopes(n_heads).tolist() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n_heads", [3, 6, 12, 20])
def test_slopes_between_powers_of_two(n_heads):
    whole = 2 ** math.floor(math.log2(n_heads))
    expected = alibi_slopes(whole).tolist() + alibi_slopes(2 * whole)[0::2][: n_heads - whole].tolist()
    assert alibi_slopes(n_heads).tolist() == pytest.approx(expected)


def test_alibi_is_minus_slope_times_distance():
    query, key = torch.tensor([[5, 6], [0, 1]]), torch.tensor([[4, 5, 6], [0, 1, 9]])
    bias = AlibiPositions(4)(query, key)
    for row in range(2):
        for head, slope in enumerate([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]):
            for i in range(2):
                for j in range(3):
                    assert bias[row, head, i, j] == -slope * abs(query[row, i] - key[row, j])


@pytest.mark.parametrize("is_bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20)])
def test_buckets(is_bidirectional, n_buckets, max_distance):
    behind = relative_bucket(
        -torch.arange(500), n_buckets=n_buckets, max_distance=max_distance, is_bidirectional=is_bidirectional
    )
    per_side = n_buckets // 2 if is_bidirectional else n_buckets
    n_exact = per_side // 2
    assert behind[:n_exact].tolist() == list(range(n_exact))  # one bucket for each near distance
    assert (behind.diff() >= 0).all()
    assert (behind.diff() <= 1).all()  # no bucket stays empty
    assert set(behind.tolist()) == set(range(per_side))
    assert (behind[max_distance:] == per_side - 1).all()
    for distance in range(n_exact, max_distance):
        place = math.log(distance / n_exact, max_distance / n_exact) * (per_side - n_exact)
        if abs(place - round(place)) > 1e-6:  # between two buckets float32 and float64 may differ
            assert behind[distance] == n_exact + math.floor(place)
    ahead = relative_bucket(
        torch.arange(1, 500), n_buckets=n_buckets, max_distance=max_distance, is_bidirectional=is_bidirectional
    )
    assert torch.equal(ahead, behind[1:] + per_side if is_bidirectional else torch.zeros(499, dtype=torch.long))


def test_the_table_is_looked_up_by_bucket():
    module = RelativePositions(2, n_buckets=8, max_distance=16, is_bidirectional=False)
    query, key = torch.tensor([[5, 6]]), torch.tensor([[0, 5, 6]])
    bias = module(query, key)
    for i in range(2):
        for j in range(3):
            bucket = relative_bucket(key[0, j] - query[0, i], n_buckets=8, max_distance=16, is_bidirectional=False)
            assert torch.equal(bias[0, :, i, j], module.table.weight[bucket])


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="n_heads must be at least 1, but is 0"):
        alibi_slopes(0)
    with pytest.raises(ValueError, match="n_buckets must be at least 4 and max_distance above 1, but n_buckets=2"):
        RelativePositions(2, n_buckets=2)
    with pytest.raises(ValueError, match="max_distance above 8, but n_buckets=32 and max_distance=8"):
        RelativePositions(2, max_distance=8)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("scheme", [AlibiPositions(2), RelativePositions(2)])
def test_batches_that_differ_are_refused(scheme):
    with pytest.raises(ShapeError, match="axis 'batch' is 1 in query_positions but 2 in key_positions"):
        scheme(torch.arange(3)[None], torch.zeros(2, 3, dtype=torch.long))
