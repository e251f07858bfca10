"""Exercise: derive the matrix that moves every sinusoidal position alike, and build it."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor import positions
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """The matrix M, in float64, with M @ PE(p) = PE(p + offset) for every position p."""
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for even in range(0, d_model, 2):
        angle = torch.tensor(offset * 10000.0 ** (-even / d_model), dtype=torch.float64)
        cos, sin = angle.cos(), angle.sin()
        matrix[even, even], matrix[even, even + 1] = cos, sin
        matrix[even + 1, even], matrix[even + 1, even + 1] = -sin, cos
    return matrix


def reference(offset, d_model):
    return positions.shift_matrix(offset, d_model)


def _waves(n_positions: int, d_model: int) -> Tensor:
    """The encoding in float64."""
    angle = torch.outer(
        torch.arange(n_positions, dtype=torch.float64),
        10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model),
    )
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def _shift(generator):
    return drawn(generator, 3, 3000), one_of(generator, (6, 8, 10))


exercise = Exercise(
    id="positions.shift_matrix",
    title="One matrix moves them all",
    statement="""
Derive, on paper, a matrix $M_k$ with $M_k\\,PE(p) = PE(p + k)$ for *every* position $p$, from the addition formulas
$\\sin(a + b) = \\sin a \\cos b + \\cos a \\sin b$ and $\\cos(a + b) = \\cos a \\cos b - \\sin a \\sin b$. Show that it
contains no $p$, that $M_k M_k^\\top = I$, and that $M_j M_k = M_{j+k}$. Then build it, in float64, for an even
`d_model` and the paper's layout: sine and cosine taking turns.
""".strip(),
    reference=reference,
    solution=shift_matrix,
    explanation="""
For one pair with frequency $\\omega$ the addition formulas read

$$\\begin{pmatrix}\\sin \\omega(p+k)\\\\ \\cos \\omega(p+k)\\end{pmatrix} =
  \\begin{pmatrix}\\cos \\omega k & \\sin \\omega k\\\\ -\\sin \\omega k & \\cos \\omega k\\end{pmatrix}
  \\begin{pmatrix}\\sin \\omega p\\\\ \\cos \\omega p\\end{pmatrix},$$

and no $p$ is left in the matrix. It is a rotation, so that its transpose undoes it, and turns add up: a turn by
$\\omega j$ after one by $\\omega k$ is one by $\\omega(j + k)$. All pairs together give a matrix with these blocks on
its diagonal and zeros elsewhere. With sines alone there would be no such matrix: $\\sin\\omega(p+k)$ needs the cosine.
""".strip(),
    cases=(Case(name="one shift", inputs=_shift, points=2),),
    hints=r"""
Take one pair of features alone. What do $\sin \omega(p+k)$ and $\cos \omega(p+k)$ become?

Each pair gives a block of two by two, with $\cos \omega k$ on its diagonal. The first row makes the new sine: what does
it take of the old cosine?

The blocks stand along the diagonal of a matrix of zeros. Row `2i` holds cosine and sine of $k\omega_i$, row `2i + 1`
minus the sine, and the cosine.
""",
    forbids=("shift_matrix",),
    difficulty=2,
    minutes=25,
    section="04-positions",
)

exercise.mutations(r"""
backwards: "angle.sin()" -> "-angle.sin()"
    Your matrix moves every position the other way: position 5 goes to 0. The first row makes the new sine; check its
    sign.
halves: "return matrix" -> "order = [*range(0, d_model, 2), *range(1, d_model, 2)]\n    return matrix[order][:, order]"
    Your matrix suits a vector with all sines first. In the paper's layout sine and cosine take turns.
one_step: "offset * 10000.0" -> "10000.0"
    Your matrix moves by one position whatever the offset is.
one_angle: "offset * 10000.0 ** (-even / d_model)" -> "float(offset)"
    All pairs turn by the same angle. Each has its own frequency.
frequency_by_pair: "-even / d_model" -> "-even / 2 / d_model"
    Your frequencies fall too slowly: the exponent of pair i is 2i divided by d_model.
frequency_by_feature: "= -sin, cos" ->
  "= -(angle * 10000.0 ** (-1 / d_model)).sin(), (angle * 10000.0 ** (-1 / d_model)).cos()"
    The two rows of a block have different frequencies. A sine and its cosine share one.
only_cosines: "angle.sin()" -> "0.0 * angle"
    Your matrix is diagonal: it shrinks features and turns nothing. The new sine needs the old cosine.
mirrored: "-sin, cos" -> "sin, cos"
    Your blocks are reflections: both sines have the same sign. In a rotation they differ.
permutation: "return matrix" -> "return torch.eye(d_model, dtype=torch.float64).roll(offset, dims=0)"
    You move the features along the vector. A position is not a feature: it is told by all of them.
in_float32: "return matrix" -> "return matrix.float()"
    The right numbers in float32. The exercise asks for float64.
""")


@exercise.mistake(
    "Your matrix serves one position only: it was built from that position's vector. It must not contain any p."
)
def one_position(offset, d_model):
    waves = _waves(offset + 1, d_model)
    return torch.outer(waves[offset], waves[0]) / (d_model / 2)


@exercise.must_hold("Position 0 has the vector 0, 1, 0, 1, and so on. What are its products with your rows?")
def moves_zero(trial: Trial) -> str | None:
    offset, d_model = trial.inputs
    waves = _waves(offset + 1, d_model)
    error = (trial.value @ waves[0] - waves[offset]).abs().max().item()
    return None if error < 1e-6 else f"Position 0 should go to position {offset}; a feature is off by {error:.2g}."


@exercise.must_hold("One matrix has to serve all positions.")
def moves_every_position(trial: Trial) -> str | None:
    offset, d_model = trial.inputs
    waves = _waves(50 + offset, d_model)
    error = (waves[:50] @ trial.value.T - waves[offset:]).abs().amax(dim=1)
    place = error.argmax().item()
    if error.max() < 1e-6:
        return None
    return f"Position {place} should go to {place + offset}; a feature is off by {error.max().item():.2g}."


@exercise.must_hold("A rotation, times its transpose, is the identity.")
def is_a_rotation(trial: Trial) -> str | None:
    error = (trial.value @ trial.value.T - torch.eye(len(trial.value), dtype=torch.float64)).abs().max().item()
    return None if error < 1e-6 else f"M times its transpose differs from the identity by {error:.2g}."
