"""Samples against the exact distribution: frequencies, support, and what a draw may depend on."""

from __future__ import annotations

import math

import pytest
import torch
from einops import repeat

from tests.generation.tiny import EOS, PROMPTS, all_sequences, gpt, padded
from ttutor.generation import Sampler, greedy_search, sample

SMALL = 5  # tokens, so that all pairs of them can be counted


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draws(model, prompt: list[int], n: int, **options) -> list[tuple[int, ...]]:
    token_ids = repeat(torch.tensor(prompt), "tokens -> copies tokens", copies=n)
    return [found.token_ids for found in sample(model, token_ids, generator=seeded(), **options)]


def assert_drawn_from(found: list[tuple[int, ...]], exact: dict[tuple[int, ...], float]) -> None:
    """Pearson's test: the statistic is chi-squared, so beyond mean + 5 deviations it is no matter of chance.

    Outcomes that are expected less than five times are counted together; what cannot happen must not happen.
    """
    assert sum(exact.values()) == pytest.approx(1)
    assert set(found) <= {new for new, p in exact.items() if p > 0}
    common = [new for new, p in exact.items() if p * len(found) >= 5]
    pairs = [(sum(one == new for one in found), exact[new] * len(found)) for new in common]
    rest = len(found) - sum(counted for counted, _ in pairs)
    if (expected_rest := len(found) - sum(expected for _, expected in pairs)) > 1:
        pairs.append((rest, expected_rest))
    statistic = sum((counted - expected) ** 2 / expected for counted, expected in pairs)
    freedom = len(pairs) - 1
    assert freedom > 0
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_pairs_of_tokens_come_as_often_as_the_model_says():
    model = gpt(seed=4, vocab_size=SMALL)
    exact = {new: math.exp(total) for new, total in all_sequences(model, [1, 2, 3], 2).items()}
    assert_drawn_from(draws(model, [1, 2, 3], 2000, max_new_tokens=2), exact)


def test_temperature_comes_before_top_k_and_top_k_before_top_p():
    """Of the best three at temperature 2, renormalised, those that make 0.6 together."""
    p = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05], dtype=torch.float64)
    bent = p.sqrt()[:3] / p.sqrt()[:3].sum()
    assert bent[0] < 0.6 <= bent[:2].sum()
    expected = torch.tensor([*(bent[:2] / bent[:2].sum()), 0, 0, 0], dtype=torch.float64)
    found = Sampler(seeded(), temperature=2.0, top_k=3, top_p=0.6).distribution(p.log()[None]).exp()
    torch.testing.assert_close(found[0], expected)


def test_one_best_token_or_the_smallest_nucleus_is_greedy_search():
    token_ids, is_real = padded(PROMPTS, "left")
    options = {"is_real": is_real, "eos_id": EOS, "max_new_tokens": 8}
    expected = greedy_search(gpt(seed=1), token_ids, **options)
    assert sample(gpt(seed=1), token_ids, generator=seeded(), top_k=1, **options) == expected
    assert sample(gpt(seed=1), token_ids, generator=seeded(), top_p=1e-9, **options) == expected


def test_the_same_seed_gives_the_same_samples_and_another_seed_others():
    token_ids, is_real = padded(PROMPTS, "left")
    options = {"is_real": is_real, "max_new_tokens": 8, "temperature": 2.0}
    first, again, other = (sample(gpt(seed=1), token_ids, generator=seeded(seed), **options) for seed in (1, 1, 2))
    assert first == again
    assert all(a.token_ids != b.token_ids for a, b in zip(first, other, strict=True))


def test_the_global_random_state_is_neither_read_nor_moved():
    before = torch.get_rng_state()
    first = sample(gpt(seed=1), torch.tensor([[5]]), generator=seeded(), max_new_tokens=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert sample(gpt(seed=1), torch.tensor([[5]]), generator=seeded(), max_new_tokens=5) == first


@pytest.mark.parametrize("side", ["left", "right", "strewn"])
def test_a_row_draws_the_same_whatever_the_other_rows_hold(side):
    model = gpt(seed=1)
    options = {"eos_id": 8, "max_new_tokens": 10, "temperature": 3.0}
    token_ids, is_real = padded(PROMPTS, side)
    together = sample(model, token_ids, generator=seeded(), is_real=is_real, **options)
    assert len({len(found.token_ids) for found in together}) > 1  # rows leave the batch at different steps
    for row, prompt in enumerate(PROMPTS):
        others = [[9] * 6] * len(PROMPTS)
        others[row] = prompt
        token_ids, is_real = padded(others, side)
        found = sample(model, token_ids, generator=seeded(), is_real=is_real, **options)[row]
        assert found.token_ids == together[row].token_ids
    (alone,) = sample(model, torch.tensor(PROMPTS[:1]), generator=seeded(), **options)
    assert alone.token_ids == together[0].token_ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "use greedy_search"),
        ({"temperature": -1.0}, "temperature must be positive and finite, but is -1.0"),
        ({"top_k": 0}, "k must be at least 1"),
        ({"top_p": 0.0}, "p must be above 0 and at most 1"),
        ({"top_p": 1.5}, "p must be above 0 and at most 1"),
    ],
)
def test_settings_out_of_range_are_refused_before_the_model_runs(options, message):
    with pytest.raises(ValueError, match=message):
        sample(torch.nn.Identity(), torch.tensor([[5]]), generator=seeded(), max_new_tokens=2, **options)
