"""Rotary positions: against complex numbers, and by their properties."""

import pytest
import torch

from ttutor.errors import ShapeError
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import (
    RotaryPositions,
    half_to_interleaved,
)

LAYOUTS = ["half", "interleaved"]
CLOSE = {"rtol": 0, "atol": 1e-12}


def scores(q, k, query_positions, key_positions, layout="half", base=10_000.0):
    """The products of turned queries and keys."""
    rotary = RotaryPositions(q.shape[-1], layout=layout, base=base)
    return rotary(query_positions)(q) @ rotary(key_positions)(k).mT


@pytest.fixture
def vectors():
    return torch.randn(2, 3, 5, 8, dtype=torch.float64)


@pytest.mark.parametrize("base", [10_000.0, 7.0])
def test_interleaved_is_a_product_of_complex_numbers(vectors, base):
    positions = torch.tensor([[0, 1, 2, 3, 4], [9, 8, 700, 0, 1]])
    angles = positions[:, None, :, None] * base ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    turned = torch.view_as_complex(vectors.reshape(2, 3, 5, 4, 2)) * torch.polar(torch.ones_like(angles), angles)
    mine = RotaryPositions(8, base=base, layout="interleaved")(positions)(vectors)
    torch.testing.assert_close(mine, torch.view_as_real(turned).reshape(2, 3, 5, 8), **CLOSE)


def test_converting_the_weights_converts_the_layer():
    hidden, positions = torch.randn(2, 5, 7, dtype=torch.float64), torch.arange(5)[None]
    layer = MultiHeadAttention(7, 4, 2, d_head=6).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    expected = layer(hidden, rotation=RotaryPositions(6, layout="half")(positions))
    with torch.no_grad():
        for projection, n_heads in ((layer.to_query, 4), (layer.to_key, 2)):
            for tensor in (projection.weight, projection.bias):
                tensor.copy_(half_to_interleaved(tensor, n_heads))
    torch.testing.assert_close(layer(hidden, rotation=RotaryPositions(6, layout="interleaved")(positions)), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_depend_on_the_distance_alone(vectors, layout):
    q, k = vectors, torch.randn_like(vectors)
    positions = torch.tensor([[0, 1, 2, 3, 4], [4, 9, 11, 12, 40]])
    near = scores(q, k, positions, positions, layout)
    far = scores(q, k, positions + 1000, positions + 1000, layout)
    torch.testing.assert_close(near, far, rtol=0, atol=1e-11)
    other = scores(q, k, positions, positions + 1, layout)
    assert (near - other).abs().max() > 0.1


def test_angles_stay_exact_in_low_precision_and_far_away():
    # In bfloat16 the position 1001 itself is 1000; the angles must not be made of such numbers.
    model = RotaryPositions(4).bfloat16()
    rotation = model(torch.tensor([[1001, 1_000_001]]))
    angle = torch.tensor([1001.0, 1_000_001.0], dtype=torch.float64)
    torch.testing.assert_close(rotation.cos[0, 0, :, 0], angle.cos(), **CLOSE)
    assert rotation(torch.ones(1, 1, 2, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_does_not_fit_is_refused(vectors):
    with pytest.raises(ValueError, match=r"layout must be one of \['half', 'interleaved'\], but is 'gptj'"):
        RotaryPositions(8, layout="gptj")
    with pytest.raises(ValueError, match="base must be positive and finite, but is 0"):
        RotaryPositions(8, base=0)
    rotation = RotaryPositions(8)(torch.arange(4)[None])
    with pytest.raises(ShapeError, match="axis 'tokens' is 5 in vectors but must be 4"):
        rotation(vectors)
    with pytest.raises(ShapeError, match="axis 'd_head' is 4 in vectors but must be 8"):
        rotation(vectors[..., :4, :4])
    layer = MultiHeadAttention(8, 1).double()
    with pytest.raises(ValueError, match="a rotation belongs to self-attention"):
        layer(vectors[0], vectors[0], rotation=rotation)
