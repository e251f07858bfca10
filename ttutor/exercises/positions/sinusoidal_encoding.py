"""Exercise: the paper's sinusoidal encoding, odd widths included."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor import positions
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def _numbers(row: Tensor) -> str:
    return ", ".join(f"{number:.3g}" for number in row.tolist()) + ", …"


def sinusoidal_encoding(max_len: int, d_model: int) -> Float[Tensor, "max_len d_model"]:
    """Give each position, counted from 0, a vector of sines (even features) and cosines (odd ones)."""
    position = torch.arange(max_len, dtype=torch.float64)
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = rearrange(position, "positions -> positions 1") * frequency
    waves = rearrange([angle.sin(), angle.cos()], "sin_cos positions pairs -> positions (pairs sin_cos)")
    return waves[:, :d_model].float()


def reference(max_len, d_model):
    return positions.sinusoidal_encoding(max_len, d_model)


def _even(generator):
    return drawn(generator, 11, 15), one_of(generator, (6, 8, 10))


def _odd(generator):
    return drawn(generator, 2050, 2060), one_of(generator, (7, 9, 11))  # longer than any table that is made once


exercise = Exercise(
    id="positions.sinusoidal_encoding",
    title="A vector for every position",
    statement="""
You have seen this function in the chapter; now write it from the formula, without looking. Build the table of the
paper: one row for each position $p$ from 0 on, with

$$PE_{p,2i} = \\sin\\!\\left(p / 10000^{2i/d_\\mathrm{model}}\\right), \\qquad
  PE_{p,2i+1} = \\cos\\!\\left(p / 10000^{2i/d_\\mathrm{model}}\\right),$$

sine and cosine taking turns along a row, in float32. With an odd `d_model` the last wave has its sine only.
""".strip(),
    reference=reference,
    solution=sinusoidal_encoding,
    explanation="""
Each pair of features is the hand of a clock: the first turns by one radian a position, each further one more slowly.
A shift by $k$ positions turns every hand by an angle that depends on $k$ alone, which a matrix can do; that is the
paper's reason for taking both sine and cosine. Angles lose digits in float32 when positions run into the thousands,
so this solution, like the package, computes them in float64 and rounds at the end. (The check does not go so far out,
and accepts angles computed in float32 as well.)
""".strip(),
    cases=(
        Case(name="an even width", inputs=_even),
        Case(name="an odd width", inputs=_odd, rtol=2e-3),
    ),
    hints=r"""
Every pair of features is the hand of a clock: its sine and its cosine. How far does the hand of pair 0 turn from one
position to the next, and how far that of the last pair?

The frequency of pair $i$ is $10000^{-2i/d_\mathrm{model}}$, and `arange(0, d_model, 2)` already counts $2i$. Angles are
positions times frequencies. At odd widths there is one cosine too many: which one goes?

Make `angle` by broadcasting a column of positions against a row of frequencies; interleave its sines and cosines by one
`rearrange` to `positions (pairs sin_cos)`, and cut the row at `d_model`.
""",
    forbids=("sinusoidal_encoding", "SinusoidalPositions"),
    difficulty=1,
    minutes=15,
    section="04-positions",
)

exercise.mutations(r"""
sin_cos_swapped: "[angle.sin(), angle.cos()]" -> "[angle.cos(), angle.sin()]"
    Row 0 should begin 0, 1, 0, 1: the sine comes first, at the even features. Yours begins with the cosine.
concat: "(pairs sin_cos)" -> "(sin_cos pairs)"
    The right numbers in another order: the paper interleaves sine and cosine. (Both work in a model; the exercise asks
    for the paper's layout.)
only_sines: "angle.cos()" -> "angle.sin()"
    Odd features are sines too. With sine and cosine of one angle a shift of position becomes a rotation; with the sine
    twice it does not.
every_feature_its_own: "torch.arange(0, d_model, 2, " -> "torch.arange(d_model, ",
  "waves[:, :d_model]" -> "torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())"
or: "-torch.arange(0, d_model, 2, " -> "-2 * torch.arange(d_model, ",
  "waves[:, :d_model]" -> "torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())"
    The sine and the cosine beside it should have the same frequency; in yours every feature has one of its own. The
    exponent counts pairs.
exponent_i: "/ d_model)" -> "/ (2 * d_model))"
    Your waves are too short: the slowest never falls below a frequency of 1/100, where the paper's go towards 1/10000.
    The index is halved twice.
exponent_2x: "-torch.arange" -> "-2 * torch.arange"
    Your waves grow too long too soon, as the index is doubled twice: `arange(0, d_model, 2)` is already 2i.
sign: "-torch.arange" -> "torch.arange"
    Your frequencies grow with the column; they should shrink. Look at the sign of the exponent.
no_base: "10000.0 ** (-torch" -> "(torch"
    Your frequencies rise evenly from 0. The exponent is there, but what is it the power of?
same_frequency: "** (-torch" -> "** (-0 * torch"
    All pairs turn equally fast, so that after six positions they begin to repeat. Each pair has its own frequency.
starts_at_1: "torch.arange(max_len, " -> "torch.arange(1, max_len + 1, "
    Row 0 should be 0, 1, 0, 1: positions start at 0, yours at 1.
share_of_length: "* frequency" -> "/ max_len * frequency"
    You divide positions by their number, so that the same position gets another vector in a longer text. Use the
    position itself.
base_1000: "10000.0" -> "1000.0"
or: "10000.0" -> "100000.0"
    Column 0 is right, and the further a column stands, the more its speed is off. Check the base.
logarithm: "10000.0" -> "torch.e"
or: "10000.0 ** (" -> "torch.exp(4.0 * "
    Your frequencies fall too slowly. Whoever writes the power with `exp` needs the natural logarithm of 10000; is yours
    to base 10, or missing?
endpoints: "torch.arange(0, d_model, 2, dtype=torch.float64) / d_model" ->
  "torch.arange((d_model + 1) // 2) / ((d_model - 1) // 2)"
    Your slowest wave has the frequency 1/10000 exactly, as in the Tensor2Tensor code: it divides by the number of pairs
    less one. The paper's formula divides 2i by d_model.
unit_of_angle: "* frequency" -> "* frequency * 2 * torch.pi"
or: "* frequency" -> "* frequency * torch.pi / 180"
    Feature 0 should be sin(0), sin(1), sin(2), ... in radians. Your angles carry another factor, 2π or π/180.
odd_d_crash: "return waves[:, :d_model].float()" ->
  "rows = torch.zeros(max_len, d_model)\n    rows[:, 0::2], rows[:, 1::2] = angle.sin(), angle.cos()\n    return rows"
    An odd width fails: there is one sine more than there are cosines. Which wave has its sine only?
one_too_wide: "[:, :d_model]" -> ""
    At an odd width your rows are one feature too wide: the last cosine has no place in the table.
last_left_empty: "position = torch" -> "d_model -= d_model % 2\n    position = torch"
or: "return waves" -> "waves[:, d_model - d_model % 2 :] = 0\n    return waves"
    At an odd width the last feature is missing, or zero at all positions. It should be a sine: there is one sine more
    than there are cosines.
widened_when_odd: "/ d_model)" -> "/ (d_model + d_model % 2))"
    At an odd width you compute the frequencies of the next even one, so that all but the first are a little off. The
    formula divides by d_model as it is.
last_cosine_cut: "return waves[:, :d_model].float()" ->
  "table = waves[:, :d_model].float()\n    table[:, 1::2] = angle[:, :-1].cos()\n    return table"
    Right for odd widths; at even ones every sine has its cosine, and you still cut the last one.
extra_batch: ".float()" -> ".float()[None]"
    An extra axis stands in front. Return `max_len d_model`, one row for each position; broadcasting does the rest.
transposed: ".float()" -> ".float().mT"
    Rows and columns are exchanged. Return `max_len d_model`, one row for each position.
one_position: "torch.arange(max_len, " -> "torch.tensor([max_len], ", ".float()" -> ".float()[0]"
    You give the vector of a single position. The table has one row for each position from 0 on.
in_float64: ".float()" -> ""
    The numbers are right, in float64. The table is added to embeddings in float32: convert the result. (To compute the
    angles in float64 is a good idea.)
as_numpy: ".float()" -> ".float().numpy()"
    The right numbers, as a NumPy array. The table should be a torch tensor.
as_parameter: "waves[:, :d_model].float()" -> "torch.nn.Parameter(waves[:, :d_model].float())"
    You return a Parameter, which training would change. This table is fixed: return a plain tensor; a module keeps it
    as a buffer.
""")


@exercise.must_hold("At position 0 every angle is 0, so that row 0 is 0, 1, 0, 1 and so on, whatever the frequencies.")
def starts_with_zero_angle(trial: Trial) -> str | None:
    """At position 0 every angle is 0, whatever the frequencies are."""
    row = trial.value[0]
    expected = torch.tensor([0.0, 1.0] * len(row))[: len(row)]
    return None if torch.allclose(row, expected, atol=1e-5) else f"Row 0 begins {_numbers(row[:4])}."


@exercise.must_hold("The first pair turns by one radian for each position: feature 0 is sin(p).")
def first_wave(trial: Trial) -> str | None:
    """Feature 0 is the sine of the position itself."""
    column = trial.value[:, 0]
    expected = torch.arange(len(column)).sin()
    return None if torch.allclose(column, expected, atol=1e-4) else f"Column 0 begins {_numbers(column[:4])}."


@exercise.must_hold("Features 2i and 2i + 1 are sine and cosine of one angle, whose squares sum to 1.")
def pairs_have_length_one(trial: Trial) -> str | None:
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


@exercise.must_hold("From one position to the next, each pair should turn by an angle of its own that stays the same.")
def pairs_turn_evenly(trial: Trial) -> str | None:
    """From one position to the next, every pair turns by a fixed angle."""
    value, n_pairs = trial.value, trial.value.shape[1] // 2
    sine, cosine = value[:, 0 : 2 * n_pairs : 2], value[:, 1::2]
    cosines_of_step = sine[1:] * sine[:-1] + cosine[1:] * cosine[:-1]
    spread = (cosines_of_step.amax(dim=0) - cosines_of_step.amin(dim=0)).max().item()
    return None if spread < 1e-3 else "Some pair of features turns further in one step than in another."


@exercise.must_hold("Frequencies should shrink along the row. Look at the sign of the exponent.")
def waves_become_slower(trial: Trial) -> str | None:
    """Whether the waves are those of the inverse frequencies, as far as float32 shows."""
    max_len, d_model = trial.value.shape
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    inverse = (position * 10_000.0 ** (torch.arange(0, d_model, 2) / d_model)).sin()
    is_inverse = torch.allclose(trial.value[:, 0::2].double(), inverse, atol=0.05)
    return "Your later waves are faster than the first." if is_inverse else None


@exercise.must_hold(
    "Frequencies are powers of 10000 whose exponents fall evenly, so that each is the one before times the same "
    "factor. Where does your exponent stand?"
)
def falls_by_one_factor(trial: Trial) -> str | None:
    """From pair to pair the frequency falls by one factor; it is the angle at position 1."""
    n_pairs = trial.value.shape[1] // 2
    frequency = torch.atan2(trial.value[1, 0 : 2 * n_pairs : 2], trial.value[1, 1::2])
    factors = frequency[1:] / frequency[:-1]
    if torch.allclose(factors, factors[:1].expand_as(factors), rtol=1e-2):
        return None
    return f"From pair to pair your frequencies change by the factors {_numbers(factors)}"
