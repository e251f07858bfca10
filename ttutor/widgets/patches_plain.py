"""The words of the explorer of patches, and the picture and table that readers without scripts see."""

import base64
import struct
import zlib

import numpy as np

from ttutor.widgets.style import PALETTE

__all__ = ["NOTES", "cut_picture", "largest_table", "png"]

NOTES = {
    "hint": "Point at a patch, or tap it, to see its place in the sequence and what it draws from. Then make the "
    "patches smaller: what becomes of the number of pairs?",
    "CLS": "No pixels: a learnt vector, the same for every image. In the end the class is read from it.",
    "image": "Read row by row, channel after channel; one linear map, the same for every patch, makes them a token.",
    "attention": "The mean of the heads; all weights together are 1.",
    "scale": "In the picture and the sequence the full colour is the largest number besides the token's own.",
    "rollout": "Rollout multiplies ½A + ½I over the layers. It is one reading of attention, not an explanation: "
    "values, feed-forward networks and norms are left out.",
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
        f'<g font-size="{side / 3:g}" fill="{PALETTE["key"]}">{numbers}</g></svg>'
    )


def largest_table(weights: np.ndarray, caption: str, n: int = 6) -> str:
    """The tokens with the largest numbers, by their place.

    >>> largest_table(np.array([0.25, 0.75]), "weights", 1)
    '<table><caption>weights</caption><tr><th scope="row">patch 1</th><td>0.750</td></tr></table>'
    """
    order = np.argsort(-weights, kind="stable")[:n]
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
