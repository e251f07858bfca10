"""Rotary positions on a grid: against Qwen2-VL's vision encoder, and that only offsets count."""

import pytest
import torch
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import (
    Qwen2VLVisionRotaryEmbedding,
    apply_rotary_pos_emb_vision,
)

from tests.interop.oracles import in_float64
from ttutor.positions import RotaryGrid

D_HEAD, ROWS, COLUMNS = 8, 3, 4


def vectors(n_tokens):
    return torch.randn(1, 2, n_tokens, D_HEAD, dtype=torch.float64)


def test_equals_the_published_one():
    rows, columns = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
    query, key = vectors(ROWS * COLUMNS), vectors(ROWS * COLUMNS)
    with in_float64():
        config = Qwen2VLVisionConfig(embed_dim=2 * D_HEAD, num_heads=2)
        rotary = Qwen2VLVisionRotaryEmbedding(config)
        cos, sin = rotary(query, torch.stack([rows.flatten(), columns.flatten()], dim=-1))
        expected = apply_rotary_pos_emb_vision(query[0].transpose(0, 1), key[0].transpose(0, 1), cos, sin)
    rotation = RotaryGrid(D_HEAD, base=config.rope_parameters["rope_theta"])(ROWS, COLUMNS)
    for mine, other in zip((rotation(query), rotation(key)), expected, strict=True):
        torch.testing.assert_close(mine[0], other.transpose(0, 1), rtol=0, atol=1e-12)


def test_a_score_depends_on_the_offsets_alone():
    query, key = vectors(1).expand(-1, -1, 20, -1), vectors(1).expand(-1, -1, 20, -1)
    rotation = RotaryGrid(D_HEAD)(4, 5)
    scores = (rotation(query) @ rotation(key).mT)[0, 0].unflatten(0, (4, 5)).unflatten(2, (4, 5))
    torch.testing.assert_close(scores[0, 0, 2, 1], scores[1, 3, 3, 4], rtol=0, atol=1e-12)
    assert not torch.isclose(scores[0, 0, 2, 1], scores[0, 0, 1, 2])


def test_tokens_before_the_patches_are_not_turned():
    rotation, tokens = RotaryGrid(D_HEAD)(2, 2, n_first=3), vectors(7)
    turned = rotation(tokens)
    assert torch.equal(turned[:, :, :4], tokens[:, :, :4])  # the first patch stands at the origin
    assert not torch.isclose(turned[:, :, 4:], tokens[:, :, 4:]).all(dim=-1).any()


def test_widths_without_two_pairs_are_refused():
    with pytest.raises(ValueError, match="d_head must be 4, 8, ..., not 6"):
        RotaryGrid(6)
