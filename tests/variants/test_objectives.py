"""Pre-training objectives: what they say of themselves counted, inverted, enumerated, or summed to one.

Counts are held within five standard deviations of their binomial mean, which chance leaves once in two million.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ttutor.encoder import Encoder
from ttutor.variants.objectives import (
    IGNORE_ID,
    factorisation_order,
    mask_tokens,
    next_sentence_pairs,
    permutation_masks,
    repeat_layer,
    replace_tokens,
    restore_spans,
    sentence_order_pairs,
    span_corruption,
    text_infilling,
)

CLS, SEP, MASK = 2, 3, 4
SPECIAL = (0, 1, CLS, SEP, MASK)
SEEDS = st.integers(0, 2**32)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_binomial(count: int, n: int, probability: float) -> None:
    """A count of n draws is what the probability lets expect."""
    spread = math.sqrt(n * probability * (1 - probability))
    assert abs(count - n * probability) <= 5 * spread, f"{count} of {n}, expected {n * probability:.1f} +- {spread:.1f}"


# Masked language model.


def bert(token_ids: torch.Tensor, vocab_size: int = 105, seed: int = 0, **shares: float):
    return mask_tokens(
        token_ids, mask_id=MASK, vocab_size=vocab_size, special_ids=SPECIAL, generator=seeded(seed), **shares
    )


def test_fifteen_per_cent_are_chosen_of_which_eighty_are_masked_ten_random_ten_kept():
    token_ids = torch.randint(5, 105, (400, 250), generator=seeded(1))
    n, n_ordinary = token_ids.numel(), 100
    inputs, labels = bert(token_ids)
    chosen = labels != IGNORE_ID
    masked, kept = chosen & (inputs == MASK), chosen & (inputs == token_ids)
    drawn = chosen & ~masked & ~kept  # a random token is the original once in 100 draws
    assert_binomial(int(chosen.sum()), n, 0.15)
    assert_binomial(int(masked.sum()), n, 0.15 * 0.8)
    assert_binomial(int(drawn.sum()), n, 0.15 * 0.1 * (1 - 1 / n_ordinary))
    assert_binomial(int(kept.sum()), n, 0.15 * (0.1 + 0.1 / n_ordinary))


def test_random_tokens_are_all_ordinary_ones_alike():
    inputs, _ = bert(torch.full((200, 200), 7), vocab_size=21, rate=1.0, mask_share=0.0, random_share=1.0)
    counts = inputs.flatten().bincount(minlength=21).tolist()
    assert counts[:5] == [0] * 5
    for count in counts[5:]:
        assert_binomial(count, 40_000, 1 / 16)


@given(SEEDS, st.floats(0, 1), st.sampled_from([(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.3, 0.7)]))
def test_labels_hold_the_originals_of_the_chosen_and_nothing_else_changes(seed, rate, shares):
    token_ids = torch.randint(0, 12, (3, 8), generator=seeded(seed))
    before = token_ids.clone()
    inputs, labels = bert(token_ids, 12, seed, rate=rate, mask_share=shares[0], random_share=shares[1])
    chosen = labels != IGNORE_ID
    assert torch.equal(torch.where(chosen, labels, inputs), token_ids)
    assert not (chosen & (token_ids < 5)).any()
    assert torch.equal(token_ids, before)
    assert inputs.dtype == labels.dtype == torch.long


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1.5}, "rate must be between 0 and 1, but is 1.5"),
        ({"mask_share": 0.95}, r"mask_share \+ random_share must be between 0 and 1, but is 1.0"),
        ({"random_share": -0.1}, "random_share must be between 0 and 1, but is -0.1"),
        ({"vocab_size": 7}, r"between 0 and vocab_size - 1 = 6, but \[8, 9\] came"),
        ({"special_ids": range(20)}, "all 20 tokens of the vocabulary are special"),
        ({"mask_id": 20}, r"but \[20\] came"),
    ],
)
def test_impossible_shares_and_ids_are_refused(changes, message):
    arguments = {"mask_id": MASK, "vocab_size": 20, "special_ids": SPECIAL, "generator": seeded()} | changes
    with pytest.raises(ValueError, match=message):
        mask_tokens(torch.tensor([[5, 9, 8]]), **arguments)


# Replaced-token detection.


def test_guesses_follow_the_generators_distribution_and_a_right_guess_is_original():
    logits = torch.randn(7, dtype=torch.float64)
    token_ids = torch.full((100, 200), 3)
    chosen = torch.rand(100, 200, generator=seeded()) < 0.5
    inputs, is_replaced = replace_tokens(token_ids, chosen, logits.expand(100, 200, 7), generator=seeded(1))
    n = int(chosen.sum())
    for token_id, probability in enumerate(logits.softmax(dim=-1).tolist()):
        assert_binomial(int((inputs[chosen] == token_id).sum()), n, probability)
    assert torch.equal(is_replaced, inputs != token_ids)
    assert torch.equal(inputs[~chosen], token_ids[~chosen])
    assert 0 < int(is_replaced.sum()) < n


# The sentence s of document d has the two tokens 1000 d + s and that plus 500, so that each can be told by its first.
DOCUMENTS = [[[1000 * d + s, 1000 * d + s + 500] for s in range(300)] for d in (1, 2, 3)]


def halves(token_ids: list[int]) -> tuple[list[int], list[int]]:
    """The two sentences between [CLS] and the separators."""
    assert token_ids[0] == CLS
    assert token_ids[-1] == SEP
    middle = token_ids.index(SEP)
    return token_ids[1:middle], token_ids[middle + 1 : -1]


def test_next_sentences_follow_half_of_the_time_and_else_come_from_another_document():
    pairs = next_sentence_pairs(DOCUMENTS, cls_id=CLS, sep_id=SEP, generator=seeded())
    assert len(pairs) == 3 * 299
    sources = Counter()
    for pair, (d, s) in zip(pairs, itertools.product((1, 2, 3), range(299)), strict=True):
        first, second = halves(pair.token_ids)
        assert first == [1000 * d + s, 1000 * d + s + 500]
        assert second[1] == second[0] + 500
        if pair.label:
            assert second[0] == first[0] + 1
        else:
            assert second[0] // 1000 != d
            sources[d, second[0] // 1000] += 1
    assert_binomial(sum(pair.label for pair in pairs), len(pairs), 0.5)
    assert len(sources) == 6  # each document lends to both others
    for count in sources.values():
        assert_binomial(count, sources.total(), 1 / 6)


def test_sentence_order_swaps_half_of_the_pairs_of_neighbours():
    pairs = sentence_order_pairs(DOCUMENTS, cls_id=CLS, sep_id=SEP, generator=seeded())
    for pair, (d, s) in zip(pairs, itertools.product((1, 2, 3), range(299)), strict=True):
        firsts = [sentence[0] for sentence in halves(pair.token_ids)]
        in_order = [1000 * d + s, 1000 * d + s + 1]
        assert firsts == (in_order if pair.label else in_order[::-1])
    assert_binomial(sum(pair.label for pair in pairs), len(pairs), 0.5)


# Span corruption.

SENTINELS = list(range(900, 1000))


@given(st.lists(st.integers(0, 800), min_size=2, max_size=80), st.floats(0.01, 0.99), SEEDS)
def test_inputs_and_targets_restore_the_text(token_ids, rate, seed):
    inputs, targets = span_corruption(token_ids, sentinel_ids=SENTINELS, generator=seeded(seed), rate=rate)
    assert restore_spans(inputs, targets, sentinel_ids=SENTINELS) == token_ids
    n_taken = min(max(round(rate * len(token_ids)), 1), len(token_ids) - 1)
    used = [token_id for token_id in inputs if token_id >= 900]
    assert used == SENTINELS[: len(used)]
    assert [token_id for token_id in targets if token_id >= 900] == SENTINELS[: len(used) + 1]
    assert targets[0] == SENTINELS[0]
    assert targets[-1] == SENTINELS[len(used)]
    assert len(inputs) == len(token_ids) - n_taken + len(used)
    assert len(targets) == n_taken + len(used) + 1
    assert all(a < 900 or b < 900 for a, b in itertools.pairwise(inputs)), "two spans touch"
    assert all(a < 900 or b < 900 for a, b in itertools.pairwise(targets)), "a span is empty"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": [5]}, "a text needs 2 tokens, one to take out and one to keep, but has 1"),
        ({"token_ids": [5, 900, 6]}, r"the text contains \[900\], which are sentinels"),
        ({"sentinel_ids": [900, 901]}, "40 tokens need 3 different sentinels, but 2 came"),
        ({"sentinel_ids": [900, 901, 901]}, "40 tokens need 3 different sentinels, but 2 came"),
        ({"rate": 0.0}, "rate must lie between 0 and 1, but is 0.0"),
        ({"rate": 1.0}, "but is 1.0"),
    ],
)
def test_texts_and_sentinels_that_cannot_do_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        span_corruption(**{"token_ids": range(40), "sentinel_ids": SENTINELS, "generator": seeded()} | changes)


# The noises of BART.


def test_infilled_spans_have_poisson_lengths_and_some_are_empty():
    n = 40_000
    damaged = text_infilling(range(10, 10 + n), mask_id=MASK, generator=seeded())
    triples = zip(damaged, damaged[1:], damaged[2:], strict=False)
    # The length of a span can be read off where its mask stands alone; where it stands does not hang on its length.
    lengths = Counter(
        after - before - 1 for before, mask, after in triples if mask == MASK and MASK not in (before, after)
    )
    assert lengths.total() > 3000
    for length in range(9):
        assert_binomial(lengths[length], lengths.total(), math.exp(-3) * 3**length / math.factorial(length))


# Orders of prediction.


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=3))
def test_positions_see_what_comes_earlier_in_the_order(orders):
    content, query = permutation_masks(torch.tensor(orders))
    assert content.shape == query.shape == (len(orders), 1, 5, 5)
    for b, order in enumerate(orders):
        for i, j in itertools.product(range(5), range(5)):
            assert query[b, 0, i, j].item() == (order.index(j) < order.index(i))
            assert content[b, 0, i, j].item() == (order.index(j) <= order.index(i))


# Layer sharing.


def test_every_order_is_drawn_alike():
    seen = Counter(map(tuple, factorisation_order(3000, 3, generator=seeded()).tolist()))
    assert set(seen) == set(itertools.permutations(range(3)))
    for count in seen.values():
        assert_binomial(count, 3000, 1 / 6)


def encoder(n_layers: int) -> Encoder:
    return Encoder(d_model=12, n_heads=3, d_ff=20, n_layers=n_layers, norm="pre").double()


def test_a_repeated_layer_computes_as_equal_layers_do_and_gathers_their_gradients():
    shared, unshared = encoder(1), encoder(5)
    shared.layers = repeat_layer(shared.layers[0], 5)
    unshared.load_state_dict(shared.state_dict())  # every layer's weights are listed under every layer's name
    hidden = torch.randn(2, 7, 12, dtype=torch.float64)
    torch.testing.assert_close(shared(hidden), unshared(hidden), rtol=0, atol=0)
    for model in (shared, unshared):
        model(hidden).square().sum().backward()
    for name, parameter in shared.layers[0].named_parameters():
        gradients = [layer.get_parameter(name).grad for layer in unshared.layers]
        torch.testing.assert_close(parameter.grad, torch.stack(gradients).sum(dim=0), rtol=1e-10, atol=1e-10)
