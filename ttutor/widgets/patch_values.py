"""The values of the figure of patches: an image and what a model gave for it, checked and rounded, and drawn as SVG."""

import base64
import struct
import warnings
import zlib
from typing import Any

import numpy as np
from einops import rearrange, reduce

from ttutor.widgets.base import number_array, rounded_array
from ttutor.widgets.style import PALETTE

NOTES = {
    "CLS": "No pixels: a learnt vector, the same for every image. In the end the class is read from it.",
    "image": "Read row by row, channel after channel; one linear map, the same for every patch, makes them a token.",
    "hide": "All pixels of a hidden patch are the mean of the image: the model was asked again, once for each patch.",
    "attention": "The mean of the heads; all weights together are 1.",
    "scale": "In the picture and the sequence the full colour is the largest number besides the token's own.",
    "positions": "Cosine of two position embeddings, −1 to 1. The model was never told which patches are neighbours.",
}
"""What the figure says, of the source, of CLS and of each view."""


def cut_picture(pixels: list[str], channels: int, side: int) -> str:
    """The image as SVG, cut into patches of ``side`` drawn pixels that are numbered as they are read."""
    width, height = len(pixels[0]) // (2 * channels), len(pixels)
    columns = width // side
    cuts = [f"M{x} 0V{height}" for x in range(side, width, side)] + [
        f"M0 {y}H{width}" for y in range(side, height, side)
    ]
    places = range(columns * (height // side))
    numbers = "".join(
        f'<text x="{(place % columns + 0.1) * side:g}" y="{(place // columns + 0.4) * side:g}">{place + 1}</text>'
        for place in places
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="320" role="img" '
        f'aria-label="The image, cut into {len(places)} patches that are numbered row by row">'
        f'<image href="{png(pixels, channels)}" width="{width}" height="{height}" style="image-rendering:pixelated"/>'
        f'<path d="{"".join(cuts)}" stroke="{PALETTE["memory"]}" stroke-width="{side / 20:g}"/>'
        f'<g font-size="{side / 3:g}" fill="#fff" stroke="#000" stroke-width="{side / 12:g}" paint-order="stroke">'
        f"{numbers}</g></svg>"
    )


def largest_table(weights: np.ndarray, caption: str) -> str:
    """The six tokens with the largest numbers, by their place."""
    order = np.argsort(-weights, kind="stable")[:6]
    names = (f"patch {place}" if place else "CLS" for place in order)
    rows = (
        f'<tr><th scope="row">{name}</th><td>{weights[place]:.3f}</td></tr>'
        for name, place in zip(names, order, strict=True)
    )
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def png(pixels: list[str], channels: int) -> str:
    """Hexadecimal rows as the address of a picture that holds itself."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width = len(pixels[0]) // (2 * channels)
    header = struct.pack(">IIBBBBB", width, len(pixels), 8, 0 if channels == 1 else 2, 0, 0, 0)
    lines = zlib.compress(b"".join(b"\0" + bytes.fromhex(row) for row in pixels), 9)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


MAX_SIDE = 64
"""Pixels of the image as it is drawn."""
MAX_PATCHES = 256
MAX_CLASSES = 5
"""That are kept besides those that are ever the answer."""
MAX_WEIGHTS = 30_000
"""Of all layers together: a page that holds more loads slowly."""


def read_image(image: Any) -> np.ndarray:
    """An image as ``channels height width`` between 0 and 1.

    >>> read_image(np.full((2, 2), 255, dtype=np.uint8)).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    is_bytes = str(getattr(image, "dtype", "")).endswith("uint8")
    values = number_array("image", image) / (255 if is_bytes else 1)
    if values.ndim == 2:
        values = rearrange(values, "height width -> 1 height width")
    if values.ndim != 3 or values.shape[0] not in (1, 3) or min(values.shape) == 0:
        hint = "; put the channels first" if values.ndim == 3 and values.shape[-1] in (1, 3) else ""
        raise ValueError(
            f"image has shape {values.shape}, expected (height, width) or (channels, height, width) "
            f"with 1 or 3 channels{hint}"
        )
    if not np.isfinite(values).all():
        raise ValueError("image holds a number that is NaN or infinite")
    if values.min() < 0 or values.max() > 1:
        raise ValueError(
            f"image goes from {values.min():.3g} to {values.max():.3g}; give floats from 0 to 1, or bytes (uint8)"
        )
    return values


def count_patches(size: tuple[int, int], patch_size: int) -> int:
    """How many patches an image becomes."""
    height, width = size
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(f"patch_size is {patch_size}, but has to divide both sides of an image of {height} x {width}")
    n_patches = height // patch_size * (width // patch_size)
    if n_patches > MAX_PATCHES:
        raise ValueError(f"patches of {patch_size} pixels would be {n_patches}; this figure draws up to {MAX_PATCHES}")
    return n_patches


def drawn(image: np.ndarray, patch_size: int) -> tuple[np.ndarray, int]:
    """The image small enough to be drawn, and how many of its pixels, in each direction, one drawn pixel is mean of."""
    longest = max(image.shape[1:])
    steps = [step for step in range(1, patch_size + 1) if patch_size % step == 0 and longest <= MAX_SIDE * step]
    if not steps:
        raise ValueError(
            f"an image of {longest} pixels cannot be drawn with {MAX_SIDE} when patches have {patch_size}; "
            "resize it, or choose larger patches"
        )
    if steps[0] > 1:
        warnings.warn(
            f"the image is larger than {MAX_SIDE} pixels; each drawn pixel is the mean of {steps[0]} x {steps[0]}",
            stacklevel=4,
        )
    pattern = "channels (rows height) (columns width) -> channels rows columns"
    return reduce(image, pattern, "mean", height=steps[0], width=steps[0]), steps[0]


def hexadecimal(image: np.ndarray) -> list[str]:
    """Each row of pixels as text, two digits a value, the channels of a pixel side by side."""
    rows = np.rint(255 * rearrange(image, "channels height width -> height (width channels)"))
    return [row.tobytes().hex() for row in rows.astype(np.uint8)]


def thousandths(attention: Any, n_tokens: int) -> list[list[list[int]]]:
    """Weights averaged over heads and rounded to thousandths, each row still adding up to one."""
    values = number_array("attention", attention)
    if values.ndim == 4:
        values = reduce(values, "layers heads queries keys -> layers queries keys", "mean")
    if values.ndim != 3 or values.shape[1:] != (n_tokens, n_tokens) or len(values) == 0:
        raise ValueError(
            f"attention has shape {values.shape}, expected (layers, {n_tokens}, {n_tokens}): "
            "a class token and one token for each patch"
        )
    if values.size > MAX_WEIGHTS:
        raise ValueError(
            f"{n_tokens} tokens in {len(values)} layers are {values.size:,} weights, more than the {MAX_WEIGHTS:,} "
            "that a page should hold; take a smaller image (ttutor.variants.vit.with_image_size) or larger patches"
        )
    if not (np.isfinite(values).all() and values.min() >= 0 and np.allclose(values.sum(-1), 1, atol=0.01)):
        raise ValueError("each row of attention has to hold weights of at least 0 that add up to one")
    exact = 1000 * values / values.sum(-1, keepdims=True)
    whole = np.floor(exact).astype(int)
    # What is missing to 1000 goes to those that lost most by rounding down.
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1)
    return (whole + (rank < 1000 - whole.sum(-1, keepdims=True))).tolist()


def hundredths(similarity: Any, n_tokens: int) -> list[list[int]]:
    """Cosine similarities, rounded to hundredths."""
    rows = rounded_array("positions", similarity, (n_tokens, n_tokens), 2, axes="tokens, tokens")
    return np.rint(100 * np.array(rows)).astype(int).tolist()


def without_patches(
    hidden: Any, n_patches: int, probabilities: dict[str, float] | None
) -> tuple[list[str], list[list[int]]]:
    """The classes that matter, likeliest first, and their probabilities in thousandths: of the whole image, and without
    each patch.

    >>> without_patches([[0.2, 0.8], [0.9, 0.1]], 2, {"circle": 0.4, "cross": 0.6})
    (['cross', 'circle'], [[600, 400], [800, 200], [100, 900]])
    """
    if not probabilities:
        raise ValueError("hidden needs probabilities, what the model answers with nothing hidden")
    whole = [list(probabilities.values())]
    shape = (n_patches, len(probabilities))
    values = np.array(whole + rounded_array("hidden", hidden, shape, 6, axes="patches, classes"), dtype=float)
    if values.min() < 0 or not np.allclose(values.sum(-1), 1, atol=0.01):
        raise ValueError(
            "hidden and probabilities have to hold probabilities, each row of at least 0 and adding up to one"
        )
    answers = set(values.argmax(-1).tolist()) | set(np.argsort(-values.max(0), kind="stable")[:MAX_CLASSES].tolist())
    order = sorted(answers, key=lambda i: (-values[0, i], i))
    return [str(list(probabilities)[i]) for i in order], np.rint(1000 * values[:, order]).astype(int).tolist()


def answer_words(probabilities: dict[str, float] | None, answer: str) -> str:
    """What a model answered, in one sentence.

    >>> answer_words({"square": 0.25, "circle": 0.75}, "circle")
    'The model answers circle (0.750), then square (0.250); the right answer is circle.'
    """
    shares = [] if not probabilities else [(float(share), str(name)) for name, share in probabilities.items()]
    best = sorted(shares, reverse=True)[:2]
    said = ", then ".join(f"{name} ({share:.3f})" for share, name in best)
    parts = [f"The model answers {said}"] * bool(said) + [f"the right answer is {answer}"] * bool(answer)
    text = "; ".join(parts) + "." * bool(parts)
    return text[:1].upper() + text[1:]
