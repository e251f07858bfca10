"""A decoder prepared for one text writes what the model writes, and knows which models it cannot stand for."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from ttutor.cache import DecoderCache
from ttutor.inside import capture
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import RotaryScaling
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.variants.modern_decoder import ModernDecoder, ModernDecoderConfig
from ttutor.variants.modern_decoder.one_text import OneText, can_be_fast, has_eight_bits, prepared

SIZES: dict[str, Any] = {"vocab_size": 50, "d_model": 32, "n_heads": 4, "n_layers": 3, "d_ff": 48}
PLAIN: dict[str, dict[str, Any]] = {
    "all heads": {},
    "grouped": {"n_kv_heads": 2},
    "one pair of keys": {"n_kv_heads": 1, "d_head": 6},
    "tied": {"tie_embeddings": True, "scale_embeddings": True},
    "slow turns": {"rotary_scaling": RotaryScaling(factor=4.0), "rotary_base": 500.0},
    "another scale and gate": {"d_scale": 3, "activation": "gelu", "norm_eps": 1e-3},
}
OTHERS: dict[str, dict[str, Any]] = {
    "window": {"window": 3},
    "norm after": {"norm_place": "after"},
    "norm on both sides": {"norm_place": "both"},
    "norm of each head": {"qk_norm": "each head"},
    "norm of all heads": {"qk_norm": "all heads"},
    "capped scores": {"score_cap": 5.0},
    "capped logits": {"logit_cap": 5.0},
    "sinks": {"has_sinks": True},
    "bias": {"attention_bias": True},
    "experts": {"experts": {"n_experts": 2, "n_chosen": 1, "d_ff": 8}},
}


def make(**changes: Any) -> ModernDecoder:
    torch.manual_seed(0)
    model = ModernDecoder(ModernDecoderConfig(**{**SIZES, **changes})).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


@torch.inference_mode()
@pytest.mark.parametrize("changes", PLAIN.values(), ids=PLAIN)
def test_every_token_has_the_models_logits(changes: dict[str, Any]) -> None:
    model, ids = make(**changes), torch.randint(50, (1, 11))
    assert can_be_fast(model)
    cache, writer = DecoderCache(3), OneText(model)
    model.decode(ids[:, :4], None, cache)  # the prompt is read by the model
    found = torch.stack([writer.step(int(one), cache) for one in ids[0, 4:]], dim=1)
    torch.testing.assert_close(found, model(ids)[:, 4:], rtol=1e-4, atol=1e-4)
    assert cache.n_tokens == 11
    # The model goes on with what was written.
    more = torch.randint(50, (1, 2))
    torch.testing.assert_close(
        model(more, None, cache), model(torch.cat([ids, more], dim=1))[:, -2:], rtol=1e-4, atol=1e-4
    )


@torch.inference_mode()
@pytest.mark.skipif(not has_eight_bits(), reason="this PyTorch has no product by weights of eight bits")
@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 2, "tie_embeddings": True}], ids=str)
def test_eight_bits_change_logits_a_little(changes: dict[str, Any]) -> None:
    model, ids = make(**changes), torch.randint(50, (40,))
    caches = DecoderCache(3), DecoderCache(3)
    whole, rounded = OneText(model), OneText(model, eight_bits=True)
    expected = torch.cat([whole.step(int(one), caches[0]) for one in ids])
    found = torch.cat([rounded.step(int(one), caches[1]) for one in ids])
    error = (found - expected).square().mean().sqrt() / expected.std()
    assert 0.001 < error < 0.05


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_model_with_other_parts_is_left_alone(changes: dict[str, Any]) -> None:
    assert not can_be_fast(make(**changes))
    assert prepared(make(**changes), eight_bits=False) is None


def test_what_is_watched_or_changed_is_left_alone() -> None:
    model = make()
    with capture(model, "layers.1.self_attention.weights"):
        assert not can_be_fast(model)
    with capture(model, "layers.1.feed_forward"):
        assert not can_be_fast(model)
    assert can_be_fast(model)
    assert not can_be_fast(model.double())
    assert not can_be_fast(GPT(GPTConfig(**SIZES, max_len=9)))
    other = make()
    other.layers[2].self_attention = MultiHeadAttention(32, 4)
    assert not can_be_fast(other)


def test_a_model_is_prepared_once_and_anew_when_it_has_changed() -> None:
    model = make()
    first = prepared(model, eight_bits=False)
    assert first is not None
    assert prepared(model, eight_bits=False) is first
    assert prepared(model, eight_bits=True) is not first
    with torch.no_grad():
        model.layers[0].feed_forward.narrow.weight.mul_(2)
    second = prepared(model, eight_bits=False)
    assert second is not first
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None, "what is prepared keeps a model alive that nobody needs"
