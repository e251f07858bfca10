"""Exercise: the paper's sinusoidal encoding, odd widths included."""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor import positions
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Property, Trial


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


PROPERTIES = [
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
]


def waves(position, frequency):
    """The angles: one row for each position, one column for each frequency."""
    return rearrange(position, "positions -> positions 1") * frequency


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
    return drawn(generator, 8, 14), one_of(generator, (7, 9, 11))


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
        Case(name="an odd width", inputs=_odd),
    ),
    hints=r"""
Every pair of features is the hand of a clock: its sine and its cosine. How far does the hand of pair 0 turn from one
position to the next, and how far that of the last pair?

The frequency of pair $i$ is $10000^{-2i/d_\mathrm{model}}$, and `arange(0, d_model, 2)` already counts $2i$. Angles are
positions times frequencies. At odd widths there is one cosine too many: which one goes?

Make `angle` by broadcasting a column of positions against a row of frequencies; interleave its sines and cosines by one
`rearrange` to `positions (pairs sin_cos)`, and cut the row at `d_model`.
""",
    properties=PROPERTIES,
    forbids=("sinusoidal_encoding", "SinusoidalPositions"),
    difficulty=1,
    minutes=15,
    section="04-positions",
)


def frequencies(d_model, *, base=10_000.0):
    """One for each pair of features, the last pair perhaps cut."""
    return base ** (-torch.arange(0, d_model, 2) / d_model)


def places(max_len):
    return torch.arange(max_len, dtype=torch.float32)


def interleave(first, second, d_model):
    """First at even features, second at odd ones."""
    return rearrange([first, second], "two positions pairs -> positions (pairs two)")[:, :d_model]


@exercise.mistake(
    "Row 0 should begin 0, 1, 0, 1: the sine comes first, at the even features. Yours begins with the cosine."
)
def sin_cos_swapped(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return interleave(angle.cos(), angle.sin(), d_model)


@exercise.mistake(
    "The right numbers in another order: the paper interleaves sine and cosine. (Both work in a model; the exercise "
    "asks for the paper's layout.)"
)
def concat(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return torch.cat([angle.sin(), angle.cos()[:, : d_model // 2]], dim=1)


@exercise.mistake(
    "Odd features are sines too. With sine and cosine of one angle a shift of position becomes a rotation; with the "
    "sine twice it does not."
)
def only_sines(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return interleave(angle.sin(), angle.sin(), d_model)


@exercise.mistake(
    "The sine and the cosine beside it should have the same frequency; in yours every feature has one of its own. The "
    "exponent counts pairs."
)
def every_feature_its_own(max_len, d_model):
    angle = waves(places(max_len), 10_000.0 ** (-torch.arange(d_model) / d_model))
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


@exercise.like("every_feature_its_own")
def every_feature_twice_as_fast(max_len, d_model):
    angle = waves(places(max_len), 10_000.0 ** (-2 * torch.arange(d_model) / d_model))
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


def encode(angle, d_model):
    """As it should be, given the angles."""
    return interleave(angle.sin(), angle.cos(), d_model)


@exercise.mistake(
    "Your waves are too short: the slowest never falls below a frequency of 1/100, where the paper's go towards "
    "1/10000. The index is halved twice."
)
def exponent_i(max_len, d_model):
    angle = waves(places(max_len), 10_000.0 ** (-torch.arange(0, d_model, 2) / (2 * d_model)))
    return encode(angle, d_model)


@exercise.mistake(
    "Your waves grow too long too soon, as the index is doubled twice: `arange(0, d_model, 2)` is already 2i."
)
def exponent_2x(max_len, d_model):
    angle = waves(places(max_len), 10_000.0 ** (-2 * torch.arange(0, d_model, 2) / d_model))
    return encode(angle, d_model)


@exercise.mistake("Your frequencies grow with the column; they should shrink. Look at the sign of the exponent.")
def sign(max_len, d_model):
    return encode(waves(places(max_len), 1 / frequencies(d_model)), d_model)


@exercise.mistake("Your frequencies rise evenly from 0. The exponent is there, but what is it the power of?")
def no_base(max_len, d_model):
    return encode(waves(places(max_len), torch.arange(0, d_model, 2) / d_model), d_model)


@exercise.mistake(
    "All pairs turn equally fast, so that after six positions they begin to repeat. Each pair has its own frequency."
)
def same_frequency(max_len, d_model):
    return encode(waves(places(max_len), torch.ones(math.ceil(d_model / 2))), d_model)


@exercise.like("same_frequency")
def whole_exponent(max_len, d_model):
    angle = waves(places(max_len), 10_000.0 ** (-(torch.arange(0, d_model, 2) // d_model).float()))
    return encode(angle, d_model)


@exercise.mistake("Row 0 should be 0, 1, 0, 1: positions start at 0, yours at 1.")
def starts_at_1(max_len, d_model):
    return encode(waves(places(max_len) + 1, frequencies(d_model)), d_model)


@exercise.mistake(
    "You divide positions by their number, so that the same position gets another vector in a longer text. Use the "
    "position itself."
)
def share_of_length(max_len, d_model):
    return encode(waves(places(max_len) / max_len, frequencies(d_model)), d_model)


@exercise.mistake("Column 0 is right, and the further a column stands, the more its speed is off. Check the base.")
def base_1000(max_len, d_model):
    return encode(waves(places(max_len), frequencies(d_model, base=1000.0)), d_model)


@exercise.like("base_1000")
def base_100_000(max_len, d_model):
    return encode(waves(places(max_len), frequencies(d_model, base=100_000.0)), d_model)


@exercise.mistake(
    "Your frequencies fall too slowly. Whoever writes the power with `exp` needs the natural logarithm of 10000; is "
    "yours to base 10, or missing?",
    id="logarithm",
)
def natural_base(max_len, d_model):
    return encode(waves(places(max_len), frequencies(d_model, base=math.e)), d_model)


@exercise.like("logarithm")
def log_of_base_ten(max_len, d_model):
    exponent = -torch.arange(0, d_model, 2) * math.log10(10_000.0) / d_model
    return encode(waves(places(max_len), exponent.exp()), d_model)


@exercise.mistake(
    "Your slowest wave has the frequency 1/10000 exactly, as in the Tensor2Tensor code: it divides by the number of "
    "pairs less one. The paper's formula divides 2i by d_model."
)
def endpoints(max_len, d_model):
    n_pairs = math.ceil(d_model / 2)
    return encode(waves(places(max_len), 10_000.0 ** (-torch.arange(n_pairs) / (n_pairs - 1))), d_model)


@exercise.mistake(
    "Feature 0 should be sin(0), sin(1), sin(2), ... in radians. Your angles carry another factor, 2π or π/180.",
    id="unit_of_angle",
)
def times_two_pi(max_len, d_model):
    return encode(2 * math.pi * waves(places(max_len), frequencies(d_model)), d_model)


@exercise.like("unit_of_angle")
def in_degrees(max_len, d_model):
    return encode(waves(places(max_len), frequencies(d_model)) * math.pi / 180, d_model)


@exercise.mistake("An odd width fails: there is one sine more than there are cosines. Which wave has its sine only?")
def odd_d_crash(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    encoding = torch.zeros(max_len, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


@exercise.mistake("At an odd width your rows are one feature too wide: the last cosine has no place in the table.")
def one_too_wide(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return rearrange([angle.sin(), angle.cos()], "two positions pairs -> positions (pairs two)")


@exercise.mistake(
    "At an odd width the last feature is missing, or zero at all positions. It should be a sine: there is one sine "
    "more than there are cosines.",
    id="last_left_empty",
)
def one_too_narrow(max_len, d_model):
    return odd_d_crash(max_len, d_model - d_model % 2)


@exercise.like("last_left_empty")
def last_left_empty(max_len, d_model):
    encoding = torch.zeros(max_len, d_model)
    even = d_model - d_model % 2
    encoding[:, :even] = encode(waves(places(max_len), frequencies(d_model)), d_model)[:, :even]
    return encoding


@exercise.mistake(
    "At an odd width you compute the frequencies of the next even one, so that all but the first are a little off. The "
    "formula divides by d_model as it is."
)
def widened_when_odd(max_len, d_model):
    even = d_model + d_model % 2
    return encode(waves(places(max_len), frequencies(even)), even)[:, :d_model]


@exercise.mistake("Right for odd widths; at even ones every sine has its cosine, and you still cut the last one.")
def last_cosine_cut(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    encoding = torch.zeros(max_len, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle[:, :-1].cos()
    return encoding


@exercise.mistake(
    "An extra axis stands in front. Return `max_len d_model`, one row for each position; broadcasting does the rest."
)
def extra_batch(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return rearrange(encode(angle, d_model), "positions d_model -> 1 positions d_model")


@exercise.mistake("Rows and columns are exchanged. Return `max_len d_model`, one row for each position.")
def transposed(max_len, d_model):
    angle = waves(places(max_len), frequencies(d_model))
    return rearrange(encode(angle, d_model), "positions d_model -> d_model positions")


@exercise.mistake("You give the vector of a single position. The table has one row for each position from 0 on.")
def one_position(max_len, d_model):
    return encode(waves(torch.tensor([float(max_len)]), frequencies(d_model)), d_model)[0]


@exercise.mistake(
    "The numbers are right, in float64. The table is added to embeddings in float32: convert the result. (To compute "
    "the angles in float64 is a good idea.)"
)
def in_float64(max_len, d_model):
    return encode(waves(places(max_len).double(), frequencies(d_model).double()), d_model)


@exercise.mistake("The right numbers, as a NumPy array. The table should be a torch tensor.")
def as_numpy(max_len, d_model):
    return encode(waves(places(max_len), frequencies(d_model)), d_model).numpy()


@exercise.mistake(
    "You return a Parameter, which training would change. This table is fixed: return a plain tensor; a module keeps "
    "it as a buffer."
)
def as_parameter(max_len, d_model):
    return torch.nn.Parameter(encode(waves(places(max_len), frequencies(d_model)), d_model))
