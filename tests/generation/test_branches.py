"""The partial hypotheses of a sentence share its memory: as if each had its own, in every order, as sentences leave."""

from __future__ import annotations

import pytest
import torch

from tests.generation.tiny import EOS, PAD, beam_by_hand, translator
from ttutor.cache import KeyValueCache
from ttutor.generation import TranslationState, beam_search
from ttutor.generation.state import BeamState

BOS = 2
SOURCES = [[5, 6, 7, 8, 9], [4, 10, 5], [10], [7, 7, 2, 7], [6, 4, 9, 5, 8, 10]]


def rectangle(sources: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sources))
    return torch.tensor([source + [PAD] * (width - len(source)) for source in sources])


def ranked_after(model, source: list[int]):
    """One sentence, no cache, no batch of others: what may follow each of some targets."""

    def log_probabilities(news: list[tuple[int, ...]]) -> torch.Tensor:
        targets = torch.tensor([[BOS, *new] for new in news])
        is_real = torch.ones_like(targets, dtype=torch.bool)  # a model may write its padding token
        return model(torch.tensor([source] * len(news)), targets, is_real=is_real)[:, -1].log_softmax(dim=-1)

    return log_probabilities


@pytest.mark.parametrize(("seed", "beam_size"), [(0, 1), (1, 2), (2, 5)])
def test_every_hypothesis_is_that_of_a_plain_slow_search_in_whatever_order_the_batch_stands(seed, beam_size):
    model = translator(seed)
    expected = [beam_by_hand(ranked_after(model, source), 8, beam_size, 1.0, [EOS]) for source in SOURCES]
    for order in (range(len(SOURCES)), torch.randperm(len(SOURCES)).tolist()):
        batch = rectangle([SOURCES[place] for place in order])
        found = beam_search(model, batch, bos_id=BOS, eos_id=EOS, max_new_tokens=8, beam_size=beam_size, alpha=1.0)
        for beam, place in zip(found, order, strict=True):
            assert [(one.token_ids, one.is_finished) for one in beam] == [one[:2] for one in expected[place]]
            assert [one.score for one in beam] == pytest.approx([one[2] for one in expected[place]], abs=1e-9)


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


def test_every_branch_sees_its_own_way_however_they_part_end_and_leave():
    model = translator(1)
    sources, targets, n_branches = SOURCES, [[BOS] for _ in SOURCES], 1
    with torch.no_grad():
        state = BeamState(model, rectangle(sources))
        for n_kept, n_next in ((5, 4), (5, 4), (3, 4), (3, 2), (3, 2), (1, 3), (1, 3)):
            found = state.next_log_probabilities(torch.tensor([target[-1] for target in targets]))
            for row, target in enumerate(targets):
                source = torch.tensor([sources[row // n_branches]])
                expected = model(source, torch.tensor([target]))[0, -1].log_softmax(dim=-1)
                torch.testing.assert_close(found[row], expected)
            kept = sorted(torch.randperm(len(sources))[:n_kept].tolist())
            rows = [row * n_branches + int(torch.randint(n_branches, ())) for row in kept for _ in range(n_next)]
            state.select(torch.tensor(rows))
            targets = [[*targets[row], 4 + place % 7] for place, row in enumerate(rows)]
            sources, n_branches = [sources[place] for place in kept], n_next


def test_a_cache_keeps_the_tokens_that_it_is_told_to_and_goes_on():
    cache, tokens = KeyValueCache(), torch.randn(3, 2, 6, 4)
    cache.append(tokens[:, :, :5], 2 * tokens[:, :, :5])
    cache.select_tokens(torch.tensor([0, 2]), torch.tensor([[4, 1], [0, 3]]))
    key, value = cache.append(tokens[[0, 2], :, 5:], 2 * tokens[[0, 2], :, 5:])
    torch.testing.assert_close(key, torch.stack([tokens[0][:, [4, 1, 5]], tokens[2][:, [0, 3, 5]]]))
    torch.testing.assert_close(value, 2 * key)
