"""Images as texts of patches, and back; and what becomes of the patches' positions when images change their size."""

from einops import pack, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.errors import ShapeError
from ttutor.shapes import check_shapes

__all__ = ["interpolate_positions", "patchify", "unpatchify"]


def patchify(
    images: Float[Tensor, "batch channels height width"], patch_size: int
) -> Float[Tensor, "batch patches d_patch"]:
    """Cut images into squares, row by row, and lay out the numbers of each in one line: channels, rows, columns.

    Dosovitskiy et al. (2021), section 3.1. A linear map of such a line is a convolution whose stride is its width.

    Example:
        >>> import torch
        >>> patchify(torch.arange(16.0).reshape(1, 1, 4, 4), patch_size=2)[0, 1]
        tensor([2., 3., 6., 7.])
    """
    sizes = check_shapes(images=(images, "batch channels height width"))
    if patch_size < 1 or sizes.get("height", 0) % patch_size or sizes.get("width", 0) % patch_size:
        raise ShapeError(
            f"images of {tuple(images.shape[-2:])} pixels cannot be cut into squares of {patch_size}: "
            "crop or resize them to multiples of it"
        )
    return rearrange(
        images,
        "batch channels (rows height) (columns width) -> batch (rows columns) (channels height width)",
        height=patch_size,
        width=patch_size,
    )


def unpatchify(
    patches: Float[Tensor, "batch patches d_patch"], patch_size: int, *, n_rows: int | None = None
) -> Float[Tensor, "batch channels height width"]:
    """Put patches together to images again: the inverse of `patchify`.

    Args:
        patches: in the order that `patchify` gives them.
        patch_size: height and width of a patch, in pixels.
        n_rows: how many patches stand one above the other; as many as beside one another when left out.

    Example:
        >>> import torch
        >>> images = torch.randn(2, 3, 8, 12)
        >>> torch.equal(unpatchify(patchify(images, 4), 4, n_rows=2), images)
        True
    """
    check_shapes(patches=(patches, "batch patches d_patch"))
    n_patches, d_patch = patches.shape[1:]
    rows = round(n_patches**0.5) if n_rows is None else n_rows
    if (
        patch_size < 1
        or rows < 1
        or n_patches % rows
        or (n_rows is None and rows**2 != n_patches)
        or d_patch % patch_size**2
    ):
        raise ShapeError(
            f"{n_patches} patches of {d_patch} numbers do not make up an image of {rows} rows of patches of "
            f"{patch_size} x {patch_size} pixels; for one that is not square give n_rows"
        )
    return rearrange(
        patches,
        "batch (rows columns) (channels height width) -> batch channels (rows height) (columns width)",
        rows=rows,
        height=patch_size,
        width=patch_size,
    )


def interpolate_positions(
    table: Float[Tensor, "positions d_model"], n_rows: int, n_columns: int
) -> Float[Tensor, "new_positions d_model"]:
    """Positions for a grid of patches of another size: the class token's as it is, the others read off between the old.

    Dosovitskiy et al. (2021), section 3.2. The interpolation is bicubic, as in Touvron et al. (2021), section 6; in the
    first paper's code it is linear.

    Args:
        table: the class token's position, then those of a square grid of patches, row by row.
        n_rows, n_columns: how many patches the new images have, one above and one beside the other.

    Example:
        >>> import torch
        >>> interpolate_positions(torch.randn(1 + 9, 8), 4, 6).shape
        torch.Size([25, 8])
    """
    side = round((len(table) - 1) ** 0.5)
    if side < 1 or side**2 != len(table) - 1:
        raise ShapeError(f"expected a class token and a square grid of patches, but the table has {len(table)} rows")
    grid = rearrange(table[1:], "(rows columns) d_model -> 1 d_model rows columns", rows=side)
    size = (n_rows, n_columns)
    grid = nn.functional.interpolate(grid, size=size, mode="bicubic", align_corners=False)
    patches = rearrange(grid, "1 d_model rows columns -> (rows columns) d_model")
    return pack([table[:1], patches], "* d_model")[0]
