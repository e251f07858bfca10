"""Exercise: a class token in front of the patches, and positions for all."""

import torch
from einops import repeat
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.exercises.facts import gradients, traced


def observe(answer, patches, class_token, positions):
    """Return the tokens, and what a loss that weights them by their place sends back to token and positions."""
    with traced(class_token, positions) as (leaves, handed):
        tokens = answer(patches, *handed)
    loss = None
    if isinstance(tokens, Tensor) and tokens.is_floating_point():
        loss = (tokens.flatten() * torch.arange(1.0, tokens.numel() + 1)).sum()
    to_token, to_positions = gradients(loss, leaves, handed)
    return {"the tokens": tokens, "the class token's gradient": to_token, "the positions' gradient": to_positions}


def add_class_token(
    patches: Float[Tensor, "batch patches d_model"],
    class_token: Float[Tensor, "1 1 d_model"],
    positions: Float[Tensor, "tokens d_model"],
) -> Float[Tensor, "batch tokens d_model"]:
    """Put the class token before the patches of every image, and add to each token its position."""
    class_tokens = repeat(class_token, "1 1 d_model -> batch 1 d_model", batch=len(patches))
    return torch.cat([class_tokens, patches], dim=1) + positions


def reference(patches, class_token, positions):
    return torch.stack([torch.cat([class_token[0], image]) + positions for image in patches])


def _images(generator, batch, n_patches, d_model):
    return (
        torch.randn(batch, n_patches, d_model, generator=generator),
        torch.randn(1, 1, d_model, generator=generator),
        2 * torch.randn(n_patches + 1, d_model, generator=generator),
    )


def _three_images(generator):
    return _images(generator, 3, drawn(generator, 5, 8), 4)


def _one_image(generator):
    return _images(generator, 1, 6, drawn(generator, 3, 5))


exercise = Exercise(
    id="vit.class_token",
    title="A token that stands for the whole image",
    statement="""
An encoder gives one vector for each token, but a classifier needs one for the image. So one more token is put before
the patches, the class token: a learned vector, the same for every image, in which the layers can gather what they need.

Write the step that does it: put `class_token` before the patches of every image, then add to each token its row of
`positions`. The table has one row more than there are patches; its first row is the class token's. Gradients flow back
to `class_token` and `positions`, which are learned.
""".strip(),
    reference=reference,
    solution=add_class_token,
    explanation="""
The class token is the same for all images, so it is repeated along the batch and not copied by hand; gradients of all
images then add up in one vector. Positions are added after joining, because the class token has one too.
""".strip(),
    cases=(
        Case(name="three images", inputs=_three_images, points=2),
        Case(name="a single image", inputs=_one_image),
    ),
    hints="""
How many tokens go in for each image, and how many come out? Which row of `positions` belongs to patch 0?

`torch.cat` joins tensors whose other axes have the same sizes. The class token has one entry along the batch axis; how
many does it need? An expanded tensor is enough, no copy is required.

Expand the class token to batch, 1, d_model; join it and the patches along axis 1, the class token first; then add the
whole table. It has the two last axes of the result and broadcasts over the batch.
""",
    observe=observe,
    forbids=("VisionEncoder", "ViT"),
    difficulty=1,
    minutes=10,
    section="10-vit",
)

exercise.mutations("""
not_expanded: 'repeat(class_token, "1 1 d_model -> batch 1 d_model", batch=len(patches))' -> "class_token"
    This works for one image only: the class token has one entry along the batch axis, and `cat` does not broadcast.
    Expand it to the batch first.
loses_the_batch: "torch.cat([class_tokens, patches], dim=1) + positions" ->
  "(torch.cat([class_tokens, patches], dim=1) + positions).squeeze()"
    With one image the batch axis is gone: `squeeze()` removes every axis of size one, that of the batch too.
appended_last: "[class_tokens, patches]" -> "[patches, class_tokens]"
    The class token is your last one. It belongs at index 0, where the classifier reads it.
no_pos_on_cls: "patches], dim=1) + positions" -> "patches + positions[1:]], dim=1)"
    The patches are right, but the class token has no position. It has one too: the table's row 0.
pos_before_cls: "patches], dim=1) + positions" -> "patches + positions[:-1]], dim=1)"
    Positions are shifted by one, and the class token has none: patch 0 has got the row of the class token. Do you add
    them before there is a class token?
no_pos: " + positions" -> ""
    No positions are added: an encoder could then shuffle the patches without noticing.
added_not_cat: "torch.cat([class_tokens, patches], dim=1) + positions" -> "patches + class_token + positions[1:]"
    You add the class token to every patch, so that there are as many tokens as patches. It is a token of its own: one
    more.
replaces_first_patch: "patches], dim=1) + positions" -> "patches[:, 1:]], dim=1) + positions[:-1]"
    The class token has taken the place of the first patch, which is lost. One token more should come out than patches
    go in.
class_token_ignored: "repeat(class_token" -> "repeat(torch.zeros_like(class_token)"
    The first token is the same whatever class token is handed over: you begin with zeros of your own. It is a learnt
    vector, and comes as an argument.
one_position_for_all: "+ positions" -> "+ positions[0]"
    Every token has got the same position, row 0. Each has a row of its own.
joined_along_features: "torch.cat([class_tokens, patches], dim=1) + positions" ->
  "torch.cat([class_token.expand_as(patches), patches], dim=-1)"
    The tokens have become wider instead of more: you join along the features. Which axis counts tokens?
detached: "repeat(class_token" -> "repeat(class_token.detach()"
    The values are right, but no gradient reaches the class token, so that it would never be learnt. `.data` and
    `.detach()` leave the graph: where do you use one?
inplace: "[class_tokens, patches], dim=1) + positions" ->
  "[class_tokens + positions[0], patches.add_(positions[1:])], dim=1)"
    Your result is right, but the patches you were given have changed: whoever uses them again finds positions in them.
    `+=` edits the caller's tensor.
""")


@exercise.must_hold("The class token knows nothing of the image yet, so the first token should be the same for all.")
def same_for_every_image(trial: Trial) -> str | None:
    """Look whether every image begins with the same vector."""
    spread = (trial.value["the tokens"][:, 0] - trial.value["the tokens"][:1, 0]).abs().max().item()
    return None if spread == 0 else f"Between two images your first tokens differ by up to {spread:.2g}."


@exercise.must_hold("Patch i should stand at token i + 1, and nowhere else.")
def patches_follow(trial: Trial) -> str | None:
    """Move one patch and look which tokens move."""
    patches, class_token, positions = trial.inputs
    moved = patches.clone()
    moved[:, 2] += 1
    change = (trial.run(moved, class_token, positions)["the tokens"] - trial.value["the tokens"]).abs().amax(dim=(0, 2))
    where = change.nonzero().flatten().tolist()
    return None if where == [3] else f"Changing patch 2 (counted from 0) changes these of your tokens: {where}."


@exercise.must_hold("Row i of the table should go to token i, and nowhere else.")
def positions_follow(trial: Trial) -> str | None:
    """Move one position and look which tokens move, and by how much."""
    patches, class_token, positions = trial.inputs
    moved = positions.clone()
    moved[4] += 1
    change = trial.run(patches, class_token, moved)["the tokens"] - trial.value["the tokens"]
    where = change.abs().amax(dim=(0, 2)).gt(1e-4).nonzero().flatten().tolist()
    return None if where == [4] else f"Changing position 4 changes these of your tokens: {where}."


@exercise.must_hold(
    "Class token and positions are learnt, so a loss must send its gradient to both: what leaves the graph?"
)
def gradients_arrive(trial: Trial) -> str | None:
    """Look for a gradient of zeros."""
    lost = [name for name, part in trial.value.items() if name != "the tokens" and not part.any()]
    return f"All zeros: {' and '.join(lost)}." if lost else None
