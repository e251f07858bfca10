"""What is true of every right sinusoidal encoding."""

import torch
from einops import rearrange
from torch import Tensor

from ttutor.exercises.exercise import Property, Trial


def _first_row(trial: Trial) -> str | None:
    """At position 0 every angle is 0, whatever the frequencies are."""
    row = trial.value[0]
    expected = torch.tensor([0.0, 1.0] * len(row))[: len(row)]
    return None if torch.allclose(row, expected, atol=1e-5) else f"Row 0 begins {_numbers(row[:4])}."


def _first_wave(trial: Trial) -> str | None:
    """Feature 0 is the sine of the position itself."""
    column = trial.value[:, 0]
    expected = torch.arange(len(column)).sin()
    return None if torch.allclose(column, expected, atol=1e-4) else f"Column 0 begins {_numbers(column[:4])}."


def _lengths(trial: Trial) -> str | None:
    """A sine and a cosine of one angle have squares that sum to one."""
    n_pairs = trial.value.shape[1] // 2
    squares = rearrange(trial.value[:, : 2 * n_pairs] ** 2, "positions (pairs two) -> positions pairs two", two=2)
    sums = squares.sum(dim=-1)
    worst = (sums - 1).abs().argmax()
    if abs(sums.flatten()[worst].item() - 1) < 1e-4:
        return None
    position, pair = divmod(worst.item(), n_pairs)
    return (
        f"At position {position} the squares of features {2 * pair} and {2 * pair + 1} sum to "
        f"{sums[position, pair].item():.3g}, not to 1."
    )


def _turns(trial: Trial) -> str | None:
    """From one position to the next, every pair turns by a fixed angle."""
    value, n_pairs = trial.value, trial.value.shape[1] // 2
    sine, cosine = value[:, 0 : 2 * n_pairs : 2], value[:, 1::2]
    cosines_of_step = sine[1:] * sine[:-1] + cosine[1:] * cosine[:-1]
    spread = (cosines_of_step.amax(dim=0) - cosines_of_step.amin(dim=0)).max().item()
    return None if spread < 1e-3 else "Some pair of features turns further in one step than in another."


def _growing(trial: Trial) -> str | None:
    """Whether the waves are those of the inverse frequencies, as far as float32 shows."""
    max_len, d_model = trial.value.shape
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    inverse = (position * 10_000.0 ** (torch.arange(0, d_model, 2) / d_model)).sin()
    is_inverse = torch.allclose(trial.value[:, 0::2].double(), inverse, atol=0.05)
    return "Your later waves are faster than the first." if is_inverse else None


def _factors(trial: Trial) -> str | None:
    """From pair to pair the frequency falls by one factor; it is the angle at position 1."""
    n_pairs = trial.value.shape[1] // 2
    frequency = torch.atan2(trial.value[1, 0 : 2 * n_pairs : 2], trial.value[1, 1::2])
    factors = frequency[1:] / frequency[:-1]
    if torch.allclose(factors, factors[:1].expand_as(factors), rtol=1e-2):
        return None
    return f"From pair to pair your frequencies change by the factors {_numbers(factors)}"


def _numbers(row: Tensor) -> str:
    return ", ".join(f"{number:.3g}" for number in row.tolist()) + ", …"


PROPERTIES = (
    Property(
        id="starts_with_zero_angle",
        says="At position 0 every angle is 0, so that row 0 is 0, 1, 0, 1 and so on, whatever the frequencies.",
        broken=_first_row,
    ),
    Property(
        id="first_wave",
        says="The first pair turns by one radian for each position: feature 0 is sin(p).",
        broken=_first_wave,
    ),
    Property(
        id="pairs_have_length_one",
        says="Features 2i and 2i + 1 are sine and cosine of one angle, whose squares sum to 1.",
        broken=_lengths,
    ),
    Property(
        id="pairs_turn_evenly",
        says="From one position to the next, each pair should turn by an angle of its own that stays the same.",
        broken=_turns,
    ),
    Property(
        id="waves_become_slower",
        says="Frequencies should shrink along the row. Look at the sign of the exponent.",
        broken=_growing,
    ),
    Property(
        id="falls_by_one_factor",
        says="Frequencies are powers of 10000 whose exponents fall evenly, so that each is the one before times the "
        "same factor. Where does your exponent stand?",
        broken=_factors,
    ),
)
