"""Small drawings of shapes to train a tiny image classifier on: nothing to download, never the same image twice."""

import math

import torch
from einops import rearrange, reduce
from jaxtyping import Float, Int
from torch import Generator, Tensor

SHAPES = ("circle", "triangle", "square", "cross")
"""The names of the classes, in the order of their numbers."""

_CORNERS = {"triangle": 3, "square": 4}
_UPRIGHT = torch.tensor([0.0, math.pi / 2, math.pi / 4, 0.0])
_TILT = 0.4
_STROKE = 1.8
_N_SCRIBBLES = 2
_NOISE = 0.08  # standard deviation of what is added to every pixel


def drawn_shapes(
    n_images: int, *, image_size: int = 24, seed: int = 0
) -> tuple[Float[Tensor, "images 1 height width"], Int[Tensor, " images"]]:
    """Outlines of a circle, a triangle, a square or a cross, each with two scribbles on it or beside it, in greys.

    Place, size, angle and brightness vary at random, and so do the scribbles, which are short lines: no single stroke
    tells the class, a model has to see how strokes lie to one another. The classes are equally likely.

    Args:
        n_images: how many.
        image_size: height and width in pixels.
        seed: the same seed gives the same images.

    Returns:
        The images, 0 is black and 1 is white, and the number of each one's class in `SHAPES`.

    Example:
        >>> images, classes = drawn_shapes(2, seed=1)
        >>> images.shape, [SHAPES[i] for i in classes]
        (torch.Size([2, 1, 24, 24]), ['triangle', 'cross'])
    """
    if image_size < 16:
        raise ValueError(f"image_size must be at least 16, not {image_size}")
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(len(SHAPES), (n_images,), generator=generator)
    radius = image_size * _uniform(0.24, 0.34, n_images, generator)
    centre = radius[:, None] + (image_size - 1 - 2 * radius[:, None]) * torch.rand(n_images, 2, generator=generator)
    brightness = _uniform(0.7, 1.0, n_images, generator)
    pixels = _pixels(image_size)
    from_centre = (pixels - rearrange(centre, "images xy -> images 1 1 xy")).norm(dim=-1)
    to_circle = (from_centre - rearrange(radius, "images -> images 1 1")).abs()
    strokes = _distance(pixels, _outlines(classes, centre, radius, generator))
    is_circle = rearrange(classes == SHAPES.index("circle"), "images -> images 1 1")
    shape = _ink(torch.where(is_circle, to_circle, strokes)) * rearrange(brightness, "images -> images 1 1")
    scribbles = 0.6 * _ink(_distance(pixels, _scribbles(n_images, image_size, generator)))
    images = torch.maximum(shape, scribbles) + _NOISE * torch.randn(shape.shape, generator=generator)
    return rearrange(images.clamp(0, 1), "images height width -> images 1 height width"), classes


def _outlines(
    classes: Int[Tensor, " images"], centre: Tensor, radius: Tensor, generator: Generator
) -> Float[Tensor, "images lines ends xy"]:
    """Four lines for each image: the sides of a polygon, or the two bars of a cross, some of them twice."""
    angle = _uniform(-_TILT, _TILT, len(classes), generator) - _UPRIGHT[classes]
    start, end = torch.zeros(len(classes), 4), torch.zeros(len(classes), 4)
    for name, n in _CORNERS.items():
        rows = classes == SHAPES.index(name)
        side = torch.arange(4) % n
        start[rows], end[rows] = 2 * math.pi / n * side, 2 * math.pi / n * (side + 1)
    rows = classes == SHAPES.index("cross")
    start[rows] = math.pi / 2 * (torch.arange(4) % 2)
    end[rows] = start[rows] + math.pi
    turned = torch.stack([start, end], dim=-1) + rearrange(angle, "images -> images 1 1")
    arms = rearrange(radius, "images -> images 1 1 1") * torch.stack([turned.cos(), turned.sin()], dim=-1)
    return rearrange(centre, "images xy -> images 1 1 xy") + arms


def _scribbles(n_images: int, image_size: int, generator: Generator) -> Float[Tensor, "images lines ends xy"]:
    """Short lines anywhere."""
    start = (image_size - 1) * torch.rand(n_images, _N_SCRIBBLES, 2, generator=generator)
    step = image_size / 5 * torch.randn(n_images, _N_SCRIBBLES, 2, generator=generator).clamp(-1, 1)
    return torch.stack([start, start + step], dim=2)


def _distance(
    pixels: Float[Tensor, "height width xy"], lines: Float[Tensor, "images lines ends xy"]
) -> Float[Tensor, "images height width"]:
    """How far each pixel is from the nearest line, in pixels."""
    start, end = rearrange(lines, "images lines ends xy -> ends images lines 1 1 xy")
    along, offset = end - start, pixels - start
    share = (offset * along).sum(dim=-1, keepdim=True) / (along * along).sum(dim=-1, keepdim=True).clamp_min(1e-9)
    distances = (offset - share.clamp(0, 1) * along).norm(dim=-1)
    return reduce(distances, "images lines height width -> images height width", "min")


def _ink(distance: Float[Tensor, "images height width"]) -> Float[Tensor, "images height width"]:
    """A stroke with soft edges."""
    return (_STROKE / 2 + 0.5 - distance).clamp(0, 1)


def _pixels(image_size: int) -> Float[Tensor, "height width xy"]:
    """The coordinates of every pixel, across and down."""
    across, down = torch.meshgrid(torch.arange(float(image_size)), torch.arange(float(image_size)), indexing="xy")
    return torch.stack([across, down], dim=-1)


def _uniform(low: float, high: float, n: int, generator: Generator) -> Float[Tensor, " n"]:
    return low + (high - low) * torch.rand(n, generator=generator)
