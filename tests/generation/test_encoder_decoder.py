"""Greedy and beam search against exhaustive enumeration and against decoding without a cache."""

import copy
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


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy(seed):
    model = build(seed=seed)
    greedy = greedy_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9)
    beams = beam_search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=9, beam_size=1)
    assert [beam[0].token_ids for beam in beams] == [hypothesis.token_ids for hypothesis in greedy]
    assert all(len(beam) == 1 for beam in beams)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_limits(search):
    model = build()
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number of at least 1, but is 0"):
        search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=0)
    found = search(model, SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=500)  # the model knows 16 positions
    lengths = [len(h.token_ids) for group in found for h in (group if isinstance(group, list) else [group])]
    assert max(lengths) <= 16


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


@pytest.mark.parametrize("alpha", [-0.1, 10.5, float("nan")])
def test_impossible_length_penalties_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be between 0"):
        beam_search(build(), SOURCE, bos_id=BOS, eos_id=EOS, max_new_tokens=3, alpha=alpha)
