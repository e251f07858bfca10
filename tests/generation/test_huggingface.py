"""Whole searches against Hugging Face's `generate`, on a GPT-2 with the same random weights, in float64."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from tests.generation.tiny import PROMPTS, opinionated, padded
from ttutor.generation import beam_search, greedy_search, without_repeated_ngrams
from ttutor.interop import from_huggingface

VOCAB, PAD = 23, 22
NEW = 9


@pytest.fixture(scope="module")
def theirs(transformers):
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=VOCAB,
        n_positions=24,
        n_embd=12,
        n_layer=2,
        n_head=3,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=PAD,
        attn_implementation="eager",
    )
    return opinionated(transformers.GPT2LMHeadModel(config))


@pytest.fixture(scope="module")
def ours(theirs):
    return from_huggingface(theirs)


@pytest.fixture
def batch():
    """They take padding on the left only."""
    return padded(PROMPTS, "left", junk=PAD)


def generate(theirs, batch, **options) -> list[list[int]]:
    token_ids, is_real = batch
    found = theirs.generate(
        token_ids, attention_mask=is_real.long(), max_new_tokens=NEW, do_sample=False, pad_token_id=PAD, **options
    )
    return found[:, token_ids.shape[1] :].tolist()


def common_tokens(rows: list[list[int]]) -> list[int]:
    """Two tokens that come in the middle of what is generated, to serve as end marks."""
    middle = [token for row in rows for token in row[2:6]]
    return sorted(set(middle), key=lambda token: (-middle.count(token), token))[:2]


@pytest.mark.parametrize("side", ["left", "right", "strewn"])
def test_greedy_search_with_several_end_marks(ours, theirs, batch, side):
    free = generate(theirs, batch)
    ends = common_tokens(free)
    expected = generate(theirs, batch, eos_token_id=ends)
    assert expected != free
    token_ids, is_real = padded(PROMPTS, side, junk=PAD)
    found = greedy_search(ours, token_ids, is_real=is_real, eos_id=ends, max_new_tokens=NEW)
    for one, row in zip(found, expected, strict=True):
        length = next((i for i, token in enumerate(row) if token in ends), NEW)
        assert list(one.token_ids) == row[:length]
        assert one.is_finished == (length < NEW)


@pytest.mark.parametrize("size", [1, 2])
def test_greedy_search_without_repeated_ngrams(ours, theirs, size):
    """Of prompts without padding, since they count the padding as part of the text."""
    prompts = torch.tensor([[5, 6, 7], [4, 3, 5], [10, 9, 9]])
    batch = prompts, torch.ones_like(prompts, dtype=torch.bool)
    found = greedy_search(ours, prompts, filters=[partial(without_repeated_ngrams, size=size)], max_new_tokens=NEW)
    expected = generate(theirs, batch, no_repeat_ngram_size=size)
    assert [list(one.token_ids) for one in found] == expected
    assert expected != generate(theirs, batch)


def test_all_hypotheses_of_a_beam_in_order(ours, theirs, batch):
    """Without end marks, where both rank by the same rule."""
    token_ids, is_real = batch
    expected = generate(theirs, batch, num_beams=4, num_return_sequences=4, length_penalty=0.0)
    found = beam_search(ours, token_ids, is_real=is_real, max_new_tokens=NEW, beam_size=4, alpha=0.0)
    assert [list(one.token_ids) for beam in found for one in beam] == expected
