"""What goes wrong when images are cut into patches."""

from einops import rearrange
from torch.nn import functional

from ttutor.variants.patches import patchify


def p1p2c(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) (height width channels)",
        height=patch_size,
        width=patch_size,
    )


def channel_in_the_middle(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) (height channels width)",
        height=patch_size,
        width=patch_size,
    )


def transposed_inside(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) (channels width height)",
        height=patch_size,
        width=patch_size,
    )


def col_major_patches(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (columns rows) (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def image_transposed(images, patch_size):
    return patchify(rearrange(images, "batch channels height width -> batch channels width height"), patch_size)


def plain_reshape(images, patch_size):
    batch, channels, height, width = images.shape
    n_patches = (height // patch_size) * (width // patch_size)
    return images.reshape(batch, n_patches, channels * patch_size**2)


def channels_stay_in_front(images, patch_size):
    batch, channels, height, width = images.shape
    squares = rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch channels rows columns height width",
        height=patch_size,
        width=patch_size,
    )
    return squares.reshape(batch, -1, channels * patch_size**2)


def unfold_untransposed(images, patch_size):
    return functional.unfold(images, patch_size, stride=patch_size)


def overlapping(images, patch_size):
    return rearrange(functional.unfold(images, patch_size), "batch d_patch patches -> batch patches d_patch")


def strided_pixels(images, patch_size):
    return rearrange(
        images,
        "batch channels (height rows) (width columns) -> batch (rows columns) (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def channels_as_patches(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns channels) (height width)",
        height=patch_size,
        width=patch_size,
    )


def keeps_the_grid(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch rows columns (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def not_flattened(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) channels height width",
        height=patch_size,
        width=patch_size,
    )


def joins_the_batch(images, patch_size):
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> (batch rows columns) (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def first_channel(images, patch_size):
    return patchify(images[:, :1], patch_size)


def mean_of_pixels(images, patch_size):
    return functional.avg_pool2d(images, patch_size).flatten(2).mT


def height_for_both(images, patch_size):
    side = images.shape[2] // patch_size * patch_size
    return patchify(images[:, :, :side, :side], patch_size)


def three_channels(images, patch_size):
    patches = patchify(images, patch_size)
    return patches.reshape(*patches.shape[:2], 3 * patch_size**2)


def bottom_up(images, patch_size):
    return patchify(images, patch_size).flip(1)
