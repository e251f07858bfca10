"""Each filter against Hugging Face's of the same name, its formula, and the cases at its edges."""

from __future__ import annotations

import math

import pytest
import torch

from ttutor.generation import (
    min_p_only,
    top_k_only,
    top_p_only,
    with_repetition_penalty,
    with_temperature,
    without_repeated_ngrams,
)


@pytest.fixture(scope="module")
def theirs(transformers):
    """The module of their processors."""
    return transformers.generation.logits_process


def table(*shape: int) -> torch.Tensor:
    return (3 * torch.randn(*shape, dtype=torch.float64)).log_softmax(dim=-1)


def probabilities(*p: float) -> torch.Tensor:
    return torch.tensor([p], dtype=torch.float64).log()


def kept(log_probabilities: torch.Tensor) -> list[int]:
    return (log_probabilities[0] > -math.inf).nonzero().flatten().tolist()


@pytest.mark.parametrize(
    ("change", "name", "values"),
    [
        (with_temperature, "TemperatureLogitsWarper", [0.3, 1.0, 2.5]),
        (top_k_only, "TopKLogitsWarper", [1, 5, 52, 53, 80]),
        (top_p_only, "TopPLogitsWarper", [0.01, 0.5, 0.9, 0.999, 1.0]),
        (min_p_only, "MinPLogitsWarper", [0.001, 0.1, 1.0]),
        (with_repetition_penalty, "RepetitionPenaltyLogitsProcessor", [0.7, 1.0, 1.3]),
    ],
)
def test_each_filter_equals_theirs(theirs, change, name, values):
    p, history = table(7, 53), torch.randint(53, (7, 11))
    for value in values:
        expected = getattr(theirs, name)(value)(history, p.clone()).log_softmax(dim=-1)
        found = change(p, history, value) if change is with_repetition_penalty else change(p, value)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_repeated_ngrams_are_those_that_theirs_forbids(theirs, size):
    vocab_size = {1: 53, 2: 19, 3: 5, 5: 3}[size]  # so that some runs come twice, and no row is left without a token
    p, history = table(7, vocab_size), torch.randint(vocab_size, (7, 30))
    forbidden = theirs.NoRepeatNGramLogitsProcessor(size)(history, p) == -math.inf
    assert forbidden.any()
    assert not forbidden.all(dim=-1).any()
    expected = p.masked_fill(forbidden, -math.inf).log_softmax(dim=-1)
    torch.testing.assert_close(without_repeated_ngrams(p, history, size), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: with_temperature(p, 0.7),
        lambda p: top_k_only(p, 3),
        lambda p: top_p_only(p, 0.8),
        lambda p: min_p_only(p, 0.2),
    ],
)
def test_every_filter_gives_a_distribution_for_any_leading_axes_and_leaves_its_input_alone(change):
    p = table(2, 3, 11)
    before = p.clone()
    found = change(p)
    torch.testing.assert_close(found.exp().sum(dim=-1), torch.ones(2, 3, dtype=torch.float64))
    torch.testing.assert_close(found[1, 2], change(p[1, 2]))
    assert torch.equal(p, before)
    ratio = (found - p).masked_fill(found == -math.inf, torch.nan)
    order = p.argsort(dim=-1)
    assert (found.gather(-1, order).diff(dim=-1).nan_to_num(0.0) >= 0).all()  # nothing overtakes anything
    assert ratio.isfinite().any(dim=-1).all()


def test_tokens_as_probable_as_the_k_th_are_all_kept():
    p = probabilities(0.4, 0.2, 0.2, 0.2)
    assert kept(top_k_only(p, 1)) == [0]
    assert kept(top_k_only(p, 2)) == [0, 1, 2, 3]


def test_the_token_that_crosses_the_threshold_is_in_the_nucleus_and_the_next_one_is_not():
    p = probabilities(0.125, 0.5, 0.25, 0.125)
    assert kept(top_p_only(p, 0.4)) == [1]
    assert kept(top_p_only(p, 0.5)) == [1]  # met exactly
    assert kept(top_p_only(p, 0.51)) == [1, 2]
    assert kept(top_p_only(p, 0.75)) == [1, 2]
    assert kept(top_p_only(p, 0.76)) == [0, 1, 2]  # of two that are alike, the lower id
    assert kept(top_p_only(p, 0.9)) == [0, 1, 2, 3]
    assert top_p_only(p, 0.75).exp()[0].tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0])


def test_a_penalty_makes_every_seen_token_less_probable_beside_every_unseen_one():
    """Whatever the signs of the logits are: dividing those, as the paper does, would fail here."""
    p, history = table(7, 5), torch.randint(5, (7, 2))
    found = with_repetition_penalty(p, history, 1.5)
    for row, tokens in enumerate(history.tolist()):
        for seen in set(tokens):
            for unseen in set(range(5)) - set(tokens):
                assert found[row, seen] - found[row, unseen] < p[row, seen] - p[row, unseen]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: with_temperature(p, 0.0), "temperature 0 means .* use greedy_search"),
        (lambda p: with_temperature(p, -0.5), "temperature must be positive and finite, but is -0.5"),
        (lambda p: with_temperature(p, math.inf), "temperature must be positive and finite, but is inf"),
        (lambda p: with_temperature(p, math.nan), "temperature must be positive and finite, but is nan"),
        (lambda p: top_k_only(p, 0), "k must be at least 1"),
        (lambda p: top_p_only(p, 0.0), "p must be above 0 and at most 1, but is 0.0"),
        (lambda p: top_p_only(p, math.nan), "p must be above 0 and at most 1, but is nan"),
        (lambda p: min_p_only(p, 1.1), "p must be above 0 and at most 1, but is 1.1"),
        (lambda p: with_repetition_penalty(p, torch.tensor([[1]]), 0.0), "penalty must be positive"),
        (lambda p: without_repeated_ngrams(p, torch.tensor([[1]]), 0), "an n-gram has at least 1 token"),
    ],
)
def test_what_is_out_of_range_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        change(probabilities(0.5, 0.5))
