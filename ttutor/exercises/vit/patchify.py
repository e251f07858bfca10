"""Exercise: an image becomes a text of patches."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Finding, Trial
from ttutor.variants import patches


def patchify(
    images: Float[Tensor, "batch channels height width"], patch_size: int
) -> Float[Tensor, "batch patches d_patch"]:
    """Cut images into squares and lay out the numbers of each square in one line."""
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def reference(images, patch_size):
    return patches.patchify(images, patch_size)


def _wide_image(generator):
    patch_size = drawn(generator, 3, 4)
    return torch.randn(2, 3, 2 * patch_size, drawn(generator, 3, 5) * patch_size, generator=generator), patch_size


def _square_with_two_channels(generator):
    side = 2 * drawn(generator, 3, 5)
    return torch.randn(4, 2, side, side, generator=generator), 2


exercise = Exercise(
    id="vit.patchify",
    title="An image as a text of patches",
    statement="""
Cut every image into squares of `patch_size` x `patch_size` pixels, and lay out the numbers of each square in one line.

The squares do not overlap and come as one reads: from left to right, then from top to bottom. Within a line come all
numbers of the first channel, row by row, then those of the second channel, and so on: the order in which a
convolution stores its kernel. Height and width are multiples of `patch_size`, and need not be the same.
""".strip(),
    reference=reference,
    solution=patchify,
    explanation="""
Height and width are two axes each, the square's place in the grid and the pixel's place in the square. `rearrange` has
to be told one of the two sizes, and finds the other. The order within a line is a convention: the one asked for is that
of a convolution's kernel, so that weights can be exchanged with code that embeds patches by a convolution.
""".strip(),
    cases=(
        Case(name="images that are wider than high", inputs=_wide_image, points=2),
        Case(name="square images of two channels", inputs=_square_with_two_channels),
    ),
    hints="""
How many squares stand beside one another, and how many above one another? Then take one number of the result, patch 1,
place 0: which pixel of the image is it?

The height is two axes in one: which row of squares, and which row of pixels within the square. The width likewise.
Split both; nothing moves in memory by that. Then bring the axes into the order wanted.

After splitting, the axes are batch, channels, rows, height, columns, width. You need batch, then rows and columns
joined, then channels, height and width joined. In one call of `rearrange` that is a pattern with two brackets on each
side; with torch alone, swap the axes before you join them.
""",
    forbids=("patchify", "PixelUnshuffle", "pixel_unshuffle", "VisionEncoder", "ViT"),
    difficulty=2,
    minutes=15,
    section="10-vit",
)

exercise.mutations("""
p1p2c: "(channels height width)" -> "(height width channels)"
    The right pixels are in every patch, in another order: the channels of one pixel stand side by side. Here the
    channel is the slowest index within a patch, as in the kernel of a convolution.
transposed_inside: "(channels height width)" -> "(channels width height)"
    Each patch is transposed: its columns are read before its rows. Which of the two pixel axes should change fastest?
col_major_patches: "rows columns" -> "columns rows"
    Each patch is right, but they come from top to bottom first. Go from left to right first, as one reads.
strided_pixels: "rows height) (columns width" -> "height rows) (width columns"
    Your patches gather pixels from all over the image, one in every few. When you split the height, the row of squares
    comes first and the row within the square second.
channels_as_patches: "columns) (channels " -> "columns channels) ("
    Every channel has become a patch of its own. The channels of a square belong into one line.
not_flattened: "(channels height width)" -> "channels height width"
    Each patch is still a small image with axes of its own. Lay its numbers out in one line.
""")


@exercise.mistake(
    "A plain reshape cuts the image into stretches of pixel rows, not into squares. Draw patch 0: which pixels are in "
    "it? Axes have to change places before they are joined."
)
def plain_reshape(images, patch_size):
    batch, channels, height, width = images.shape
    n_patches = (height // patch_size) * (width // patch_size)
    return images.reshape(batch, n_patches, channels * patch_size**2)


@exercise.mistake(
    "You return features before patches, as `unfold` does. The result should have one line for each patch: batch, "
    "patches, features."
)
def unfold_untransposed(images, patch_size):
    return functional.unfold(images, patch_size, stride=patch_size)


@exercise.mistake(
    "There are too many patches, because they overlap: yours start at every pixel. How far apart should two neighbours "
    "start?"
)
def overlapping(images, patch_size):
    return rearrange(functional.unfold(images, patch_size), "batch d_patch patches -> batch patches d_patch")


@exercise.mistake(
    "Right for square images; of those that are wider than high you lose the right-hand part. You count columns by the "
    "height: which size tells how many squares stand side by side?"
)
def height_for_both(images, patch_size):
    side = images.shape[2] // patch_size * patch_size
    return patchify(images[:, :, :side, :side], patch_size)


@exercise.mistake(
    "Right for three channels and for no other number: a 3 stands in your code. Where does the tensor itself say how "
    "many there are?"
)
def three_channels(images, patch_size):
    rows = patchify(images, patch_size)
    return rows.reshape(*rows.shape[:2], 3 * patch_size**2)


@exercise.must_hold("Cutting neither changes a number nor loses or doubles one; it only puts them elsewhere.")
def every_number_once(trial: Trial) -> str | None:
    images, _ = trial.inputs
    for index, (image, cut) in enumerate(zip(images, trial.value, strict=True)):
        if not torch.equal(image.flatten().sort().values, cut.flatten().sort().values):
            return f"The numbers of image {index} are not those of its patches."
    return None


@exercise.must_hold(
    "Patch 0 should hold the upper left square of the image and nothing else: follow one pixel of it through your code."
)
def first_patch_is_a_square(trial: Trial) -> str | Finding | None:
    images, patch_size = trial.inputs
    image = images[:1]
    held = torch.zeros(image.shape[-2:], dtype=torch.bool)
    before = trial.run(image, patch_size)
    for row, column in [(row, column) for row in range(held.shape[0]) for column in range(held.shape[1])]:
        brighter = image.clone()
        brighter[:, :, row, column] += 1
        held[row, column] = bool((trial.run(brighter, patch_size) != before)[0, 0].any())
    square = torch.zeros_like(held)
    square[:patch_size, :patch_size] = True
    if torch.equal(held, square):
        return None
    lost, strange = int((square & ~held).sum()), int((held & ~square).sum())
    return f"Of the {patch_size**2} pixels of the upper left square {lost} are missing, and {strange} others are there."
