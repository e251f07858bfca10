"""Batches: within budget, nothing lost, nothing twice, resumable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttutor.errors import InputError
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID
from ttutor.training.batching import BucketedBatches

SEQUENCES = st.lists(st.integers(4, 99), min_size=1, max_size=12)
PAIRS = st.lists(st.tuples(SEQUENCES, SEQUENCES), min_size=1, max_size=60)


def rows(batch):
    """The pairs of a batch, their marks and padding taken off."""
    strip = [[token for token in row.tolist() if token not in (PAD_ID, BOS_ID, EOS_ID)] for row in batch.source]
    target = [[token for token in row.tolist() if token not in (PAD_ID, BOS_ID, EOS_ID)] for row in batch.target_out]
    return list(zip(strip, target, strict=True))


@given(PAIRS, st.integers(13, 60), st.integers(0, 5))
def test_every_pair_comes_exactly_once_and_no_batch_is_over_budget(pairs, budget, seed):
    batches = BucketedBatches(pairs, budget, seed)
    seen = []
    for batch in batches.epoch(0):
        assert batch.source.numel() <= budget
        assert batch.target_out.numel() <= budget
        seen += rows(batch)
    assert sorted(seen) == sorted((list(source), list(target)) for source, target in pairs)


@given(PAIRS, st.integers(0, 3), st.integers(0, 3))
def test_an_epoch_can_be_taken_up_anywhere(pairs, epoch, start):
    batches = BucketedBatches(pairs, 40, seed=1)
    whole = [batch.source.tolist() for batch in batches.epoch(epoch)]
    again = BucketedBatches(pairs, 40, seed=1)
    rest = [again.batch(epoch, position) for position in range(start, again.per_epoch(epoch))]
    assert [batch.source.tolist() for batch in rest] == whole[start:]


def test_the_order_follows_from_seed_and_epoch():
    pairs = [([4 + number % 7] * (1 + number % 5), [5] * (1 + number % 3)) for number in range(80)]

    def order(seed, epoch):
        return BucketedBatches(pairs, 30, seed).plan(epoch)

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_every_epoch_has_the_same_number_of_batches():
    pairs = [([4] * (1 + number % 11), [5] * (1 + number % 13)) for number in range(300)]
    batches = BucketedBatches(pairs, 64)
    assert len({batches.per_epoch(epoch) for epoch in range(10)}) == 1


def test_a_pair_over_the_budget_is_named():
    with pytest.raises(InputError, match="pair 2 has 6 tokens, but a batch may hold 5"):
        BucketedBatches([([4], [5]), ([4] * 5, [5])], max_tokens=5)
