"""Tokens as they come, what ends a sequence, and the mode of the model around it all."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch

from tests.generation.tiny import (
    EOS,
    PROMPTS,
    gpt,
    greedy_by_hand,
    log_probability,
    next_distribution,
    padded,
    translator,
)
from ttutor.generation import (
    Sampler,
    beam_search,
    ends_with,
    greedy_search,
    sample,
    stream,
    without_repeated_ngrams,
)

PROMPT = torch.tensor([[5, 6]])


def test_tokens_come_step_by_step_and_rows_that_are_over_leave():
    model = gpt(seed=1)
    token_ids, is_real = padded(PROMPTS, "left")
    expected = [greedy_by_hand(model, prompt, 6, [EOS]) for prompt in PROMPTS]
    assert len({len(new) for new in expected}) > 1  # they do end at different steps
    found = list(stream(model, token_ids, is_real=is_real, eos_id=EOS, max_new_tokens=6))
    in_order = [(row, new[step]) for step in range(6) for row, new in enumerate(expected) if step < len(new)]
    assert [(one.row, one.token_id) for one in found] == in_order
    for row, (prompt, new) in enumerate(zip(PROMPTS, expected, strict=True)):
        of_row = [one for one in found if one.row == row]
        assert [one.ended_by for one in of_row[:-1]] == [""] * (len(new) - 1)
        assert of_row[-1].ended_by == ("eos_id" if new[-1] == EOS else "max_new_tokens")
        total = sum(one.log_probability for one in of_row)
        assert total == pytest.approx(log_probability(model, prompt, new), abs=1e-9)


@pytest.mark.parametrize("leave", ["close", "break", "exhaust", "drop"])
def test_the_mode_of_every_part_comes_back_however_the_iterator_ends(leave):
    model = copy.deepcopy(gpt(seed=1)).train()
    model.decoder.layers[0].eval()
    before = [module.training for module in model.modules()]
    tokens = stream(model, PROMPT, max_new_tokens=3)
    assert model.training  # nothing has begun
    next(tokens)
    assert not any(module.training for module in model.modules())
    if leave == "close":
        tokens.close()
    elif leave == "break":
        for _ in tokens:
            break
        del tokens
    elif leave == "exhaust":
        assert len(list(tokens)) == 2
    else:
        del tokens
    assert [module.training for module in model.modules()] == before


def test_a_stream_can_draw():
    model = gpt(seed=1)
    drawn = stream(model, PROMPT, max_new_tokens=6, choose=Sampler(torch.Generator().manual_seed(3), temperature=2.0))
    (found,) = sample(model, PROMPT, generator=torch.Generator().manual_seed(3), temperature=2.0, max_new_tokens=6)
    assert tuple(one.token_id for one in drawn) == found.token_ids


def test_a_stop_sequence_ends_a_row_and_is_kept():
    model = gpt(seed=1)
    new = greedy_by_hand(model, PROMPTS[1], 9)
    token_ids, is_real = padded(PROMPTS, "right")
    stop = [ends_with(99), ends_with(new[2], new[3], new[4])]
    found = greedy_search(model, token_ids, is_real=is_real, stop=stop, max_new_tokens=9)
    assert found[1].token_ids == tuple(new[:5])
    assert (found[1].ended_by, found[1].is_finished) == ("stop", True)
    for row in (0, 2, 3):
        assert list(found[row].token_ids) == greedy_by_hand(model, PROMPTS[row], 9)
        assert found[row].ended_by == "max_new_tokens"


def test_a_condition_of_the_reader_s_own_sees_the_new_tokens_of_one_row():
    seen = []

    def is_over(token_ids):
        seen.append(token_ids)
        return len(set(token_ids)) >= 3

    model = gpt(seed=1)
    (found,) = greedy_search(model, torch.tensor(PROMPTS[1:2]), stop=[is_over], max_new_tokens=9)
    new = tuple(greedy_by_hand(model, PROMPTS[1], 9))
    assert len(set(found.token_ids)) == 3
    assert seen == [new[: i + 1] for i in range(len(found.token_ids))]


def test_filters_change_the_choice_and_not_the_probability_that_is_told():
    model = gpt(seed=1)
    no_repeat = partial(without_repeated_ngrams, size=1)
    (found,) = greedy_search(model, torch.tensor(PROMPTS[:1]), filters=[no_repeat], max_new_tokens=5)
    text = list(PROMPTS[0])
    for token in found.token_ids:
        ranked = next_distribution(model, text).argsort(descending=True).tolist()
        assert token == next(candidate for candidate in ranked if candidate not in text)
        text.append(token)
    assert found.log_probability == pytest.approx(log_probability(model, PROMPTS[0], found.token_ids), abs=1e-9)


def test_filters_are_applied_in_turn_and_see_what_was_fed():
    seen = []

    def only(allowed, log_probabilities, history):
        seen.append(history.tolist())
        forbidden = [token for token in range(11) if token not in allowed]
        return log_probabilities.index_fill(1, torch.tensor(forbidden), -torch.inf)

    token_ids, is_real = padded([[5, 6, 7], [8]], "right")
    filters = [partial(only, {1, 2, 4}), partial(only, {2, 9})]
    found = greedy_search(gpt(seed=1), token_ids, is_real=is_real, filters=filters, max_new_tokens=2)
    assert [one.token_ids for one in found] == [(2, 2), (2, 2)]
    assert seen[::2] == [[[5, 6, 7], [-1, -1, 8]], [[5, 6, 7, 2], [-1, -1, 8, 2]]]
    seen.clear()
    greedy_search(translator(), torch.tensor([[5, 6]]), bos_id=2, filters=filters, max_new_tokens=2)
    assert seen[::2] == [[[2]], [[2, 2]]]  # of an encoder-decoder, the target


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_new_tokens": 1.5}, ValueError, "max_new_tokens must be a whole number of at least 1, but is 1.5"),
        ({"eos_id": 3.0}, ValueError, "eos_id must be a token id .* but is 3.0"),
        ({"eos_id": [2, 3.7]}, ValueError, "eos_id must be a token id .* but is 3.7"),
        ({"is_real": torch.tensor([[1, 1]])}, TypeError, r"is_real is a bool tensor .*; write `is_real.bool\(\)`"),
    ],
)
def test_what_is_nearly_right_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        greedy_search(gpt(), PROMPT, **{"max_new_tokens": 2, **arguments})


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_module_that_is_no_language_model_is_refused(search):
    with pytest.raises(TypeError, match="needs a model with start, step and project.* but Linear is none"):
        search(torch.nn.Linear(2, 2), PROMPT, max_new_tokens=2)


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_stop_sequence_in_a_list_is_refused():
    with pytest.raises(TypeError, match=r"token by token, ends_with\(7, 8\), but \[7, 8\] is no token id"):
        ends_with([7, 8])  # would never hold
