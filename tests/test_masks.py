"""Masks against loops that spell out who may see whom."""

import pytest
import torch

from ttutor.masks import CAUSAL, Mask, as_mask, causal_mask, lengths_mask, padding_mask, window_mask


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 1), (3, 3), (2, 5), (5, 2), (0, 3), (4, 0)])
def test_causal_mask_aligns_the_last_query_with_the_last_key(n_queries, n_keys):
    mask = causal_mask(n_queries, n_keys)
    expected = [[j <= i + n_keys - n_queries for j in range(n_keys)] for i in range(n_queries)]
    assert mask.shape == (n_queries, n_keys)
    assert mask.tolist() == expected


@pytest.mark.parametrize("window", [1, 2, 5, 99])
def test_window_mask_allows_distances_below_the_window(window):
    mask = window_mask(4, 7, window=window)
    assert mask.tolist() == [[abs(i + 3 - j) < window for j in range(7)] for i in range(4)]


def test_padding_is_seen_by_nobody_wherever_it_stands():
    token_ids = torch.tensor([[5, 7, 0], [0, 6, 9], [4, 0, 4]])
    mask = padding_mask(token_ids, pad_id=0)
    assert mask.shape == (3, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False, True, True], [True, False, True]]


def test_lengths_mask():
    assert lengths_mask(torch.tensor([0, 2, 3]), 3)[:, 0, 0].int().tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("make", [lambda: causal_mask(-1), lambda: causal_mask(2, -3)])
def test_negative_counts_are_refused(make):
    with pytest.raises(ValueError, match="must not be negative"):
        make()


def test_a_description_draws_what_its_parts_draw():
    lengths, dense = torch.tensor([2, 5]), torch.rand(2, 1, 3, 5) > 0.3
    description = CAUSAL & Mask(window=3) & Mask(window=2) & Mask(key_lengths=lengths) & dense
    expected = causal_mask(3, 5) & window_mask(3, 5, window=2) & lengths_mask(lengths, 5) & dense
    assert torch.equal(description.materialise(3, 5), expected)
    assert torch.equal((dense & CAUSAL).materialise(3, 5), causal_mask(3, 5) & dense)


def test_two_lengths_and_two_dense_masks_combine():
    first = Mask(key_lengths=torch.tensor([1, 4]), dense=torch.tensor([True, True, False, True]))
    second = Mask(key_lengths=torch.tensor([3, 2]), dense=torch.tensor([True, False, True, True]))
    both = (first & second).materialise(1, 4)
    assert both[:, 0, 0].int().tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]


@pytest.mark.usefixtures("as_readers_run_it")
def test_only_bool_tensors_are_masks():
    with pytest.raises(TypeError, match="bool tensor with True = may attend, but came with dtype torch.float32"):
        as_mask(torch.zeros(2, 2))
    with pytest.raises(TypeError, match="came as str"):
        as_mask("causal")
