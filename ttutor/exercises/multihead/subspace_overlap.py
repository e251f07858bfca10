"""Exercise: how much two heads' subspaces have in common."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def subspace_overlap(
    w_one: Float[Tensor, "d_one d_model"], w_other: Float[Tensor, "d_other d_model"]
) -> Float[Tensor, " d_smaller"]:
    """The cosines of the principal angles between the spaces that the rows of two matrices span, largest first."""
    basis_one, _ = torch.linalg.qr(w_one.T)
    basis_other, _ = torch.linalg.qr(w_other.T)
    return torch.linalg.svdvals(basis_one.T @ basis_other)


def reference(w_one, w_other):
    basis_one, basis_other = (torch.linalg.svd(w, full_matrices=False)[2] for w in (w_one, w_other))
    return torch.linalg.svdvals(basis_one @ basis_other.T)


def _matrices(random):
    """Two spaces of different sizes that have two directions in common."""
    d_one, d_other, d_model = drawn(random, 5, 6), drawn(random, 3, 4), drawn(random, 12, 15)
    one, other = (torch.randn(d, d_model, generator=random, dtype=torch.float64) for d in (d_one, d_other))
    other[:2] = torch.randn(2, d_one, generator=random, dtype=torch.float64) @ one
    return one, other


exercise = Exercise(
    id="multihead.subspace_overlap",
    title="The angle between two heads",
    statement=r"""Two heads read the stream through matrices $W$ and $W'$, stored `d_head d_model`. What a head can
see is the space that the rows span. The *principal cosines* say how much two such spaces have in common: the first is
the largest cosine between a vector of one and a vector of the other; the second is the largest among vectors orthogonal
to the first pair; and so on. All are 1 if the spaces are equal, all 0 if they are orthogonal.

Write them, largest first, with tools of `torch.linalg`. Then use your function: are the heads of an untrained layer
orthogonal?""",
    reference=reference,
    solution=subspace_overlap,
    explanation="Choose an orthonormal basis of each space (QR of the transposed matrix). For unit vectors $a = "
    "Bx$ and $b = B'y$ the cosine is $x^\\top B^\\top B' y$; its largest value over unit $x, y$, then the next "
    "among those orthogonal to the first, are by definition the singular values of $B^\\top B'$. Without "
    "orthonormal bases the lengths and angles *within* each head come in, and the result says more about $W$ "
    "than about its space.",
    cases=(Case(name="two directions in common", inputs=_matrices),),
    hints=r"""
A space has many bases, and the answer must not depend on which one the matrix happens to hold.

With orthonormal bases $B$ and $B'$ as columns, the cosine of $Bx$ and $B'y$ is $x^\top (B^\top B') y$.

`torch.linalg.qr` of each transposed matrix, then `torch.linalg.svdvals` of the product of the two bases.
""",
    difficulty=3,
    minutes=30,
    section="03-multihead",
)

exercise.mutations("""
not_orthonormal: "basis_one.T @ basis_other" -> "w_one @ w_other.T"
    You take the matrices as they are: their lengths come in, and your numbers exceed 1. Go over to orthonormal bases
    first.
rows_of_length_one: "basis_one.T @ basis_other" ->
  "w_one / w_one.norm(dim=1, keepdim=True) @ (w_other / w_other.norm(dim=1, keepdim=True)).T"
    Rows of length 1 are not enough: they are not at right angles to one another either.
divided_by_sizes: "svdvals(basis_one.T @ basis_other)" ->
  "svdvals(w_one @ w_other.T) / (torch.linalg.norm(w_one, 2) * torch.linalg.norm(w_other, 2))"
    Dividing by the sizes keeps the numbers below 1 and the lengths in. Choose another basis instead.
squared: "@ basis_other)" -> "@ basis_other).square()"
    These are the squares of the cosines. Their mean is a useful number, too, but was not asked for.
angles: "@ basis_other)" -> "@ basis_other).clamp(max=1).acos()"
    These are the angles in radians; the exercise asks for their cosines.
sines: "@ basis_other)" -> "@ basis_other).square().neg().add(1).clamp(min=0).sqrt()"
    These are the sines, which are large when the spaces are far apart. The exercise asks for the cosines.
smallest_first: "@ basis_other)" -> "@ basis_other).flip(0)"
    The order is reversed: the largest comes first.
largest_alone: "@ basis_other)" -> "@ basis_other)[:1]"
    There are as many angles as the smaller space has dimensions; you give the first alone.
entry_by_entry: "torch.linalg.svdvals(basis_one.T @ basis_other)" ->
  "(basis_one.T @ basis_other).diagonal().abs().sort(descending=True).values"
    You compare the first basis vector with the first, the second with the second. Other bases would give other numbers.
    Which numbers of a matrix do not change when both bases are turned?
""")


@exercise.must_hold("Cosines of such angles lie between 0 and 1.")
def between_0_and_1(trial: Trial) -> str | None:
    low, high = trial.value.min().item(), trial.value.max().item()
    return None if low >= -1e-6 and high <= 1 + 1e-6 else f"Yours run from {low:.3g} to {high:.3g}."


@exercise.must_hold("The answer belongs to the spaces; another basis of the same space must not change it.")
def basis_matters(trial: Trial) -> str | None:
    w_one, w_other = trial.inputs
    generator = torch.Generator().manual_seed(5)
    mixed = torch.randn(len(w_one), len(w_one), generator=generator, dtype=w_one.dtype) @ w_one
    moved = (trial.run(mixed, w_other) - trial.value).abs().max().item()
    return (
        None
        if moved < 1e-6
        else f"I mixed the rows of the first matrix, which spans the same space, and it moved by {moved:.2g}."
    )


@exercise.must_hold("A space and itself have all cosines 1.")
def equal_spaces(trial: Trial) -> str | None:
    w_one = trial.inputs[0]
    off = (trial.run(w_one, w_one) - 1).abs().max().item()
    return None if off < 1e-6 else f"A space with itself should give ones; yours is off by {off:.2g}."
