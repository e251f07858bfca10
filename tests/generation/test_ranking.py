"""Ranking by blocks against ranking everything."""

from __future__ import annotations

import pytest
import torch

from ttutor.generation.ranking import BLOCK, best_extensions, most_probable


def ranked_in_full(log_probabilities: torch.Tensor, totals: torch.Tensor, n: int) -> tuple[torch.Tensor, ...]:
    n_beams, vocab_size = totals.shape[1], log_probabilities.shape[1]
    everything = (log_probabilities.unflatten(0, (-1, n_beams)) + totals[..., None]).flatten(1)
    best, flat = everything.topk(n, dim=-1)
    first = torch.arange(0, len(log_probabilities), n_beams)[:, None]
    return best, first + flat // vocab_size, flat % vocab_size


@pytest.mark.parametrize("vocab_size", [5, BLOCK - 1, BLOCK, BLOCK + 1, 7 * BLOCK, 1000])
@pytest.mark.parametrize(("n_beams", "n"), [(1, 1), (1, 5), (3, 6), (5, 10)])
def test_the_best_are_those_of_the_whole_ranking(vocab_size, n_beams, n):
    for _ in range(5):
        log_probabilities = torch.randn(4 * n_beams, vocab_size).log_softmax(dim=-1)
        totals = -3 * torch.rand(4, n_beams)
        found, expected = (rank(log_probabilities, totals, n) for rank in (best_extensions, ranked_in_full))
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_is_impossible_comes_last_and_names_a_token_of_the_vocabulary():
    log_probabilities = torch.full((2, BLOCK + 2), -torch.inf)
    log_probabilities[0, [1, BLOCK + 1]] = torch.tensor([-1.0, -2.0])
    best, row, token = best_extensions(log_probabilities, torch.tensor([[0.0, -torch.inf]]), 4)
    assert best.tolist() == [[-1.0, -2.0, -torch.inf, -torch.inf]]
    assert (row[0, :2].tolist(), token[0, :2].tolist()) == ([0, 0], [1, BLOCK + 1])
    assert token.max() < BLOCK + 2


def test_the_most_probable_token_is_that_of_the_row():
    log_probabilities = torch.randn(9, 3 * BLOCK + 7).log_softmax(dim=-1)
    assert torch.equal(most_probable(log_probabilities, list(range(9))), log_probabilities.argmax(dim=-1))
