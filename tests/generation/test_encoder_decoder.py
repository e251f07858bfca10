"""Greedy and beam search against exhaustive enumeration and against decoding without a cache."""

import copy
import itertools
from functools import cache

import pytest
import torch
from torch import nn

from ttutor.generation import beam_search, greedy_search, length_penalty
from ttutor.training.fit import fit
from ttutor.transformer import Transformer, TransformerConfig

PAD, BOS, EOS = 0, 2, 3


def copying_batch() -> torch.Tensor:
    """Sequences of one to six tokens with their end mark, padded on the right."""
    lengths, ids, position = torch.randint(1, 7, (32, 1)), torch.randint(4, 11, (32, 7)), torch.arange(7)
    return torch.where(position < lengths, ids, torch.where(position == lengths, EOS, PAD))


def copying_loss(model: Transformer, ids: torch.Tensor) -> torch.Tensor:
    shifted = torch.cat([torch.full((len(ids), 1), BOS), ids[:, :-1]], dim=1)
    return nn.functional.cross_entropy(model(ids, shifted).flatten(0, 1), ids.flatten(), ignore_index=PAD)


@cache
def build(seed: int = 0) -> Transformer:
    """A model half-way through learning to copy: it has opinions, ends its sequences, and still errs."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=11, d_model=24, n_heads=3, n_layers=1, d_ff=48, dropout=0.0, norm="pre", max_len=16
    )
    model = Transformer(config)
    fit(model, [copying_batch() for _ in range(20)], copying_loss, steps=40, learning_rate=0.01)
    return model


SOURCE = torch.tensor([[5, 6, 7, 8, 9, 3, 0], [4, 5, 6, 3, 0, 0, 0], [9, 3, 0, 0, 0, 0, 0]])


def log_probability(model: Transformer, source: torch.Tensor, tokens: tuple[int, ...], is_finished: bool) -> float:
    """The log probability of a sequence, from one pass without a cache."""
    target = torch.tensor([[BOS, *tokens]])
    with torch.no_grad():
        table = model(source.reshape(1, -1), target).float().log_softmax(dim=-1)[0]
    wanted = [*tokens, EOS] if is_finished else list(tokens)
    return sum(table[i, token].item() for i, token in enumerate(wanted))


def greedy_without_cache(model: Transformer, source: torch.Tensor, limit: int) -> tuple[tuple[int, ...], bool]:
    tokens: list[int] = []
    for _ in range(limit):
        with torch.no_grad():
            token = int(model(source.reshape(1, -1), torch.tensor([[BOS, *tokens]]))[0, -1].argmax())
        if token == EOS:
            return tuple(tokens), True
        tokens.append(token)
    return tuple(tokens), False


@pytest.mark.parametrize("seed", range(3))
def test_greedy_equals_decoding_each_sentence_alone_without_a_cache(seed):
    model = build(seed=seed)
    found = greedy_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    for hypothesis, source in zip(found, SOURCE, strict=True):
        assert (hypothesis.token_ids, hypothesis.is_finished) == greedy_without_cache(model, source, 9)
        expected = log_probability(model, source, hypothesis.token_ids, hypothesis.is_finished)
        assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)


def test_greedy_seeds_cover_both_endings():
    endings = {
        hypothesis.is_finished
        for seed in range(3)
        for hypothesis in greedy_search(build(seed=seed), SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    }
    assert endings == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy(seed):
    model = build(seed=seed)
    greedy = greedy_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    beams = beam_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9, beam_size=1)
    assert [beam[0].token_ids for beam in beams] == [hypothesis.token_ids for hypothesis in greedy]
    assert all(len(beam) == 1 for beam in beams)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_that_misses_nothing_finds_the_best_of_all_sequences(alpha, seed):
    """With two steps and a beam of five, every candidate of step two descends from the best five of step one.

    So the enumeration is over those: all that end at once, and all that go on from the five best first tokens.
    """
    model, source = build(seed=seed), SOURCE[2]
    (found,) = beam_search(
        model, source.reshape(1, -1), bos_id=BOS, eos_id=EOS, max_new_tokens=2, beam_size=5, alpha=alpha
    )
    ordinary = [token for token in range(11) if token != EOS]
    first = sorted(ordinary, key=lambda token: -log_probability(model, source, (token,), False))[:5]
    candidates = [((), True)]
    candidates += [((a,), True) for a in first]
    candidates += [((a, b), False) for a, b in itertools.product(first, ordinary)]
    scores = {}
    for tokens, is_finished in candidates:
        total = log_probability(model, source, tokens, is_finished)
        scores[tokens, is_finished] = total / length_penalty(len(tokens) + is_finished, alpha)
    best = max(scores, key=lambda candidate: (candidate[1], scores[candidate]))  # finished ones come first
    assert (found[0].token_ids, found[0].is_finished) == best
    assert found[0].score == pytest.approx(scores[best], abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_beam_hypotheses_carry_their_true_probability_and_are_sorted(seed):
    model = build(seed=seed)
    beams = beam_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9, beam_size=3, alpha=0.6)
    for source, beam in zip(SOURCE, beams, strict=True):
        assert len(beam) == 3
        assert len({(h.token_ids, h.is_finished) for h in beam}) == 3
        assert list(beam) == sorted(beam, key=lambda h: (not h.is_finished, -h.score))
        for h in beam:
            expected = log_probability(model, source, h.token_ids, h.is_finished)
            assert h.log_probability == pytest.approx(expected, abs=1e-4)
            n_tokens = len(h.token_ids) + h.is_finished
            assert h.score == pytest.approx(expected / length_penalty(n_tokens, 0.6), abs=1e-4)


def test_a_sentence_gets_the_same_beam_alone_and_in_a_batch():
    model = build(seed=1)
    together = beam_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    for row in range(len(SOURCE)):
        (alone,) = beam_search(model, SOURCE[row : row + 1], bos_id=BOS, eos_id=EOS, max_new_tokens=9)
        assert [h.token_ids for h in alone] == [h.token_ids for h in together[row]]


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_limits(search):
    model = build()
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number of at least 1, but is 0"):
        search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=0)
    found = search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=500)  # the model knows 16 positions
    lengths = [len(h.token_ids) for group in found for h in (group if isinstance(group, list) else [group])]
    assert max(lengths) <= 16


@pytest.mark.parametrize("beam_size", [0, 6])
def test_impossible_beams_are_refused(beam_size):
    with pytest.raises(ValueError, match=r"beam_size must be between 1 and half the vocabulary \(5\)"):
        beam_search(build(), SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=3, beam_size=beam_size)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_the_mode_of_the_model_is_given_back_even_after_an_error(search):
    model = copy.deepcopy(build()).train()
    search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=2)
    assert model.training
    with pytest.raises(IndexError):
        search(model, SOURCE + 100, bos_id=BOS, eos_id=EOS, max_new_tokens=2)
    assert model.training


def test_length_penalty_is_the_published_formula():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(13, 0.5) == pytest.approx(3**0.5)
    assert length_penalty(40, 0.0) == 1.0


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_model_of_nans_says_so(search):
    model = copy.deepcopy(build())
    model.to_logits.weight.data.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="probabilities are NaN"):
        search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=3)


def test_parts_that_were_frozen_stay_frozen():
    model = copy.deepcopy(build()).train()
    model.encoder.eval()
    greedy_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=2)
    assert model.decoder.training
    assert not model.encoder.training


@pytest.mark.parametrize("alpha", [-0.1, 10.5, float("nan")])
def test_impossible_length_penalties_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be between 0"):
        beam_search(build(), SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=3, alpha=alpha)
