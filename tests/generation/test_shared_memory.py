"""The beginnings of a sentence share its memory: as if each had its own, in every order, as sentences leave."""

from __future__ import annotations

import pytest
import torch

from tests.generation.tiny import EOS, PAD, translator
from ttutor.generation import TranslationState, beam_search, length_penalty
from ttutor.variants.t5 import T5, T5Config

BOS = 2
SOURCES = [[5, 6, 7, 8, 9], [4, 10, 5], [10], [7, 7, 2, 7], [6, 4, 9, 5, 8, 10]]


def rectangle(sources: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sources))
    return torch.tensor([source + [PAD] * (width - len(source)) for source in sources])


def beam_by_hand(model, source: list[int], n_tokens: int, beam_size: int, alpha: float) -> list[tuple]:
    """One sentence, no cache, no batch of others: every extension of every beginning ranked."""
    beginnings, finished = [((), 0.0)], []
    for step in range(1, n_tokens + 1):
        targets = torch.tensor([[BOS, *new] for new, _ in beginnings])
        with torch.no_grad():
            is_real = torch.ones_like(targets, dtype=torch.bool)  # a model may write its padding token
            table = model(torch.tensor([source] * len(beginnings)), targets, is_real=is_real)[:, -1].log_softmax(dim=-1)
        candidates = [
            ((*new, token), total + gain)
            for (new, total), gains in zip(beginnings, table.tolist(), strict=True)
            for token, gain in enumerate(gains)
        ]
        ranked = sorted(candidates, key=lambda candidate: -candidate[1])
        finished += [
            (new[:-1], True, total / length_penalty(step, alpha)) for new, total in ranked[:beam_size] if new[-1] == EOS
        ]
        beginnings = [candidate for candidate in ranked if candidate[0][-1] != EOS][:beam_size]
        if len(finished) >= beam_size:
            break
    else:
        finished += [(new, False, total / length_penalty(n_tokens, alpha)) for new, total in beginnings]
    return sorted(finished[:beam_size], key=lambda found: (not found[1], -found[2]))


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_every_hypothesis_is_that_of_a_plain_slow_search_in_whatever_order_the_batch_stands(seed, beam_size):
    model = translator(seed)
    expected = [beam_by_hand(model, source, 8, beam_size, 1.0) for source in SOURCES]
    for order in (range(len(SOURCES)), torch.randperm(len(SOURCES)).tolist()):
        batch = rectangle([SOURCES[place] for place in order])
        found = beam_search(model, batch, bos_id=BOS, eos_id=EOS, max_new_tokens=8, beam_size=beam_size, alpha=1.0)
        for beam, place in zip(found, order, strict=True):
            assert [(one.token_ids, one.is_finished) for one in beam] == [one[:2] for one in expected[place]]
            assert [one.score for one in beam] == pytest.approx([one[2] for one in expected[place]], abs=1e-9)


def test_the_sentences_of_that_test_leave_at_different_steps():
    lengths = {
        max(len(one[0]) for one in beam_by_hand(translator(seed), source, 8, 2, 1.0))
        for seed in range(3)
        for source in SOURCES
    }
    assert len(lengths) > 1


@pytest.mark.parametrize("rows", [[0, 0, 0, 1, 1, 1], [1, 0], [2, 2, 0, 0], [0, 0, 1], [1, 1, 1, 0, 2]])
def test_rows_go_on_with_their_own_memory_however_they_are_kept(rows):
    model, sources = translator(1), rectangle(SOURCES[:3])
    with torch.no_grad():
        state = TranslationState(model, sources)
        state.next_log_probabilities(torch.tensor([BOS] * 3))
        state.select(torch.tensor(rows))
        found = state.next_log_probabilities(torch.arange(4, 4 + len(rows)))
        state.select(torch.arange(len(rows)).flip(0))
        after = state.next_log_probabilities(torch.full((len(rows),), 7))
        for row, kept in enumerate(rows):
            target = torch.tensor([[BOS, 4 + row, 7]])
            table = model(torch.tensor([SOURCES[kept]]), target)[0].log_softmax(dim=-1)
            torch.testing.assert_close(found[row], table[1])
            torch.testing.assert_close(after[len(rows) - 1 - row], table[2])


def test_copies_share_from_the_start():
    model, sources = translator(1), rectangle(SOURCES[:2])
    with torch.no_grad():
        state, plain = TranslationState(model, sources, copies=3), TranslationState(model, sources)
        found = state.next_log_probabilities(torch.full((6,), BOS))
        torch.testing.assert_close(found, plain.next_log_probabilities(torch.full((2,), BOS)).repeat_interleave(3, 0))
    assert len(state.memory) == 2


def test_a_t5_shares_too():
    torch.manual_seed(0)
    model = T5(T5Config(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=20)).double().eval()
    options = {"bos_id": PAD, "eos_id": EOS, "max_new_tokens": 5, "beam_size": 3}
    together = beam_search(model, rectangle(SOURCES), **options)
    for source, beam in zip(SOURCES, together, strict=True):
        (alone,) = beam_search(model, torch.tensor([source]), **options)
        assert [one.token_ids for one in alone] == [one.token_ids for one in beam]
