"""T5's properties and sizes, and that it learns from damaged text; parity stands in tests/interop."""

from __future__ import annotations

import pytest
import torch

from tests.torch_twins import randomised
from ttutor.cache import DecoderCache
from ttutor.errors import ShapeError
from ttutor.masks import padding_mask
from ttutor.variants.t5 import T5, T5Block, T5Config

VOCAB, PAD = 23, 0
CLOSE = {"rtol": 0, "atol": 1e-11}


def small(**changes) -> T5Config:
    sizes = {"vocab_size": VOCAB, "d_model": 12, "d_head": 5, "n_heads": 3, "n_layers": 2, "d_ff": 20}
    return T5Config(**{**sizes, "n_buckets": 8, "max_distance": 6, "dropout": 0.0, **changes})


def build(**changes) -> T5:
    return randomised(T5(small(**changes)))


@pytest.fixture(params=["relu", "geglu"])
def model(request):
    return build(feed_forward=request.param, tie_embeddings=request.param == "relu")


@pytest.fixture
def source_ids():
    return torch.tensor([[5, 6, 7, 8, 9, 3, 1], [4, 5, 6, 1, PAD, PAD, PAD]])


@pytest.fixture
def target_ids():
    return torch.tensor([[PAD, 10, 11, 12, 13], [PAD, 14, 15, 16, 17]])


def test_no_leak_from_the_future(model, source_ids, target_ids):
    before = model(source_ids, target_ids)
    for t in range(1, 5):
        changed = target_ids.clone()
        changed[:, t] = 20
        after = model(source_ids, changed)
        assert torch.equal(before[:, :t], after[:, :t])
        assert not torch.isclose(before[:, t], after[:, t]).all(dim=-1).any()


def test_a_ragged_batch_goes_on_after_its_padding(model, source_ids, target_ids):
    memory, memory_mask = model.encode(source_ids), padding_mask(source_ids, PAD)
    cache, is_real = DecoderCache(2), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    model.decode(target_ids, memory, memory_mask, cache, is_real=is_real)
    step = model.decode(torch.tensor([[4], [5]]), memory, memory_mask, cache)
    short = model.decode(torch.tensor([[PAD, 14, 5]]), memory[1:], memory_mask[1:])
    torch.testing.assert_close(step[1], short[0, -1:], **CLOSE)


@pytest.mark.usefixtures("as_readers_run_it")
def test_wrong_inputs_are_named(source_ids, target_ids):
    model = build()
    with pytest.raises(ShapeError, match="axis 'batch' is 2 in source_ids but 1 in target_ids"):
        model(source_ids, target_ids[:1])
    with pytest.raises(ShapeError, match="axis 'tokens' is 5 in target_ids but 7 in is_real"):
        model(source_ids, target_ids, is_real=source_ids != PAD)
    cache = DecoderCache(3)
    with pytest.raises(ValueError, match="this decoder has 2 layers, but the cache 3"):
        model.decode(target_ids, model.encode(source_ids), cache=cache)
    assert cache.n_tokens == 0
    with pytest.raises(ValueError, match="cross_attention is True and memory is NoneType"):
        T5Block(12, 3, 20, cross_attention=True)(torch.zeros(2, 5, 12))
