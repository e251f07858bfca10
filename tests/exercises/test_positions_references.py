"""The references of the exercises on positions against arithmetic of another kind."""

import torch

from ttutor.exercises.registry import find


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
