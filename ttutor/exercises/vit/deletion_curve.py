"""Exercise: take the patches that a map ranks highest out of the image, one after another, and ask the model again."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.variants.patches import patchify, unpatchify


def _curve(model, image, fill, order, columns, size, class_id):
    """Replace square after square, each by its rows and columns of pixels."""
    image, found = image.clone(), []
    for place in [None, *order]:
        if place is not None:
            top, left = place // columns * size, place % columns * size
            image[:, top : top + size, left : left + size] = fill[:, top : top + size, left : left + size]
        found.append(model(image[None])[0].softmax(dim=-1)[class_id])
    return torch.stack(found)


def _order(scores):
    return scores.flatten().argsort(descending=True).tolist()


def _shape(image, scores):
    return scores.shape[1], image.shape[2] // scores.shape[1]


def reference(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(scores), *_shape(image, scores), class_id)


def deletion_curve(
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


def _model(kernel, images):
    return 0.05 * torch.einsum("kchw,bchw->bk", kernel, images + images**2)


def _a_wide_image(random):
    n_rows, n_columns, patch_size = drawn(random, 2, 3), drawn(random, 4, 5), drawn(random, 2, 4)
    shape = drawn(random, 1, 3), n_rows * patch_size, n_columns * patch_size
    kernel = torch.randn(drawn(random, 4, 6), *shape, generator=random, dtype=torch.float64)
    picture, fill = torch.randn(2, *shape, generator=random, dtype=torch.float64)
    picture, fill = picture + 1, fill - 1
    scores = torch.randn(n_rows, n_columns, generator=random, dtype=torch.float64)
    model = partial(_model, kernel)
    lowest = int(model(picture[None])[0].argmin())
    return model, picture, fill, scores, lowest if lowest else 1


exercise = Exercise(
    id="vit.deletion_curve",
    title="Take away what it looks at",
    statement="""
Write the deletion test. `scores` has one number for each square of the image. Replace squares by the same squares of
`fill`, the highest score first, and keep what is replaced: first none, then one, then two, up to all. Return the
probability that the model gives to `class_id` at each stage, one number more than there are squares. `model` maps
images (with a batch axis) to logits. The caller's image stays as it was.
""".strip(),
    reference=reference,
    solution=deletion_curve,
    explanation="""
The two ends are the same for every map: the image as it is, and the fill. What tells maps apart is how fast the curve
falls between them, and only in comparison: with a random order, with an order by brightness, and with the best order
that you can find. What is filled in matters too. Black squares are something the model has never seen.
""".strip(),
    cases=(Case(name="squares in a few rows", inputs=_a_wide_image, points=2),),
    hints="""
How many probabilities are there for six squares? Which of them are the same for every map?

Cut image and fill into patches, put the places in order, and build the stages one from the other.

`argsort(descending=True)` of the flattened scores gives places. Start a list with the patches as they are; append a
copy of its last entry with one more place exchanged; join all and run the model.
""",
    difficulty=2,
    minutes=25,
    section="10-vit",
)


@exercise.mistake("You begin with the lowest score.")
def lowest_first(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(-scores), *_shape(image, scores), class_id)


@exercise.mistake("You go through the squares row by row, whatever the scores say.")
def reading_order(model, image, fill, scores, class_id):
    return _curve(model, image, fill, list(range(scores.numel())), *_shape(image, scores), class_id)


@exercise.mistake("Rows and columns are exchanged when you flatten the scores, or when you find the square again.")
def grid_on_its_side(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(scores.T), *_shape(image, scores), class_id)


@exercise.mistake("You use each square's rank as if it were a place. Which of the two does your sort return?")
def ranks_for_places(model, image, fill, scores, class_id):
    ranks = torch.tensor(_order(scores)).argsort().tolist()
    return _curve(model, image, fill, ranks, *_shape(image, scores), class_id)


@exercise.mistake("Each square is put back before the next is taken. They stay replaced.")
def one_at_a_time(model, image, fill, scores, class_id):
    alone = [_curve(model, image, fill, [place], *_shape(image, scores), class_id)[-1:] for place in _order(scores)]
    return torch.cat([model(image[None]).softmax(dim=-1)[:, class_id], *alone])


@exercise.mistake("You begin with the fill and put the image in. That is the insertion test, from the other end.")
def put_in(model, image, fill, scores, class_id):
    return _curve(model, fill, image, _order(scores), *_shape(image, scores), class_id)


@exercise.mistake(
    "Your numbers are log-odds, not probabilities.",
    id="log_odds",
)
def logits_of_the_class(model, image, fill, scores, class_id):
    return reference(lambda x: model(x).exp().log(), image, fill, scores, class_id).logit()


def _raw(model, image, fill, scores):
    found = []
    reference(lambda x: found.append(model(x)) or found[-1], image, fill, scores, 0)
    return torch.cat(found)


@exercise.mistake("At each stage you take the likeliest class. Follow one class all the way.")
def largest_class_each_time(model, image, fill, scores, class_id):
    return _raw(model, image, fill, scores).softmax(dim=-1).amax(dim=-1)


@exercise.mistake("The stage in which all is replaced is missing.")
def without_the_end(model, image, fill, scores, class_id):
    return reference(model, image, fill, scores, class_id)[:-1]


@exercise.mistake(
    "You return how much was lost. Return the probabilities themselves.",
    id="drop",
)
def drop_instead(model, image, fill, scores, class_id):
    curve = reference(model, image, fill, scores, class_id)
    return curve[0] - curve


@exercise.must_hold("The first number is the probability for the untouched image.")
def begins_with_the_image(trial: Trial) -> str | None:
    model, image, _, _, class_id = trial.inputs
    right = model(image[None])[0].softmax(dim=-1)[class_id].item()
    return (
        None if abs(trial.value[0].item() - right) < 1e-6 else f"Yours begins at {trial.value[0]:.4f}, not {right:.4f}."
    )


@exercise.must_hold("With all squares replaced the model sees the fill.")
def ends_with_the_fill(trial: Trial) -> str | None:
    model, _, fill, _, class_id = trial.inputs
    right = model(fill[None])[0].softmax(dim=-1)[class_id].item()
    return (
        None if abs(trial.value[-1].item() - right) < 1e-6 else f"Yours ends at {trial.value[-1]:.4f}, not {right:.4f}."
    )
