"""The reference of the exercise on multi-head attention against torch's layer and the package's."""

import pytest
import torch
from torch import nn

from ttutor.exercises.registry import find
from ttutor.multihead import MultiHeadAttention


@pytest.fixture
def inputs() -> tuple:
    """Two sentences of five tokens, three heads of width four, in float64."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    return hidden, *torch.randn(4, 12, 12, generator=generator, dtype=torch.float64), 3


def test_the_reference_is_torchs_layer(inputs) -> None:
    hidden, *weights, n_heads = inputs
    layer = nn.MultiheadAttention(12, n_heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat(weights[:3]))
        layer.out_proj.weight.copy_(weights[3])
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected, _ = layer(hidden, hidden, hidden, attn_mask=future, need_weights=False)
    torch.testing.assert_close(find("multihead.multi_head_attention").reference(*inputs), expected)


def test_the_reference_is_the_packages_layer(inputs) -> None:
    hidden, *weights, n_heads = inputs
    layer = MultiHeadAttention(12, n_heads, bias=False).double()
    projections = (layer.to_query, layer.to_key, layer.to_value, layer.to_output)
    with torch.no_grad():
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight.copy_(weight)
    expected = layer(hidden, mask=torch.ones(5, 5, dtype=torch.bool).tril())
    torch.testing.assert_close(find("multihead.multi_head_attention").reference(*inputs), expected)
