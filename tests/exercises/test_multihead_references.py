"""The references of the exercises on multi-head attention against torch's layers and the package's."""

import pytest
import torch
from torch import nn

from ttutor.exercises.registry import find
from ttutor.inside import capture, head_writes
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


def test_heads_are_split_as_the_package_splits_them(inputs) -> None:
    hidden, *_, n_heads = inputs
    layer = MultiHeadAttention(12, n_heads, bias=False).double()
    with torch.no_grad(), capture(layer, "q") as seen:
        layer(hidden)
        expected = find("multihead.split_heads").reference(layer.to_query(hidden), n_heads)
    torch.testing.assert_close(seen["q"], expected)


def test_contributions_are_the_packages_writes(inputs) -> None:
    hidden, *_, n_heads = inputs
    layer = MultiHeadAttention(12, n_heads, bias=False).double()
    with torch.no_grad(), capture(layer, "context") as seen:
        output = layer(hidden)
    parts = find("multihead.head_contributions").reference(seen["context"], layer.to_output.weight)
    torch.testing.assert_close(parts, head_writes(layer, seen["context"]))
    torch.testing.assert_close(parts.sum(dim=1), output)


def test_grouped_attention_is_torchs() -> None:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 6, 4, 3, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, 2, 2, 5, 3, generator=generator, dtype=torch.float64)
    expected = nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(find("multihead.grouped_attention").reference(query, key, value), expected)


def test_loaded_heads_are_torchs(inputs) -> None:
    hidden, *weights, n_heads = inputs
    layer = nn.MultiheadAttention(12, n_heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat(weights[:3]))
        layer.out_proj.weight.copy_(weights[3])
    expected, _ = layer(hidden, hidden, hidden, need_weights=False)
    given = find("multihead.loaded_heads").reference(hidden, layer.in_proj_weight, layer.out_proj.weight, n_heads)
    torch.testing.assert_close(given, expected)


def test_overlap_finds_angles_that_were_put_in() -> None:
    """Rows turned out of the first two axes by known angles, then mixed, which leaves their space alone."""
    angles = torch.tensor([0.3, 1.1], dtype=torch.float64)
    one = torch.eye(2, 5, dtype=torch.float64)
    other = torch.cat([torch.diag(angles.cos()), torch.diag(angles.sin()), torch.zeros(2, 1)], dim=1)
    mix = torch.tensor([[2.0, 1.0], [0.5, -1.0]], dtype=torch.float64)
    found = find("multihead.subspace_overlap").reference(mix @ one, mix.T @ other)
    torch.testing.assert_close(found, angles.cos())
