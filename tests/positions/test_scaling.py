"""Frequencies for longer texts: against those that transformers computes from a published config."""

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ttutor.attention import scaled_dot_product_attention
from ttutor.positions import (
    RotaryPositions,
    RotaryScaling,
    YarnScaling,
    ntk_base,
    partial_frequencies,
    rotary_frequencies,
)

D_HEAD, TRAINED = 32, 512


def theirs(rope_type, d_head=D_HEAD, *, n_tokens=None, rope_theta=10_000.0, **values):
    """Their frequencies, and what they multiply cosine and sine by."""
    parameters = {"rope_type": rope_type, "rope_theta": rope_theta, **values}
    config = LlamaConfig(
        hidden_size=2 * d_head, num_attention_heads=2, max_position_embeddings=TRAINED, rope_parameters=parameters
    )
    return ROPE_INIT_FUNCTIONS[rope_type](config, "cpu", seq_len=n_tokens)


def assert_close(mine, expected):
    """Theirs are float32."""
    torch.testing.assert_close(mine, expected.double(), rtol=2e-6, atol=0)


@pytest.mark.parametrize("factor", [1.0, 4.0, 32.0])
def test_linear_and_llama_3(factor):
    assert_close(RotaryScaling(factor=factor)(rotary_frequencies(D_HEAD)), theirs("linear", factor=factor)[0])
    expected, _ = theirs(
        "llama3", factor=factor, original_max_position_embeddings=64, low_freq_factor=1.0, high_freq_factor=4.0
    )
    assert_close(RotaryScaling(factor=factor, trained_len=64)(rotary_frequencies(D_HEAD)), expected)


@pytest.mark.parametrize("times", [1, 3])
def test_dynamic_ntk(times):
    expected, _ = theirs("dynamic", factor=2.0, n_tokens=times * TRAINED)
    assert_close(rotary_frequencies(D_HEAD, ntk_base(D_HEAD, 2.0 * times - 1)), expected)


@pytest.mark.parametrize(
    ("base", "trained_len", "few_turns", "many_turns"),
    [(10_000.0, 512, 1.0, 32.0), (500_000.0, 4096, 2.0, 20.0), (10_000.0, 2048, 1.0, 1.001)],
)
@pytest.mark.parametrize("in_whole_pairs", [True, False])
def test_yarn(base, trained_len, few_turns, many_turns, in_whole_pairs):
    yarn = YarnScaling(
        factor=8.0,
        trained_len=trained_len,
        few_turns=few_turns,
        many_turns=many_turns,
        base=base,
        in_whole_pairs=in_whole_pairs,
    )
    expected, length = theirs(
        "yarn",
        rope_theta=base,
        factor=8.0,
        original_max_position_embeddings=trained_len,
        beta_slow=few_turns,
        beta_fast=many_turns,
        truncate=in_whole_pairs,
    )
    assert_close(yarn(rotary_frequencies(D_HEAD, base)), expected)
    # They lengthen queries and keys, we multiply the scores.
    query, key, value = (torch.randn(1, 2, 5, D_HEAD, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(
        scaled_dot_product_attention(query, key, value, scale=yarn.scale(D_HEAD)),
        scaled_dot_product_attention(length * query, length * key, value),
    )


def test_a_part_of_the_features_is_turned():
    vectors, positions = torch.randn(2, 3, 5, 8, dtype=torch.float64), torch.arange(5)[None]
    rotary = RotaryPositions(8, layout="interleaved", frequencies=partial_frequencies(8, 4))
    turned = rotary(positions)(vectors)
    alone = RotaryPositions(4, layout="interleaved")(positions)(vectors[..., :4])
    torch.testing.assert_close(turned, torch.cat([alone, vectors[..., 4:]], dim=-1), rtol=0, atol=0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="d_head must be even and at least 4, but is 2"):
        ntk_base(2, 4.0)
    with pytest.raises(ValueError, match="factor must be at least 1 and finite, but is 0.5"):
        ntk_base(8, 0.5)
    with pytest.raises(ValueError, match="d_head=4 and d_turned=6"):
        partial_frequencies(4, 6)
    with pytest.raises(
        ValueError, match=r"factor must be at least 1 \(factor=0.5\); few_turns must be below many_turns"
    ):
        YarnScaling(factor=0.5, trained_len=64, few_turns=3.0, many_turns=2.0)
