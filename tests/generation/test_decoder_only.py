"""Greedy search and the state of decoder-only models against decoding every prompt alone without a cache."""

from __future__ import annotations

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
from ttutor.errors import ShapeError
from ttutor.generation import beam_search, greedy_search, next_log_probabilities, read_prompt, sample, stream

SIDES = ("left", "right", "strewn")
KINDS = ("alibi", "learned", "none", "rotary", "sinusoidal")


@pytest.mark.parametrize(
    ("positions", "side"), [("learned", "left"), ("learned", "right"), *((kind, "strewn") for kind in KINDS)]
)
def test_greedy_equals_decoding_each_prompt_alone_without_a_cache(positions, side):
    model = gpt(seed=1, positions=positions)
    token_ids, is_real = padded(PROMPTS, side)
    found = greedy_search(model, token_ids, is_real=is_real, eos_id=EOS, max_new_tokens=9)
    for hypothesis, prompt in zip(found, PROMPTS, strict=True):
        expected = greedy_by_hand(model, prompt, 9, [EOS])
        assert list(hypothesis.token_ids) == [token for token in expected if token != EOS]
        assert hypothesis.is_finished == (expected[-1] == EOS)
        assert hypothesis.log_probability == pytest.approx(log_probability(model, prompt, expected), abs=1e-9)
        assert hypothesis.score == hypothesis.log_probability


def _next(model, state, token_ids):
    return torch.cat([part for _, part in next_log_probabilities(model, state, token_ids)])


@pytest.mark.parametrize("side", SIDES)
def test_the_state_gives_the_distribution_of_an_uncached_pass_at_every_step(side):
    model = gpt(seed=2)
    token_ids, is_real = padded(PROMPTS, side)
    with torch.no_grad():
        state, last = model.start(token_ids, is_real=is_real)
        assert state.cache.n_tokens == 4  # the longest prompt but its last token, whatever the padding
        texts = [list(prompt) for prompt in PROMPTS]
        for _ in range(5):
            expected = torch.stack([next_distribution(model, text) for text in texts])
            torch.testing.assert_close(_next(model, state, last), expected, rtol=0, atol=1e-10)
            last = torch.randint(model.config.vocab_size, (len(texts),))
            texts = [[*text, token] for text, token in zip(texts, last.tolist(), strict=True)]


@pytest.mark.parametrize("side", SIDES)
def test_rows_may_leave_and_double_and_take_their_padding_with_them(side):
    model = gpt(seed=2)
    token_ids, is_real = padded(PROMPTS, side)
    with torch.no_grad():
        state, first = model.start(token_ids, is_real=is_real)
        _next(model, state, first)
        state.select(torch.tensor([2, 1, 2]))
        assert state.cache.n_tokens == 3  # the longest of those that are left
        assert state.history.tolist() == [[-1, -1, 10], [4, 3, 5], [-1, -1, 10]]
        expected = torch.stack([next_distribution(model, text) for text in ([10, 8], [4, 3, 5, 9], [10, 3])])
        found = _next(model, state, torch.tensor([8, 9, 3]))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_the_model_s_positions_limit_each_row_by_its_own_length(search, side):
    """Eight positions: a prompt of n tokens may get 9 - n more, since the last one needs no position."""
    model = gpt(seed=1, max_len=8)

    def run(token_ids, is_real):
        options = {"is_real": is_real, "max_new_tokens": 50}
        if search == "greedy":
            return greedy_search(model, token_ids, **options)
        if search == "beam":
            return [found[0] for found in beam_search(model, token_ids, beam_size=3, **options)]
        return sample(model, token_ids, generator=torch.Generator().manual_seed(5), **options)

    together = run(*padded(PROMPTS, side))
    assert [len(found.token_ids) for found in together] == [9 - len(prompt) for prompt in PROMPTS]
    assert {(found.ended_by, found.is_finished) for found in together} == {("max_len", False)}
    (alone,) = run(torch.tensor(PROMPTS[:1]), None)
    assert alone.token_ids == together[0].token_ids
    if search != "sample":  # there only the first row draws the same numbers alone
        for prompt, found in zip(PROMPTS, together, strict=True):
            assert run(torch.tensor([prompt]), None)[0].token_ids == found.token_ids


def test_prompts_that_do_not_suit_are_refused(as_readers_run_it):
    model = gpt(max_len=8)
    with pytest.raises(ValueError, match="prompt 1 has no real token"):
        greedy_search(model, torch.tensor([[5], [6]]), is_real=torch.tensor([[True], [False]]), max_new_tokens=2)
    with pytest.raises(ValueError, match="prompt 0 has no real token"):
        greedy_search(model, torch.empty(1, 0, dtype=torch.long), max_new_tokens=2)
    with pytest.raises(ValueError, match="prompt 0 has 9 tokens, more than the 8 positions this model knows"):
        greedy_search(model, torch.ones(1, 9, dtype=torch.long), max_new_tokens=2)
    with pytest.raises(ShapeError, match="axis 'tokens' is 2 in token_ids but 3 in is_real"):
        greedy_search(model, torch.tensor([[5, 6]]), is_real=torch.ones(1, 3, dtype=torch.bool), max_new_tokens=2)
    with pytest.raises(ShapeError, match="must have 2 axes"):
        greedy_search(model, torch.tensor([5, 6]), max_new_tokens=2)


@pytest.mark.parametrize("search", [greedy_search, beam_search, lambda *a, **o: list(stream(*a, **o))])
def test_each_kind_of_model_is_told_what_it_needs(search):
    prompt = torch.tensor([[5, 6]])
    with pytest.raises(ValueError, match="put the start token there, not in bos_id"):
        search(gpt(), prompt, bos_id=2, max_new_tokens=2)
    with pytest.raises(ValueError, match="give its id as bos_id"):
        search(translator(), prompt, max_new_tokens=2)
    with pytest.raises(ValueError, match="leave is_real out"):
        search(translator(), prompt, bos_id=2, is_real=prompt > 0, max_new_tokens=2)


@pytest.mark.parametrize("search", [greedy_search, beam_search, stream])
@pytest.mark.parametrize("wrong", [-1, 11])
def test_marks_outside_the_vocabulary_are_refused(search, wrong):
    prompt = torch.tensor([[5, 6]])
    with pytest.raises(ValueError, match=f"eos_id must be a token id .* from 0 to 10, but is {wrong}"):
        search(gpt(), prompt, eos_id=[3, wrong], max_new_tokens=2)
    with pytest.raises(ValueError, match=f"bos_id must be a token id .* from 0 to 10, but is {wrong}"):
        list(search(translator(), prompt, bos_id=wrong, max_new_tokens=2))


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("chunk_size", [1, 3, 9])
def test_after_a_prompt_that_was_read_once_comes_what_would_come_after_both(positions, chunk_size):
    model = gpt(seed=1, positions=positions)
    beginning = [8, 2, 6, 6, 1]
    prompt = read_prompt(model, torch.tensor([beginning]), chunk_size=chunk_size)
    token_ids, is_real = padded(PROMPTS, "strewn")
    for _ in range(2):  # it can be used again
        found = greedy_search(model, token_ids, is_real=is_real, eos_id=EOS, max_new_tokens=9, prefix=prompt)
        for hypothesis, own in zip(found, PROMPTS, strict=True):
            expected = greedy_by_hand(model, beginning + own, 9, [EOS])
            assert list(hypothesis.token_ids) == [token for token in expected if token != EOS]
    assert prompt.cache.n_tokens == 5


def test_a_prompt_that_was_read_takes_room():
    model = gpt(max_len=8)
    prompt = read_prompt(model, torch.tensor([[8, 2, 6, 6, 1]]))
    (hypothesis,) = greedy_search(model, torch.tensor([[5, 6]]), max_new_tokens=9, prefix=prompt)
    assert (len(hypothesis.token_ids), hypothesis.ended_by) == (2, "max_len")
    with pytest.raises(ValueError, match="more than the 3 positions"):
        greedy_search(model, torch.tensor([[5, 6, 7, 8]]), max_new_tokens=9, prefix=prompt)
    with pytest.raises(ValueError, match="only a decoder-only model takes a prefix"):
        greedy_search(translator(), torch.tensor([[5]]), bos_id=2, max_new_tokens=2, prefix=prompt)
    with pytest.raises(ValueError, match="chunk_size must be at least 1"):
        read_prompt(model, torch.tensor([[1]]), chunk_size=0)
