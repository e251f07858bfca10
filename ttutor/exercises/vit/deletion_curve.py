"""Exercise: take the patches that a map ranks highest out of the image, one after another, and ask the model again."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial
from ttutor.exercises.vit import deletion_curve_mistakes as wrong
from ttutor.variants.patches import patchify, unpatchify


def deletion_curve(
    model: Callable[[Tensor], Tensor],
    image: Float[Tensor, "channels height width"],
    fill: Float[Tensor, "channels height width"],
    scores: Float[Tensor, "rows columns"],
    class_id: int,
) -> Float[Tensor, " steps"]:
    """The probability of a class with 0, 1, ... and at last all patches replaced, the highest scores first."""
    ...


def solution(
    model: Callable[[Tensor], Tensor],
    image: Float[Tensor, "channels height width"],
    fill: Float[Tensor, "channels height width"],
    scores: Float[Tensor, "rows columns"],
    class_id: int,
) -> Float[Tensor, " steps"]:
    """The probability of a class with 0, 1, ... and at last all patches replaced, the highest scores first."""
    patch_size = image.shape[-1] // scores.shape[-1]
    kept, other = (patchify(rearrange(x, "... -> 1 ..."), patch_size) for x in (image, fill))
    order = rearrange(scores, "rows columns -> (rows columns)").argsort(descending=True)
    stages = [kept]
    for place in order.tolist():
        stages.append(stages[-1].clone())
        stages[-1][:, place] = other[:, place]
    images = unpatchify(torch.cat(stages), patch_size, n_rows=len(scores))
    return model(images).softmax(dim=-1)[:, class_id]


def _begins_elsewhere(trial: Trial) -> str | None:
    model, image, _, _, class_id = trial.inputs
    right = model(image[None])[0].softmax(dim=-1)[class_id].item()
    return (
        None if abs(trial.value[0].item() - right) < 1e-6 else f"Yours begins at {trial.value[0]:.4f}, not {right:.4f}."
    )


def _ends_elsewhere(trial: Trial) -> str | None:
    model, _, fill, _, class_id = trial.inputs
    right = model(fill[None])[0].softmax(dim=-1)[class_id].item()
    return (
        None if abs(trial.value[-1].item() - right) < 1e-6 else f"Yours ends at {trial.value[-1]:.4f}, not {right:.4f}."
    )


def _model(kernel, images):
    return 0.05 * torch.einsum("kchw,bchw->bk", kernel, images + images**2)


def _a_wide_image(random):
    kernel = torch.randn(5, 2, 6, 9, generator=random, dtype=torch.float64)
    picture, fill = torch.randn(2, 2, 6, 9, generator=random, dtype=torch.float64)
    picture, fill = picture + 1, fill - 1
    scores = torch.randn(2, 3, generator=random, dtype=torch.float64)
    model = partial(_model, kernel)
    lowest = int(model(picture[None])[0].argmin())
    return model, picture, fill, scores, lowest if lowest else 1


EXERCISES = (
    Exercise(
        id="vit.deletion_curve",
        title="Take away what it looks at",
        statement="""
Write the deletion test. `scores` has one number for each square of the image. Replace squares by the same squares of
`fill`, the highest score first, and keep what is replaced: first none, then one, then two, up to all. Return the
probability that the model gives to `class_id` at each stage, one number more than there are squares. `model` maps
images (with a batch axis) to logits. The caller's image stays as it was.
""".strip(),
        stub=deletion_curve,
        reference=wrong.reference,
        solution=solution,
        explanation="""
The two ends are the same for every map: the image as it is, and the fill. What tells maps apart is how fast the curve
falls between them, and only in comparison: with a random order, with an order by brightness, and with the best order
that you can find. What is filled in matters too. Black squares are something the model has never seen.
""".strip(),
        cases=(Case(name="six squares in two rows", inputs=_a_wide_image, points=2),),
        hints=(
            "How many probabilities are there for six squares? Which of them are the same for every map?",
            "Cut image and fill into patches, put the places in order, and build the stages one from the other.",
            (
                "`argsort(descending=True)` of the flattened scores gives places. Start a list with the patches as "
                "they are; append a copy of its last entry with one more place exchanged; join all and run the model."
            ),
        ),
        mistakes=(
            Mistake(id="lowest_first", says="You begin with the lowest score.", answers=(wrong.lowest_first,)),
            Mistake(
                id="reading_order",
                says="You go through the squares row by row, whatever the scores say.",
                answers=(wrong.reading_order,),
            ),
            Mistake(
                id="absolute",
                says="A strongly negative score comes early in your order. It speaks against the class: highest first.",
                answers=(wrong.largest_number_first,),
            ),
            Mistake(
                id="grid_on_its_side",
                says="Rows and columns are exchanged when you flatten the scores, or when you find the square again.",
                answers=(wrong.grid_on_its_side,),
            ),
            Mistake(
                id="ranks_for_places",
                says="You use each square's rank as if it were a place. Which of the two does your sort return?",
                answers=(wrong.ranks_for_places,),
            ),
            Mistake(
                id="one_at_a_time",
                says="Each square is put back before the next is taken. They stay replaced.",
                answers=(wrong.one_at_a_time,),
            ),
            Mistake(
                id="put_in",
                says="You begin with the fill and put the image in. That is the insertion test, from the other end.",
                answers=(wrong.put_in,),
            ),
            Mistake(
                id="black",
                says="You fill with zeros. Use what is handed over.",
                answers=(wrong.black,),
            ),
            Mistake(
                id="one_pixel_each",
                says="You replace one pixel of each square. How large is a square?",
                answers=(wrong.one_pixel_each,),
            ),
            Mistake(
                id="first_channel",
                says="You replace the first channel alone. A square has all of them.",
                answers=(wrong.first_channel,),
            ),
            Mistake(
                id="log_odds",
                says="Your numbers are log-odds, not probabilities.",
                answers=(wrong.logits_of_the_class,),
            ),
            Mistake(
                id="logits",
                says="Your numbers are the model's logits. A probability knows the other classes.",
                answers=(wrong.raw_logits,),
            ),
            Mistake(
                id="softmax_over_the_steps",
                says="Your numbers sum to one over the stages. The classes of one image are what sums to one.",
                answers=(wrong.softmax_over_the_steps,),
            ),
            Mistake(
                id="largest_class_each_time",
                says="At each stage you take the likeliest class. Follow one class all the way.",
                answers=(wrong.largest_class_each_time,),
            ),
            Mistake(
                id="own_class",
                says="You follow the class that the model names. Asked is the one handed over.",
                answers=(wrong.first_answer_kept,),
            ),
            Mistake(
                id="without_the_beginning",
                says="The stage in which nothing is replaced is missing.",
                answers=(wrong.without_the_beginning,),
            ),
            Mistake(
                id="without_the_end",
                says="The stage in which all is replaced is missing.",
                answers=(wrong.without_the_end,),
            ),
            Mistake(
                id="drop",
                says="You return how much was lost. Return the probabilities themselves.",
                answers=(wrong.drop_instead,),
            ),
        ),
        properties=(
            Property(
                id="begins_with_the_image",
                says="The first number is the probability for the untouched image.",
                broken=_begins_elsewhere,
            ),
            Property(
                id="ends_with_the_fill",
                says="With all squares replaced the model sees the fill.",
                broken=_ends_elsewhere,
            ),
        ),
        difficulty=2,
        minutes=25,
        section="10-vit",
    ),
)
