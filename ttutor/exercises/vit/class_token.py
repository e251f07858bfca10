"""Exercise: a class token in front of the patches, and positions for all."""

import torch
from einops import repeat
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake
from ttutor.exercises.vit import class_token_mistakes as wrong
from ttutor.exercises.vit.class_token_probes import PROPERTIES, observe


def add_class_token(
    patches: Float[Tensor, "batch patches d_model"],
    class_token: Float[Tensor, "1 1 d_model"],
    positions: Float[Tensor, "tokens d_model"],
) -> Float[Tensor, "batch tokens d_model"]:
    """Put the class token before the patches of every image, and add to each token its position."""
    ...


def solution(
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
    return _images(generator, 3, 5, 4)


def _one_image(generator):
    return _images(generator, 1, 6, 3)


EXERCISES = (
    Exercise(
        id="vit.class_token",
        title="A token that stands for the whole image",
        statement="""
An encoder gives one vector for each token, but a classifier needs one for the image. So one more token is put before
the patches, the class token: a learned vector, the same for every image, in which the layers can gather what they need.

Write the step that does it: put `class_token` before the patches of every image, then add to each token its row of
`positions`. The table has one row more than there are patches; its first row is the class token's.
""".strip(),
        stub=add_class_token,
        reference=reference,
        solution=solution,
        explanation="""
The class token is the same for all images, so it is repeated along the batch and not copied by hand; gradients of all
images then add up in one vector. Positions are added after joining, because the class token has one too.
""".strip(),
        cases=(
            Case(name="three images of five patches", inputs=_three_images, points=2),
            Case(name="a single image", inputs=_one_image),
        ),
        hints=(
            "How many tokens go in for each image, and how many come out? Which row of `positions` belongs to patch 0?",
            (
                "`torch.cat` joins tensors whose other axes have the same sizes. The class token has one entry along "
                "the batch axis; how many does it need? An expanded tensor is enough, no copy is required."
            ),
            (
                "Expand the class token to batch, 1, d_model; join it and the patches along axis 1, the class token "
                "first; then add the whole table. It has the two last axes of the result and broadcasts over the batch."
            ),
        ),
        mistakes=(
            Mistake(
                id="not_expanded",
                says="This works for one image only: the class token has one entry along the batch axis, and `cat` "
                "does not broadcast. Expand it to the batch first.",
                answers=(wrong.not_expanded,),
            ),
            Mistake(
                id="loses_the_batch",
                says="With one image the batch axis is gone: `squeeze()` removes every axis of size one, that of the "
                "batch too.",
                answers=(wrong.squeezed,),
            ),
            Mistake(
                id="appended_last",
                says="The class token is your last one. It belongs at index 0, where the classifier reads it.",
                answers=(wrong.appended_last, wrong.appended_last_with_its_position),
            ),
            Mistake(
                id="no_pos_on_cls",
                says="The patches are right, but the class token has no position. It has one too: the table's row 0.",
                answers=(wrong.no_pos_on_cls,),
            ),
            Mistake(
                id="pos_before_cls",
                says="Positions are shifted by one, and the class token has none: patch 0 has got the row of the class "
                "token. Do you add them before there is a class token?",
                answers=(wrong.pos_before_cls,),
            ),
            Mistake(
                id="pos_of_cls_last",
                says="The tokens are in the right order, but the class token has the table's last row, and every patch "
                "that of its left neighbour. The first row belongs to the first token.",
                answers=(wrong.pos_of_cls_last,),
            ),
            Mistake(
                id="no_pos",
                says="No positions are added: an encoder could then shuffle the patches without noticing.",
                answers=(wrong.no_pos,),
            ),
            Mistake(
                id="added_not_cat",
                says="You add the class token to every patch, so that there are as many tokens as patches. It is a "
                "token of its own: one more.",
                answers=(wrong.added_not_cat, wrong.added_not_cat_from_zero),
            ),
            Mistake(
                id="replaces_first_patch",
                says="The class token has taken the place of the first patch, which is lost. One token more should "
                "come out than patches go in.",
                answers=(wrong.replaces_first_patch,),
            ),
            Mistake(
                id="positions_twice",
                says="The class token is right, but the patches have their positions twice: once before joining and "
                "once after. Which of the two serves both?",
                answers=(wrong.only_positions_on_patches_twice,),
            ),
            Mistake(
                id="positions_multiplied",
                says="You multiply by the positions. They are added, so that a position of zeros changes nothing.",
                answers=(wrong.positions_multiplied,),
            ),
            Mistake(
                id="class_token_ignored",
                says="The first token is the same whatever class token is handed over: you begin with zeros of your "
                "own. It is a learnt vector, and comes as an argument.",
                answers=(wrong.class_token_ignored,),
            ),
            Mistake(
                id="mean_of_patches",
                says="Your first token is the mean of the patches. That is another way to sum up an image (pooling); "
                "the class token is a vector that does not depend on it.",
                answers=(wrong.token_of_every_image,),
            ),
            Mistake(
                id="one_position_for_all",
                says="Every token has got the same position, row 0. Each has a row of its own.",
                answers=(wrong.one_position_for_all,),
            ),
            Mistake(
                id="position_per_image",
                says="All tokens of one image have the same position, and those of the next image another: the table "
                "runs along the batch. It belongs along the tokens.",
                answers=(wrong.position_per_image,),
            ),
            Mistake(
                id="joined_along_features",
                says="The tokens have become wider instead of more: you join along the features. Which axis counts "
                "tokens?",
                answers=(wrong.joined_along_features,),
            ),
            Mistake(
                id="joined_along_batch",
                says="There is one image more instead of one token more: you join along the batch.",
                answers=(wrong.joined_along_batch,),
            ),
            Mistake(
                id="detached",
                says="The values are right, but no gradient reaches the class token, so that it would never be learnt. "
                "`.data` and `.detach()` leave the graph: where do you use one?",
                answers=(wrong.detached, wrong.copied_from_data),
            ),
            Mistake(
                id="detached_positions",
                says="The values are right, but no gradient reaches the positions, so that they would stay as they "
                "were drawn. What takes them out of the graph?",
                answers=(wrong.detached_positions,),
            ),
            Mistake(
                id="inplace",
                says="Your result is right, but the patches you were given have changed: whoever uses them again finds "
                "positions in them. `+=` edits the caller's tensor.",
                answers=(wrong.inplace,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe,
        forbids=("VisionEncoder", "ViT"),
        difficulty=1,
        minutes=10,
        section="10-vit",
    ),
)
