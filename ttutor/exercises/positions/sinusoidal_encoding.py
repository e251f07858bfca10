"""Exercise: the paper's sinusoidal encoding, odd widths included."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor import positions
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Mistake
from ttutor.exercises.positions import sinusoidal_encoding_mistakes as wrong
from ttutor.exercises.positions.sinusoidal_encoding_probes import PROPERTIES


def sinusoidal_encoding(max_len: int, d_model: int) -> Float[Tensor, "max_len d_model"]:
    """Give each position, counted from 0, a vector of sines (even features) and cosines (odd ones)."""
    ...


def solution(max_len: int, d_model: int) -> Float[Tensor, "max_len d_model"]:
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


EXERCISES = (
    Exercise(
        id="positions.sinusoidal_encoding",
        title="A vector for every position",
        statement="""
You have seen this function in the chapter; now write it from the formula, without looking. Build the table of the
paper: one row for each position $p$ from 0 on, with

$$PE_{p,2i} = \\sin\\!\\left(p / 10000^{2i/d_\\mathrm{model}}\\right), \\qquad
  PE_{p,2i+1} = \\cos\\!\\left(p / 10000^{2i/d_\\mathrm{model}}\\right),$$

sine and cosine taking turns along a row, in float32. With an odd `d_model` the last wave has its sine only.
""".strip(),
        stub=sinusoidal_encoding,
        reference=reference,
        solution=solution,
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
        hints=(
            (
                "Every pair of features is the hand of a clock: its sine and its cosine. How far does the hand of pair "
                "0 turn from one position to the next, and how far that of the last pair?"
            ),
            (
                "The frequency of pair $i$ is $10000^{-2i/d_\\mathrm{model}}$, and `arange(0, d_model, 2)` already "
                "counts $2i$. Angles are positions times frequencies. At odd widths there is one cosine too many: "
                "which one goes?"
            ),
            (
                "Make `angle` by broadcasting a column of positions against a row of frequencies; interleave its sines "
                "and cosines by one `rearrange` to `positions (pairs sin_cos)`, and cut the row at `d_model`."
            ),
        ),
        mistakes=(
            Mistake(
                id="sin_cos_swapped",
                says="Row 0 should begin 0, 1, 0, 1: the sine comes first, at the even features. Yours begins with the "
                "cosine.",
                answers=(wrong.sin_cos_swapped,),
            ),
            Mistake(
                id="concat",
                says="The right numbers in another order: the paper interleaves sine and cosine. (Both work in a "
                "model; the exercise asks for the paper's layout.)",
                answers=(wrong.concat,),
            ),
            Mistake(
                id="only_sines",
                says="Odd features are sines too. With sine and cosine of one angle a shift of position becomes a "
                "rotation; with the sine twice it does not.",
                answers=(wrong.only_sines,),
            ),
            Mistake(
                id="every_feature_its_own",
                says="The sine and the cosine beside it should have the same frequency; in yours every feature has one "
                "of its own. The exponent counts pairs.",
                answers=(wrong.every_feature_its_own, wrong.every_feature_twice_as_fast),
            ),
            Mistake(
                id="exponent_i",
                says="Your waves are too short: the slowest never falls below a frequency of 1/100, where the paper's "
                "go towards 1/10000. The index is halved twice.",
                answers=(wrong.exponent_i,),
            ),
            Mistake(
                id="exponent_2x",
                says="Your waves grow too long too soon, as the index is doubled twice: `arange(0, d_model, 2)` is "
                "already 2i.",
                answers=(wrong.exponent_2x,),
            ),
            Mistake(
                id="sign",
                says="Your frequencies grow with the column; they should shrink. Look at the sign of the exponent.",
                answers=(wrong.sign,),
            ),
            Mistake(
                id="no_base",
                says="Your frequencies rise evenly from 0. The exponent is there, but what is it the power of?",
                answers=(wrong.no_base,),
            ),
            Mistake(
                id="same_frequency",
                says="All pairs turn equally fast, so that after six positions they begin to repeat. Each pair has its "
                "own frequency.",
                answers=(wrong.same_frequency, wrong.whole_exponent),
            ),
            Mistake(
                id="starts_at_1",
                says="Row 0 should be 0, 1, 0, 1: positions start at 0, yours at 1.",
                answers=(wrong.starts_at_1,),
            ),
            Mistake(
                id="share_of_length",
                says="You divide positions by their number, so that the same position gets another vector in a longer "
                "text. Use the position itself.",
                answers=(wrong.share_of_length,),
            ),
            Mistake(
                id="base_1000",
                says="Column 0 is right, and the further a column stands, the more its speed is off. Check the base.",
                answers=(wrong.base_1000, wrong.base_100_000),
            ),
            Mistake(
                id="logarithm",
                says="Your frequencies fall too slowly. Whoever writes the power with `exp` needs the natural "
                "logarithm of 10000; is yours to base 10, or missing?",
                answers=(wrong.natural_base, wrong.log_of_base_ten),
            ),
            Mistake(
                id="endpoints",
                says="Your slowest wave has the frequency 1/10000 exactly, as in the Tensor2Tensor code: it divides by "
                "the number of pairs less one. The paper's formula divides 2i by d_model.",
                answers=(wrong.endpoints,),
            ),
            Mistake(
                id="unit_of_angle",
                says="Feature 0 should be sin(0), sin(1), sin(2), ... in radians. Your angles carry another factor, 2π "
                "or π/180.",
                answers=(wrong.times_two_pi, wrong.in_degrees),
            ),
            Mistake(
                id="odd_d_crash",
                says="An odd width fails: there is one sine more than there are cosines. Which wave has its sine only?",
                answers=(wrong.odd_d_crash,),
            ),
            Mistake(
                id="one_too_wide",
                says="At an odd width your rows are one feature too wide: the last cosine has no place in the table.",
                answers=(wrong.one_too_wide,),
            ),
            Mistake(
                id="last_left_empty",
                says="At an odd width the last feature is missing, or zero at all positions. It should be a sine: "
                "there is one sine more than there are cosines.",
                answers=(wrong.one_too_narrow, wrong.last_left_empty),
            ),
            Mistake(
                id="widened_when_odd",
                says="At an odd width you compute the frequencies of the next even one, so that all but the first are "
                "a little off. The formula divides by d_model as it is.",
                answers=(wrong.widened_when_odd,),
            ),
            Mistake(
                id="last_cosine_cut",
                says="Right for odd widths; at even ones every sine has its cosine, and you still cut the last one.",
                answers=(wrong.last_cosine_cut,),
            ),
            Mistake(
                id="extra_batch",
                says="An extra axis stands in front. Return `max_len d_model`, one row for each position; broadcasting "
                "does the rest.",
                answers=(wrong.extra_batch,),
            ),
            Mistake(
                id="transposed",
                says="Rows and columns are exchanged. Return `max_len d_model`, one row for each position.",
                answers=(wrong.transposed,),
            ),
            Mistake(
                id="one_position",
                says="You give the vector of a single position. The table has one row for each position from 0 on.",
                answers=(wrong.one_position,),
            ),
            Mistake(
                id="in_float64",
                says="The numbers are right, in float64. The table is added to embeddings in float32: convert the "
                "result. (To compute the angles in float64 is a good idea.)",
                answers=(wrong.in_float64,),
            ),
            Mistake(
                id="as_numpy",
                says="The right numbers, as a NumPy array. The table should be a torch tensor.",
                answers=(wrong.as_numpy,),
            ),
            Mistake(
                id="as_parameter",
                says="You return a Parameter, which training would change. This table is fixed: return a plain tensor; "
                "a module keeps it as a buffer.",
                answers=(wrong.as_parameter,),
            ),
        ),
        properties=PROPERTIES,
        forbids=("sinusoidal_encoding", "SinusoidalPositions"),
        difficulty=1,
        minutes=15,
        section="04-positions",
    ),
)
