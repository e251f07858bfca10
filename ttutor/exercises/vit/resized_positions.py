"""Exercise: a position table for a finer grid of patches."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.exercises.facts import gradients, traced


def resized_positions(table: Float[Tensor, "tokens d_model"], side: int) -> Float[Tensor, "new_tokens d_model"]:
    """Positions for a class token and side times side patches, read off between the old ones."""
    old_side = round((len(table) - 1) ** 0.5)
    grid = rearrange(table[1:], "(rows columns) d_model -> 1 d_model rows columns", rows=old_side)
    grid = functional.interpolate(grid, size=(side, side), mode="bilinear", align_corners=False)
    return torch.cat([table[:1], rearrange(grid, "1 d_model rows columns -> (rows columns) d_model")])


def reference(table, side):
    """The same by the weights of each new place: one table for rows and columns alike."""
    old = round((len(table) - 1) ** 0.5)
    place = ((torch.arange(side, dtype=table.dtype) + 0.5) * old / side - 0.5).clamp(0, old - 1)
    share = (1 - (place[:, None] - torch.arange(old, dtype=table.dtype)).abs()).clamp(min=0)
    grid = rearrange(table[1:], "(rows columns) d_model -> rows columns d_model", rows=old)
    finer = einsum(share, share, grid, "below rows, across columns, rows columns d_model -> below across d_model")
    return torch.cat([table[:1], rearrange(finer, "below across d_model -> (below across) d_model")])


def observe(answer, table, side):
    """Return the new table, and the gradient that arrives at the old one."""
    with traced(table) as (leaves, handed):
        came = answer(*handed, side)
    loss = None
    if isinstance(came, Tensor) and came.is_floating_point():
        loss = (came.flatten() * torch.arange(1.0, came.numel() + 1, dtype=came.dtype)).sum()
    (gradient,) = gradients(loss, leaves, handed)
    return {"the table": came, "the old table's gradient": gradient}


def _finer(random):
    old = drawn(random, 3, 5)
    return torch.randn(old**2 + 1, drawn(random, 4, 5), generator=random, dtype=torch.float64), drawn(random, 6, 8)


exercise = Exercise(
    id="vit.resized_positions",
    title="A table for a finer grid",
    statement="""
A model was trained on small images, and is to read larger ones with patches of the same size: there are more patches
than positions. Make a new table by interpolating the old one in two dimensions, linearly in each (`bilinear`, and the
corners of the *image* kept in place, not the centres of the corner patches: `align_corners=False`). The first row is
the class token's, which stands nowhere in the image; the others are a square grid, row by row. Gradients flow back to
the old table.
""".strip(),
    reference=reference,
    solution=resized_positions,
    explanation="""
To interpolate along the sequence instead would blend the last patch of each row with the first of the next, which are
neighbours in the list and opposite borders in the image. This is the one place, beside the cutting, where the authors
put the image's two dimensions into the model by hand.
""".strip(),
    cases=(Case(name="a grid that becomes finer", inputs=_finer, points=2),),
    hints="""
Which rows of the table have a place in the image? Which are neighbours there and not in the list?

`torch.nn.functional.interpolate` wants batch, channels, rows, columns. What plays the part of the channels?

Keep row 0 aside. Make the others a grid with the features in front, interpolate, bring the features back to the end and
the grid into one line, and join.
""",
    observe=observe,
    forbids=("interpolate_positions", "with_image_size"),
    difficulty=2,
    minutes=20,
    section="10-vit",
)

exercise.mutations(r"""
axes_not_moved: 'rearrange(table[1:], "(rows columns) d_model -> 1 d_model rows columns", rows=old_side)' ->
  "table[1:].reshape(1, -1, old_side, old_side)"
    Numbers of different features are blended: a plain reshape does not bring the features in front. Name the axes
    before you interpolate.
columns_first: "-> (rows columns) d_model" -> "-> (columns rows) d_model"
    Your grid is read column by column at the end, and row by row at the beginning.
corners_aligned: "align_corners=False" -> "align_corners=True"
    You keep the centres of the corner patches in place. A finer grid of the same image has outer patches nearer to the
    border.
nearest: 'mode="bilinear", align_corners=False' -> 'mode="nearest"'
    Every new position is a copy of an old one. The exercise asks what lies between them.
bicubic: "bilinear" -> "bicubic"
    Your curve is cubic, as in the package. Here each direction is to be linear.
class_token_lost: "[table[:1], " -> "["
    The class token's row is missing.
class_token_changed: "[table[:1]" -> "[table.mean(dim=0, keepdim=True)"
    The patches are right. The class token's row should be what it was.
detached: "old_side = " -> "table = table.detach()\n    old_side = "
    The numbers are right, but no gradient reaches the old table. What takes it out of the graph?
""")


@exercise.mistake(
    "You interpolate the whole list, the class token with it. It has no place in the image, and neighbours in the list "
    "need not be neighbours there."
)
def class_token_in_the_line(table, side):
    return functional.interpolate(table.T[None], size=side**2 + 1, mode="linear", align_corners=False)[0].T


@exercise.mistake(
    "You interpolate along the list. There the end of one row stands beside the start of the next; in the image they "
    "are far apart."
)
def patches_in_a_line(table, side):
    line = functional.interpolate(table[1:].T[None], size=side**2, mode="linear", align_corners=False)[0].T
    return torch.cat([table[:1], line])


@exercise.must_hold("The class token's position is no part of the grid and stays as it is.")
def first_row_stays(trial: Trial) -> str | None:
    change = (trial.value["the table"][0] - trial.inputs[0][0]).abs().max().item()
    return None if change < 1e-6 else f"The first row has changed by up to {change:.2g}."


@exercise.must_hold("If all patches had the same position, all new ones have it too.")
def flat_stays_flat(trial: Trial) -> str | None:
    table, side = trial.inputs
    flat = table.clone()
    flat[1:] = table[1]
    change = (trial.run(flat, side)["the table"][1:] - table[1]).abs().max().item()
    return None if change < 1e-5 else f"All patches had one position, and yours differ from it by up to {change:.2g}."
