"""Soft caps, sinks, and norms of queries and keys: against the published models' own attention layers."""

import pytest
import torch
from transformers import Gemma2Config, GptOssConfig, Qwen3Config
from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from tests.interop.oracles import with_precise_norms
from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import KeyValueCache
from ttutor.efficient import efficient_attention
from ttutor.errors import ShapeError
from ttutor.inside import capture
from ttutor.layers import RMSNorm
from ttutor.masks import CAUSAL, Mask, combine_masks
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import RotaryPositions
from ttutor.variants.scores import AttentionSinks, SoftCap, soft_cap

D_MODEL, N_HEADS, N_KV_HEADS, D_HEAD, N_TOKENS = 18, 6, 2, 4, 7
SIZES = {
    "hidden_size": D_MODEL,
    "num_attention_heads": N_HEADS,
    "num_key_value_heads": N_KV_HEADS,
    "head_dim": D_HEAD,
    "num_hidden_layers": 1,
    "attn_implementation": "eager",
    "attention_bias": False,
}
NAMES = {"to_query": "q_proj", "to_key": "k_proj", "to_value": "v_proj", "to_output": "o_proj"}
CLOSE = {"rtol": 0, "atol": 1e-12}


def their_layer(name):
    """A layer of theirs with random weights, in float64."""
    if name == "gemma 2":
        layer = Gemma2Attention(Gemma2Config(**SIZES, attn_logit_softcapping=1.5, query_pre_attn_scalar=5), 0)
    elif name == "gpt-oss":
        layer = GptOssAttention(GptOssConfig(**SIZES), 0)
    else:
        layer = with_precise_norms(Qwen3Attention(Qwen3Config(**SIZES, rms_norm_eps=0.1), 0))
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer.double().eval()


def our_layer(name, theirs, attend):
    """Ours, with the same weights."""
    parts = {
        "gemma 2": {"scale": 5**-0.5, "attend": SoftCap(1.5, attend=attend)},
        "gpt-oss": {"attend": AttentionSinks(N_HEADS, attend=attend)},
        "qwen 3": {"make_norm": lambda d_head: RMSNorm(d_head, eps=0.1), "attend": attend},
    }[name]
    ours = MultiHeadAttention(D_MODEL, N_HEADS, N_KV_HEADS, d_head=D_HEAD, bias=False, **parts).double().eval()
    with torch.no_grad():
        for our_name, their_name in NAMES.items():
            getattr(ours, our_name).weight.copy_(getattr(theirs, their_name).weight)
        if name == "gpt-oss":
            ours.attend.sinks.copy_(theirs.sinks)
        if name == "qwen 3":
            ours.query_norm.gain.copy_(theirs.q_norm.weight)
            ours.key_norm.gain.copy_(theirs.k_norm.weight)
    return ours


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, efficient_attention])
@pytest.mark.parametrize("name", ["gemma 2", "gpt-oss", "qwen 3"])
@pytest.mark.parametrize("window", [None, 3])
def test_equals_the_published_layer_and_in_chunks_with_a_cache(name, attend, window, monkeypatch):
    theirs, hidden = their_layer(name), torch.randn(2, N_TOKENS, D_MODEL, dtype=torch.float64)
    ours = our_layer(name, theirs, attend)
    real = torch.tensor([[True] * N_TOKENS, [False, False, *[True] * (N_TOKENS - 2)]])[:, None, None]
    mask = combine_masks(CAUSAL, Mask(window=window, dense=real))
    angles = torch.arange(N_TOKENS)[:, None] * 10_000.0 ** (-torch.arange(0, D_HEAD, 2).double() / D_HEAD)
    # gpt-oss writes each angle once, the others twice.
    angles = angles[None] if name == "gpt-oss" else angles.repeat(1, 2)[None]
    hidden_from_whom = torch.zeros(2, 1, N_TOKENS, N_TOKENS).double()
    hidden_from_whom = hidden_from_whom.masked_fill(
        ~mask.materialise(N_TOKENS, N_TOKENS), torch.finfo(torch.double).min
    )
    # Theirs would take the softmax in float32, whatever the weights.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda scores, dim, dtype: scores.softmax(dim=dim))
    expected, _ = theirs(hidden, (angles.cos(), angles.sin()), hidden_from_whom)
    positions = torch.arange(N_TOKENS)[None]
    rotary = RotaryPositions(D_HEAD)
    mine = ours(hidden, mask=mask, rotation=rotary(positions))
    keep = real[:, 0, 0]  # what padding itself sees is nobody's business
    torch.testing.assert_close(mine[keep], expected[keep], **CLOSE)

    cache, parts = KeyValueCache(), []
    for start, end in ((0, 4), (4, 5), (5, N_TOKENS)):
        part = combine_masks(Mask(causal=True, window=window), real[..., :end])
        parts.append(ours(hidden[:, start:end], mask=part, cache=cache, rotation=rotary(positions[:, start:end])))
    torch.testing.assert_close(torch.cat(parts, dim=1), mine, **CLOSE)


def test_cap_and_sink_compose_and_have_gradients():
    query, key, value = (torch.randn(2, 3, 5, 8, dtype=torch.float64) for _ in range(3))
    bias = torch.randn(3, 5, 5, dtype=torch.float64)
    sinks = AttentionSinks(3, attend=SoftCap(0.5)).double()
    torch.nn.init.normal_(sinks.sinks, std=0.1)
    scores = soft_cap(query @ key.mT / 8**0.5, 0.5) + bias
    # The inner function caps the score of the sink's own key, which is zero, before the sink is added to it.
    columns = torch.cat([scores, sinks.sinks.reshape(3, 1, 1).expand(2, 3, 5, 1)], dim=-1)
    expected = columns.softmax(dim=-1)[..., :-1] @ value
    context = sinks(query, key, value, bias=bias)
    torch.testing.assert_close(context, expected, **CLOSE)
    context.square().sum().backward()
    assert (sinks.sinks.grad != 0).all()


def test_a_query_that_sees_nothing_gets_nothing():
    query, key, value = (torch.randn(1, 2, 3, 4) for _ in range(3))
    nobody = torch.zeros(3, 3, dtype=torch.bool)
    assert not AttentionSinks(2)(query, key, value, nobody).any()
    assert not SoftCap(1.0)(query, key, value, nobody).any()


def test_what_does_not_fit_is_refused():
    tensor = torch.randn(1, 2, 3, 4)
    with pytest.raises(ValueError, match="cap must be positive and finite, but is 0.0"):
        SoftCap(0.0)
    with pytest.raises(ShapeError, match="mask has shape"):
        AttentionSinks(2)(tensor, tensor, tensor, torch.ones(3, 5, dtype=torch.bool))
    layer = MultiHeadAttention(8, 2, attend=AttentionSinks(2))
    with pytest.raises(ValueError, match="does not use softmax weights"), capture(layer, "weights"):
        layer(torch.randn(1, 3, 8))
