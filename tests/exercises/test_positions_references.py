"""The references of the exercises on positions against arithmetic of another kind."""

import torch

from ttutor.exercises.registry import find
from ttutor.positions import RotaryPositions, sinusoidal_encoding


def test_the_reference_for_rotary_positions_multiplies_complex_numbers() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(2, 3, 5, 8, generator=generator, dtype=torch.float64)
    positions = torch.tensor([7, 8, 12, 3, 20])
    angle = torch.outer(positions.double(), 10_000.0 ** (-torch.arange(0, 8, 2).double() / 8))
    numbers = torch.view_as_complex(vectors.reshape(2, 3, 5, 4, 2)) * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(
        find("positions.rotary").reference(vectors, positions), torch.view_as_real(numbers).flatten(-2)
    )


def test_the_reference_for_sinusoidal_positions_is_the_formula_entry_by_entry() -> None:
    encoding = find("positions.sinusoidal_encoding").reference(9, 7)
    angle = torch.tensor(
        [[p / 10_000.0 ** (2 * (f // 2) / 7) for f in range(7)] for p in range(9)], dtype=torch.float64
    )
    expected = torch.where(torch.arange(7) % 2 == 0, angle.sin(), angle.cos()).float()
    torch.testing.assert_close(encoding, expected)


def test_the_reference_for_the_planted_bug_turns_queries_and_keys() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2, 3, n, 8, generator=generator, dtype=torch.float64) for n in (4, 7))
    rotation = RotaryPositions(8)
    turned = rotation(torch.arange(3, 7)[None])(query), rotation(torch.arange(7)[None])(key)
    expected = turned[0] @ turned[1].transpose(-1, -2) / 8**0.5
    torch.testing.assert_close(find("positions.rotary_scores").reference(query, key), expected)


def test_the_reference_for_alibi_is_the_formula_entry_by_entry() -> None:
    bias = find("positions.alibi_bias").reference(8, 3, 7)
    expected = torch.tensor(
        [[[-(2.0**-head) * abs(i + 4 - j) for j in range(7)] for i in range(3)] for head in range(1, 9)]
    )
    torch.testing.assert_close(bias, expected)


def test_the_reference_for_the_shift_moves_the_encoding() -> None:
    waves = sinusoidal_encoding(40, 8).double()
    moved = waves[:-5] @ find("positions.shift_matrix").reference(5, 8).T
    torch.testing.assert_close(moved, waves[5:], atol=1e-6, rtol=0)
