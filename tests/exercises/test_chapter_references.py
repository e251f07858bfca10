"""The references of chapter 2's and chapter 8's own exercises, against the package and torch."""

from __future__ import annotations

import math

import pytest
import torch

from ttutor.exercises.attention import invisible_part, weights_by_hand
from ttutor.exercises.training import plan_batches, sentence_perplexity, smoothing_for_floor
from ttutor.multihead import AttentionHead
from ttutor.training.batching import BucketedBatches
from ttutor.training.loss import smoothing_floor


def test_weights_by_hand_are_those_of_softmax() -> None:
    scores = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64).log()
    masked = scores.masked_fill(torch.tensor([False, False, True]), -math.inf)
    expected = torch.stack([scores.softmax(0), (scores / 0.5).softmax(0), masked.softmax(0)])
    torch.testing.assert_close(torch.tensor(weights_by_hand.reference(), dtype=torch.float64), expected)


def test_a_head_does_not_see_what_is_called_invisible_and_sees_all_else() -> None:
    torch.manual_seed(0)
    head = AttentionHead(11, 3).double()
    matrices = [projection.weight.detach() for projection in (head.to_query, head.to_key, head.to_value)]
    words = torch.randn(5, 11, dtype=torch.float64)
    unseen = invisible_part.reference(words, *matrices)
    with torch.no_grad():
        torch.testing.assert_close(head((words + 100 * unseen)[None]), head(words[None]))
    rest = words - unseen
    torch.testing.assert_close(unseen @ rest.T, torch.zeros(5, 5, dtype=torch.float64))
    seen = torch.cat(matrices)
    assert torch.linalg.matrix_rank(torch.cat([seen, rest])) == torch.linalg.matrix_rank(seen) == 9


def test_a_sentences_numbers_are_those_of_the_chapter() -> None:
    probability, loss, perplexity = sentence_perplexity.reference(torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64))
    assert (probability, perplexity) == pytest.approx((1 / 64, 4))
    assert loss == pytest.approx(2 * math.log(2))


@pytest.mark.parametrize(("vocab_size", "floor"), [(11, 0.4), (37_000, 1.0), (37_000, 5.0), (4, 1.2)])
def test_the_smoothing_found_has_the_floor_in_the_package(vocab_size: int, floor: float) -> None:
    assert smoothing_floor(vocab_size, smoothing_for_floor.reference(vocab_size, floor)) == pytest.approx(floor)


def test_a_plan_wastes_no_more_than_the_packages() -> None:
    lengths, budget = plan_batches._sentences(torch.Generator().manual_seed(0))
    cells = [len(batch) * max(lengths[index] for index in batch) for batch in plan_batches.reference(lengths, budget)]
    pairs = [([5] * (length - 1), [5] * (length - 1)) for length in lengths]  # the end mark is counted, too
    by_package = BucketedBatches(pairs, max_tokens=budget, seed=0)
    assert sum(lengths) / sum(cells) > by_package.real_share() - 0.02
    assert abs(len(cells) - by_package.per_epoch()) <= 0.1 * len(cells)
