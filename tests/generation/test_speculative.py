"""Speculative decoding: its law in closed form, by counting sentences, and against sampling without a draft."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch

from tests.generation.tiny import PROMPTS, gpt, greedy_by_hand, padded
from ttutor.cache import DecoderCache
from ttutor.errors import ShapeError
from ttutor.generation import (
    DecoderOnly,
    accepted_share,
    greedy_search,
    leftover,
    speculative_batch,
    speculative_sample,
)


class Bigrams(DecoderOnly):
    """A language with few sentences: the next token depends on the last one alone."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.tensor(table, dtype=torch.float64)
        self.config = SimpleNamespace(n_layers=0, vocab_size=len(table), max_len=math.inf)

    def decode(self, token_ids, is_real, cache):
        cache.extend(torch.ones_like(token_ids, dtype=torch.bool))
        return token_ids

    def project(self, token_ids):
        return self.table[token_ids].log()


def test_the_law_of_one_token_is_the_large_models():
    wanted, drafted = torch.randn(2, 40, 7, dtype=torch.float64).softmax(dim=-1)
    wanted[0] = drafted[0]  # a perfect draft
    kept = drafted * (wanted / drafted).clamp(max=1)
    torch.testing.assert_close(accepted_share(wanted, drafted), kept.sum(dim=-1))
    law = kept + (1 - kept.sum(dim=-1, keepdim=True)) * leftover(wanted, drafted)
    torch.testing.assert_close(law, wanted, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("n_rows", [1, 50])
def test_sentences_come_as_often_as_the_large_model_has_them(n_rows):
    model = Bigrams([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    draft = Bigrams([[0.6, 0.1, 0.3], [0.3, 0.6, 0.1], [1 / 3, 1 / 3, 1 / 3]])
    generator, n_runs, found = torch.Generator().manual_seed(0), 1000, {}
    prompts = torch.zeros(n_rows, 1, dtype=torch.long)
    options = {"generator": generator, "max_new_tokens": 3, "n_drafted": 2, "eos_id": 2}
    for made in (made for _ in range(n_runs // n_rows) for made in speculative_batch(model, draft, prompts, **options)):
        key = made.hypothesis.token_ids, made.hypothesis.is_finished
        found[key] = found.get(key, 0) + 1
    expected = {}
    for sentence in itertools.product(range(3), repeat=3):
        ends = sentence.index(2) + 1 if 2 in sentence else 3
        path = (0, *sentence[:ends])
        chance = math.prod(model.table[a, b].item() for a, b in itertools.pairwise(path))
        expected[tuple(t for t in path[1:] if t != 2), 2 in sentence] = chance
    assert sum(expected.values()) == pytest.approx(1)
    assert set(found) <= set(expected)
    squares = sum((found.get(key, 0) - n_runs * p) ** 2 / (n_runs * p) for key, p in expected.items())
    degrees = len(expected) - 1
    assert squares < degrees + 4 * math.sqrt(2 * degrees)  # four standard deviations above the mean of chi-square


@pytest.mark.parametrize("n_drafted", [1, 3])
def test_without_chance_it_is_greedy_search(n_drafted):
    model, draft, prompt = gpt(0), gpt(1), torch.tensor([[5, 6, 7]])
    (expected,) = greedy_search(model, prompt, max_new_tokens=12)
    made = speculative_sample(
        model,
        draft,
        prompt,
        generator=torch.Generator().manual_seed(0),
        max_new_tokens=12,
        n_drafted=n_drafted,
        top_k=1,
    )
    assert made.hypothesis.token_ids == expected.token_ids
    assert made.hypothesis.log_probability == pytest.approx(expected.log_probability)
    assert made.hypothesis.ended_by == expected.ended_by == "max_new_tokens"
    assert sum(made.kept) + len(made.kept) == 12
    assert sum(made.kept) < sum(made.drafted)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("side", ["left", "right", "strewn"])
def test_rows_that_keep_different_numbers_of_tokens_do_not_disturb_one_another(side, positions):
    model, draft = gpt(0, positions), gpt(1, positions)
    token_ids, is_real = padded(PROMPTS, side)
    made = speculative_batch(
        model, draft, token_ids, is_real=is_real, generator=torch.Generator(), max_new_tokens=15, n_drafted=3, top_k=1
    )
    assert len({one.kept for one in made}) > 1  # rows go at different speeds
    for prompt, one in zip(PROMPTS, made, strict=True):
        assert list(one.hypothesis.token_ids) == greedy_by_hand(model, prompt, 15)
        (alone,) = greedy_search(model, torch.tensor([prompt]), max_new_tokens=15)
        assert one.hypothesis.log_probability == pytest.approx(alone.log_probability, abs=1e-9)


def test_each_row_of_a_batch_ends_by_itself():
    model, draft = gpt(0, max_len=12), gpt(1)
    token_ids, is_real = padded(PROMPTS, "right")
    options = {"generator": torch.Generator(), "max_new_tokens": 9, "top_k": 1, "eos_id": 6}
    made = speculative_batch(model, draft, token_ids, is_real=is_real, **options)
    together = [(one.hypothesis.token_ids, one.hypothesis.ended_by) for one in made]
    alone = [greedy_search(model, torch.tensor([prompt]), max_new_tokens=9, eos_id=6)[0] for prompt in PROMPTS]
    assert together == [(one.token_ids, one.ended_by) for one in alone]
    assert {ended_by for _, ended_by in together} == {"eos_id", "max_new_tokens", "max_len"}


def test_all_of_a_perfect_draft_is_kept_to_the_models_last_position():
    model = gpt(0)
    made = speculative_sample(
        model, model, torch.tensor([[5, 6, 7]]), generator=torch.Generator().manual_seed(0), max_new_tokens=99
    )
    assert made.drafted == made.kept
    assert (made.hypothesis.ended_by, len(made.hypothesis.token_ids)) == ("max_len", 22)
    (alone,) = greedy_search(model, torch.tensor([[5, 6, 7]]), max_new_tokens=99)
    assert (alone.ended_by, len(alone.token_ids)) == ("max_len", 22)


def test_forgotten_tokens_leave_no_trace():
    model, token_ids = gpt(0), torch.tensor([[5, 6, 7, 8]])
    cache = DecoderCache(model.config.n_layers)
    with torch.inference_mode():
        model(token_ids[:, :2], cache=cache)
        model(torch.tensor([[9, 9, 9]]), cache=cache)
        cache.forget(3)
        torch.testing.assert_close(model(token_ids[:, 2:], cache=cache), model(token_ids)[:, 2:])
    with pytest.raises(ValueError, match="the cache holds 4 tokens and cannot forget 5"):
        cache.forget(5)


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused():
    options = {"generator": torch.Generator(), "max_new_tokens": 4}
    with pytest.raises(ShapeError, match="axis '1' is 2 in token_ids"):
        speculative_sample(gpt(0), gpt(1), torch.ones(2, 3, dtype=torch.long), **options)
    with pytest.raises(ValueError, match="one vocabulary, but their sizes are 11 and 12"):
        speculative_sample(gpt(0), gpt(0, vocab_size=12), torch.tensor([[5]]), **options)
    with pytest.raises(ValueError, match="prompt 0 has 25 tokens, more than the 24 positions"):
        speculative_sample(gpt(0), gpt(1), torch.ones(1, 25, dtype=torch.long), **options)
    with pytest.raises(ValueError, match="n_drafted must be at least 1, but is 0"):
        speculative_sample(gpt(0), gpt(1), torch.tensor([[5]]), n_drafted=0, **options)
    with pytest.raises(ValueError, match="prompt 0 has no real token"):
        speculative_sample(gpt(0), gpt(1), torch.ones(1, 0, dtype=torch.long), **options)
