"""Llama's properties, its sizes, and the scaling of its rotary positions; parity stands in tests/interop."""

from __future__ import annotations

import pytest
import torch

from tests.torch_twins import randomised
from ttutor.cache import DecoderCache
from ttutor.errors import ShapeError
from ttutor.positions import RotaryScaling, rotary_frequencies
from ttutor.transformer import account
from ttutor.variants.llama import Llama, LlamaConfig

VOCAB = 23
CLOSE = {"rtol": 0, "atol": 1e-11}


def small(**changes) -> LlamaConfig:
    sizes = {"vocab_size": VOCAB, "d_model": 12, "n_heads": 6, "n_kv_heads": 2, "d_head": 4, "n_layers": 2, "d_ff": 20}
    return LlamaConfig(**{**sizes, **changes})


def build(**changes) -> Llama:
    return randomised(Llama(small(**changes)))


@pytest.fixture(params=[None, 3], ids=["all", "window"])
def model(request):
    return build(window=request.param)


@pytest.fixture
def token_ids():
    return torch.randint(VOCAB, (3, 8))


def padded(side: str) -> torch.Tensor:
    """Which tokens of three rows of eight are real."""
    place, n_real = torch.arange(8), torch.tensor([[8], [5], [2]])
    start = {"right": 0, "left": 8 - n_real, "both": (8 - n_real) // 2}[side]
    return (place >= start) & (place < start + n_real)


def test_no_leak_from_the_future(model, token_ids):
    before = model(token_ids)
    for t in range(1, 8):
        changed = token_ids.clone()
        changed[:, t] = (changed[:, t] + 1) % VOCAB
        after = model(changed)
        assert torch.equal(before[:, :t], after[:, :t])
        assert not torch.isclose(before[:, t], after[:, t]).all(dim=-1).any()


def test_a_window_is_seen_through_once_for_each_layer(token_ids):
    model = build(window=3)
    changed = token_ids.clone()
    changed[:, 0] = (changed[:, 0] + 1) % VOCAB
    before, after = model(token_ids), model(changed)
    reach = 2 * (3 - 1)  # layers times steps back
    assert torch.equal(before[:, reach + 1 :], after[:, reach + 1 :])
    assert not torch.isclose(before[:, reach], after[:, reach]).all(dim=-1).any()


@pytest.mark.parametrize("side", ["right", "left", "both"])
def test_cached_equals_uncached_for_ragged_batches(model, token_ids, side):
    is_real, cache, chunks = padded(side), DecoderCache(2), [3, 1, 1, 3]
    parts = [
        model(ids, real, cache)
        for ids, real in zip(token_ids.split(chunks, dim=1), is_real.split(chunks, dim=1), strict=True)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1)[is_real], model(token_ids, is_real)[is_real], **CLOSE)


def test_a_ragged_batch_goes_on_after_its_padding(model, token_ids):
    """A row that was padded on the right gets its next token at its own next place, in the window too."""
    cache, is_real, new = DecoderCache(2), padded("right"), torch.tensor([[4], [5], [6]])
    model(token_ids, is_real, cache)
    step = model(new, cache=cache)
    for row in range(3):
        alone = model(torch.cat([token_ids[row, is_real[row]], new[row]])[None])
        torch.testing.assert_close(step[row, -1], alone[0, -1], **CLOSE)


def test_caches_with_windows_give_the_same_and_keep_what_was_reckoned(token_ids):
    model = build(n_layers=4, window=3, global_every=2)
    cache, plain, is_real = DecoderCache(4, windows=model.config.windows), DecoderCache(4), padded("left")
    for chunk, real in zip(token_ids.split([3, 1, 1, 3], dim=1), is_real.split([3, 1, 1, 3], dim=1), strict=True):
        found, expected = model(chunk, real, cache), model(chunk, real, plain)
        torch.testing.assert_close(found[real], expected[real], **CLOSE)
    costs = account(model.config, n_tokens=8, batch=3, dtype=torch.float64)
    assert cache.n_bytes == costs.rolling_cache_bytes
    assert plain.n_bytes == costs.cache_bytes > cache.n_bytes


def test_scaling_by_turns_spares_the_fast_pairs():
    frequencies = rotary_frequencies(128, base=500_000.0)
    slowed = RotaryScaling(factor=8.0, trained_len=8192)(frequencies) / frequencies
    turns = 8192 * frequencies / (2 * torch.pi)
    assert torch.equal(slowed[turns >= 4], torch.ones_like(slowed[turns >= 4]))
    torch.testing.assert_close(slowed[turns <= 1], torch.full_like(slowed[turns <= 1], 1 / 8), **CLOSE)
    between = slowed[(turns > 1) & (turns < 4)]
    assert len(between) > 2
    assert ((between > 1 / 8) & (between < 1)).all()
    assert (slowed.diff() <= 0).all()
    torch.testing.assert_close(RotaryScaling(factor=1.0, trained_len=8192)(frequencies), frequencies, **CLOSE)


@pytest.mark.usefixtures("as_readers_run_it")
def test_impossible_scalings_and_heads_are_named():
    with pytest.raises(ValueError, match=r"factor must be at least 1 \(factor=0.5\); few_turns must be below"):
        RotaryScaling(factor=0.5, few_turns=4.0)
    with pytest.raises(ValueError, match="features in pairs, so d_head must be even, but is 3"):
        Llama(small(d_head=3))


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_inputs_are_named(token_ids):
    model = build()
    with pytest.raises(ShapeError, match="axis 'tokens' is 8 in token_ids but 7 in is_real"):
        model(token_ids, torch.ones(3, 7, dtype=torch.bool))
    cache = DecoderCache(3)
    with pytest.raises(ValueError, match="this decoder has 2 layers, but the cache 3"):
        model(token_ids, cache=cache)
    assert cache.n_tokens == 0
