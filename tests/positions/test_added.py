"""Positions that are added to embeddings: waves, a learned table, nothing."""

import math

import pytest
import torch

from ttutor.positions import LearnedPositions, NoPositions, SinusoidalPositions, shift_matrix, sinusoidal_encoding


@pytest.mark.parametrize("d_model", [1, 2, 7, 8, 128])
def test_equals_the_formula_at_every_entry(d_model):
    encoding = sinusoidal_encoding(11, d_model)
    assert encoding.shape == (11, d_model)
    assert encoding.dtype == torch.float32
    for position in range(11):
        for feature in range(d_model):
            angle = position / 10000 ** (2 * (feature // 2) / d_model)
            expected = math.cos(angle) if feature % 2 else math.sin(angle)
            assert encoding[position, feature].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("offset", [-3, 0, 1, 7, 100])
def test_the_shift_is_known_and_is_a_rotation(offset):
    encoding = sinusoidal_encoding(200, 16).double()
    matrix = shift_matrix(offset, 16)
    start = max(0, -offset)
    moved = encoding[start : 200 - max(0, offset)] @ matrix.T
    torch.testing.assert_close(moved, encoding[start + offset : 200 + min(0, offset)], rtol=0, atol=1e-6)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(16, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(shift_matrix(-offset, 16), matrix.T)
    torch.testing.assert_close(shift_matrix(offset, 16) @ shift_matrix(5, 16), shift_matrix(offset + 5, 16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_no_positions_change_nothing_at_any_distance(dtype):
    embedded = torch.randn(2, 3, 8, dtype=dtype)
    added = embedded + NoPositions()(torch.tensor([[0, 1, 2], [10**9, 5, 0]]))
    assert torch.equal(added, embedded)
    assert added.dtype == dtype


@pytest.mark.parametrize(("max_len", "d_model"), [(-1, 4), (3, 0)])
def test_impossible_sizes_are_refused(max_len, d_model):
    with pytest.raises(ValueError, match=f"max_len={max_len}, d_model={d_model}"):
        sinusoidal_encoding(max_len, d_model)


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_modules_look_positions_up(kind):
    module = kind(d_model=6, max_len=9)
    vectors = module(torch.tensor([[0, 3, 3], [8, 1, 0]]))
    assert vectors.shape == (2, 3, 6)
    assert torch.equal(vectors[0, 1], vectors[0, 2])
    assert torch.equal(vectors[0, 0], vectors[1, 2])
    assert not torch.equal(vectors[0, 0], vectors[0, 1])


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
@pytest.mark.parametrize("position", [-1, 9])
def test_positions_outside_are_refused(kind, position):
    with pytest.raises(ValueError, match=rf"positions run from .*{position}.*, but this module knows 0 to 8"):
        kind(d_model=6, max_len=9)(torch.tensor([[3, position]]))
