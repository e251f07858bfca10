"""How the step that adds a class token is run, and what is true of every right one."""

import torch
from torch import Tensor

from ttutor.exercises.exercise import Property, Trial
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


def _first_token_that_depends_on_the_image(trial: Trial) -> str | None:
    """Look whether every image begins with the same vector."""
    spread = (trial.value["the tokens"][:, 0] - trial.value["the tokens"][:1, 0]).abs().max().item()
    return None if spread == 0 else f"Between two images your first tokens differ by up to {spread:.2g}."


def _patches_that_are_not_there(trial: Trial) -> str | None:
    """Move one patch and look which tokens move."""
    patches, class_token, positions = trial.inputs
    moved = patches.clone()
    moved[:, 2] += 1
    change = (trial.run(moved, class_token, positions)["the tokens"] - trial.value["the tokens"]).abs().amax(dim=(0, 2))
    where = change.nonzero().flatten().tolist()
    return None if where == [3] else f"Changing patch 2 (counted from 0) changes these of your tokens: {where}."


def _positions_that_are_not_there(trial: Trial) -> str | None:
    """Move one position and look which tokens move, and by how much."""
    patches, class_token, positions = trial.inputs
    moved = positions.clone()
    moved[4] += 1
    change = trial.run(patches, class_token, moved)["the tokens"] - trial.value["the tokens"]
    where = change.abs().amax(dim=(0, 2)).gt(1e-4).nonzero().flatten().tolist()
    return None if where == [4] else f"Changing position 4 changes these of your tokens: {where}."


def _gradient_that_is_missing(trial: Trial) -> str | None:
    """Look for a gradient of zeros."""
    lost = [name for name, part in trial.value.items() if name != "the tokens" and not part.any()]
    return f"All zeros: {' and '.join(lost)}." if lost else None


PROPERTIES = (
    Property(
        id="same_for_every_image",
        says="The class token knows nothing of the image yet, so the first token should be the same for all.",
        broken=_first_token_that_depends_on_the_image,
    ),
    Property(
        id="patches_follow",
        says="Patch i should stand at token i + 1, and nowhere else.",
        broken=_patches_that_are_not_there,
    ),
    Property(
        id="positions_follow",
        says="Row i of the table should go to token i, and nowhere else.",
        broken=_positions_that_are_not_there,
    ),
    Property(
        id="gradients_arrive",
        says="Class token and positions are learnt, so a loss must send its gradient to both: what leaves the graph?",
        broken=_gradient_that_is_missing,
    ),
)
