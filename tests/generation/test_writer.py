"""An encoder-decoder writes for each row as if it were alone, in every order, as rows double and leave."""

from __future__ import annotations

import pytest
import torch

from tests.generation.tiny import EOS, PAD, beam_by_hand, translator
from ttutor.generation import beam_search, next_log_probabilities

BOS = 2
SOURCES = [[5, 6, 7, 8, 9], [4, 10, 5], [10], [7, 7, 2, 7], [6, 4, 9, 5, 8, 10]]


def rectangle(sources: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sources))
    return torch.tensor([source + [PAD] * (width - len(source)) for source in sources])


def following(model, state, token_ids: torch.Tensor) -> torch.Tensor:
    return torch.cat([part for _, part in next_log_probabilities(model, state, token_ids)])


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
        state, first = model.start(sources, bos_id=BOS)
        following(model, state, first)
        state.select(torch.tensor(rows))
        found = following(model, state, torch.arange(4, 4 + len(rows)))
        state.select(torch.arange(len(rows)).flip(0))
        after = following(model, state, torch.full((len(rows),), 7))
        for row, kept in enumerate(rows):
            target = torch.tensor([[BOS, 4 + row, 7]])
            table = model(torch.tensor([SOURCES[kept]]), target)[0].log_softmax(dim=-1)
            torch.testing.assert_close(found[row], table[1])
            torch.testing.assert_close(after[len(rows) - 1 - row], table[2])
