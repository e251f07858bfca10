"""Multi-head latent attention: against DeepSeek-V3's layer, and its two forms against each other."""

from functools import partial

import pytest
import torch
from torch import nn
from transformers import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

from tests.interop.oracles import with_precise_norms
from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import KeyValueCache
from ttutor.efficient import efficient_attention
from ttutor.errors import ShapeError
from ttutor.layers import GatedFeedForward, PreNorm, RMSNorm
from ttutor.masks import CAUSAL
from ttutor.positions import RotaryPositions
from ttutor.variants.latent import LatentAttention
from ttutor.variants.modern_decoder import DecoderBlock

D_MODEL, N_HEADS, D_HEAD, D_ROTARY, D_VALUE, D_LATENT, N_TOKENS = 10, 3, 5, 4, 7, 6, 8
SIZES = {"d_head": D_HEAD, "d_rotary": D_ROTARY, "d_value": D_VALUE, "d_latent": D_LATENT}


def their_layer(d_query_latent):
    config = DeepseekV3Config(
        hidden_size=D_MODEL,
        num_attention_heads=N_HEADS,
        num_key_value_heads=N_HEADS,
        q_lora_rank=d_query_latent,
        kv_lora_rank=D_LATENT,
        qk_rope_head_dim=D_ROTARY,
        qk_nope_head_dim=D_HEAD,
        v_head_dim=D_VALUE,
        attn_implementation="eager",
    )
    layer = with_precise_norms(DeepseekV3Attention(config, 0))
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.double()


def with_their_weights(theirs, d_query_latent):
    ours = LatentAttention(D_MODEL, N_HEADS, **SIZES, d_query_latent=d_query_latent).double()
    latent, rotary = theirs.kv_a_proj_with_mqa.weight.split([D_LATENT, D_ROTARY])
    by_head = theirs.kv_b_proj.weight.unflatten(0, (N_HEADS, D_HEAD + D_VALUE))
    weights = {
        "to_latent.0.weight": latent,
        "to_latent.1.gain": theirs.kv_a_layernorm.weight,
        "to_rotary_key.weight": rotary,
        "to_key.weight": by_head[:, :D_HEAD].flatten(0, 1),
        "to_value.weight": by_head[:, D_HEAD:].flatten(0, 1),
        "to_output.weight": theirs.o_proj.weight,
    }
    if d_query_latent is None:
        weights["to_query.weight"] = theirs.q_proj.weight
    else:
        weights["to_query_latent.0.weight"] = theirs.q_a_proj.weight
        weights["to_query_latent.1.gain"] = theirs.q_a_layernorm.weight
        weights["to_query.weight"] = theirs.q_b_proj.weight
    ours.load_state_dict(weights)
    return ours


def turns(start=0, end=N_TOKENS):
    return RotaryPositions(D_ROTARY, layout="interleaved")(torch.arange(start, end)[None])


@pytest.mark.parametrize("d_query_latent", [None, 9])
@pytest.mark.parametrize("absorbed", [False, True])
def test_equals_deepseek_v3(d_query_latent, absorbed, monkeypatch):
    theirs = their_layer(d_query_latent)
    ours = with_their_weights(theirs, d_query_latent)
    hidden = torch.randn(2, N_TOKENS, D_MODEL, dtype=torch.float64)
    angles = torch.arange(N_TOKENS)[:, None] * 10_000.0 ** (-torch.arange(0, D_ROTARY, 2).double() / D_ROTARY)
    angles = angles.repeat(1, 2)[None]
    ahead = torch.full((N_TOKENS, N_TOKENS), -torch.inf, dtype=torch.float64).triu(1)
    # Theirs would take the softmax in float32, whatever the weights.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda scores, dim, dtype: scores.softmax(dim=dim))
    expected, _ = theirs(hidden, (angles.cos(), angles.sin()), ahead)
    mine = ours(hidden, CAUSAL, rotation=turns(), absorbed=absorbed)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, efficient_attention])
def test_decoding_with_a_cache_equals_all_at_once(attend):
    ours = LatentAttention(D_MODEL, N_HEADS, **SIZES, attend=attend).double()
    hidden = torch.randn(2, N_TOKENS, D_MODEL, dtype=torch.float64)
    at_once, cache = ours(hidden, CAUSAL, rotation=turns()), KeyValueCache()
    parts = []
    for start, end in ((0, 3), (3, 5), (5, 6), (6, N_TOKENS)):
        parts.append(ours(hidden[:, start:end], CAUSAL, cache, rotation=turns(start, end)))
    torch.testing.assert_close(torch.cat(parts, dim=1), at_once, rtol=0, atol=1e-12)
    # A token leaves one latent vector and one rotary key, however many heads there are.
    assert [tuple(kept.shape) for kept in cache.read()] == [(2, 1, N_TOKENS, D_LATENT), (2, 1, N_TOKENS, D_ROTARY)]


def test_both_forms_have_the_same_gradients():
    ours = LatentAttention(D_MODEL, N_HEADS, **SIZES, d_query_latent=9).double()
    hidden = torch.randn(2, N_TOKENS, D_MODEL, dtype=torch.float64)
    gradients = []
    for absorbed in (False, True):
        loss = ours(hidden, CAUSAL, rotation=turns(), absorbed=absorbed).square().sum()
        gradients.append(torch.autograd.grad(loss, list(ours.parameters())))
    for plain, absorbed in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, absorbed)


def test_it_stands_where_multi_head_attention_stands():
    latent = LatentAttention(D_MODEL, N_HEADS, **SIZES)
    block = DecoderBlock(latent, GatedFeedForward(D_MODEL, 16), partial(PreNorm, D_MODEL, make_norm=RMSNorm)).double()
    hidden = torch.randn(1, N_TOKENS, D_MODEL, dtype=torch.float64)
    changed = hidden.clone()
    changed[:, 5] += 1
    before, after = block(hidden, rotation=turns()), block(changed, rotation=turns())
    assert torch.equal(before[:, :5], after[:, :5])
    assert ((before - after)[:, 5:].abs().amax(dim=-1) > 1e-6).all()


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in query but must be 10"):
        LatentAttention(D_MODEL, N_HEADS, **SIZES)(torch.randn(1, 2, 5), rotation=turns(0, 2))
