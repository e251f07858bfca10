"""Sinusoidal and learned positions."""

import math

import pytest
import torch

from ttutor.positions import LearnedPositions, SinusoidalPositions, sinusoidal_encoding


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


def test_far_positions_are_exact_too():
    expected = [math.sin(99_999), math.cos(99_999)]
    assert sinusoidal_encoding(100_000, 2)[-1].tolist() == pytest.approx(expected, abs=1e-6)


def test_every_position_has_the_same_length_of_vector():
    norms = sinusoidal_encoding(500, 128).square().sum(dim=-1)
    torch.testing.assert_close(norms, torch.full((500,), 64.0))


def test_a_shift_is_one_linear_map_for_all_positions():
    encoding, shift = sinusoidal_encoding(200, 16).double(), 7
    moves, *_ = torch.linalg.lstsq(encoding[:-shift], encoding[shift:])
    torch.testing.assert_close(encoding[:-shift] @ moves, encoding[shift:], rtol=0, atol=1e-5)


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


def test_only_the_table_has_parameters_and_the_waves_stay_out_of_checkpoints():
    assert list(SinusoidalPositions(6, 9).state_dict()) == []
    assert sum(p.numel() for p in LearnedPositions(6, 9).parameters()) == 54


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
@pytest.mark.parametrize("position", [-1, 9])
def test_positions_outside_are_refused(kind, position):
    with pytest.raises(ValueError, match=rf"positions run from .*{position}.*, but this module knows 0 to 8"):
        kind(d_model=6, max_len=9)(torch.tensor([[3, position]]))
