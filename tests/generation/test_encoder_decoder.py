"""Greedy and beam search of an encoder-decoder; `test_branches` holds every hypothesis to a search by hand."""

import copy

import pytest
import torch

from tests.generation.tiny import EOS, translator
from ttutor.generation import beam_search, greedy_search, length_penalty

BOS = 2
SOURCE = torch.tensor([[5, 6, 7, 8, 9, 3, 0], [4, 5, 6, 3, 0, 0, 0], [9, 3, 0, 0, 0, 0, 0]])
OPTIONS = {"bos_id": BOS, "eos_id": EOS, "max_new_tokens": 9}
BOTH = pytest.mark.parametrize("search", [greedy_search, beam_search])


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy(seed):
    greedy = greedy_search(translator(seed), SOURCE, **OPTIONS)
    beams = beam_search(translator(seed), SOURCE, **OPTIONS, beam_size=1)
    assert [[one.token_ids for one in beam] for beam in beams] == [[one.token_ids] for one in greedy]
    totals = [one.log_probability for one in greedy]
    assert [beam[0].log_probability for beam in beams] == pytest.approx(totals, abs=1e-9)


@BOTH
def test_limits(search):
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number of at least 1, but is 0"):
        search(translator(), SOURCE, bos_id=BOS, max_new_tokens=0)
    found = search(translator(), SOURCE, bos_id=BOS, max_new_tokens=500)  # the model knows 24 positions
    every = [one for group in found for one in (group if isinstance(group, list) else [group])]
    assert {(len(one.token_ids), one.ended_by) for one in every} == {(24, "max_len")}


@BOTH
def test_the_mode_of_the_model_is_given_back_even_after_an_error(search):
    model = copy.deepcopy(translator()).train()
    search(model, SOURCE, **OPTIONS)
    assert model.training
    with pytest.raises(IndexError):
        search(model, SOURCE + 100, **OPTIONS)
    assert model.training


def test_length_penalty_is_the_published_formula():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(13, 0.5) == pytest.approx(3**0.5)
    assert length_penalty(40, 0.0) == 1.0


@BOTH
def test_a_model_of_nans_says_so(search):
    model = copy.deepcopy(translator())
    model.to_logits.weight.data.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="probabilities are NaN"):
        search(model, SOURCE, **OPTIONS)
