"""The course's mark, drawn here: as SVG for pages and tabs, and as pictures for what reads no SVG.

A letter t. Its stem is a query, the bar that meets it a key, and what comes out at the foot is the value: each in the
colour that it has throughout the course. All three colours stand out from a light page and from a dark one.
"""

from __future__ import annotations

import math
from pathlib import Path

from PIL import Image, ImageDraw

from ttutor.widgets.style import PAGE, PALETTE

SIZE = 32
"""The mark's coordinates run from 0 to this, rightwards and downwards."""

STROKE, ROUNDING = 5.0, 7.0
STEM, BAR = 14.5, 11.5
"""Where the stem stands, and how deep the bar lies."""

TOP, LEFT, RIGHT, FOOT, TURN = 4.5, 6.0, 25.0, 27.0, 6.5
"""The ends of the strokes, and the radius of the turn into the foot."""

FINE = 8
"""A picture is drawn this many times too large, and then made small: its edges come out smooth."""

ICON_SIZES = [(16, 16), (32, 32), (48, 48)]


def svg(*, tile: bool = False) -> str:
    """The mark; on a white tile, it can be seen wherever a browser puts it."""
    ground = f'<rect width="{SIZE}" height="{SIZE}" rx="{ROUNDING}" fill="{PAGE["page"]}"/>' if tile else ""
    bend = FOOT - TURN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="ttutor">{ground}'
        f'<g fill="none" stroke-width="{STROKE}" stroke-linecap="round">'
        f'<path stroke="{PALETTE["value"]}" d="M{STEM} {BAR}V{bend}A{TURN} {TURN} 0 0 0 {STEM + TURN} {FOOT}H24"/>'
        f'<path stroke="{PALETTE["query"]}" d="M{STEM} {TOP}V{bend - 1}"/>'
        f'<path stroke="{PALETTE["key"]}" d="M{LEFT} {BAR}H{RIGHT}"/></g></svg>\n'
    )


def straight(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Points along a line, so close that discs on them make a stroke."""
    steps = math.ceil(math.dist(start, end) / 0.1)
    return [tuple(a + (b - a) * step / steps for a, b in zip(start, end, strict=True)) for step in range(steps + 1)]


def strokes() -> list[tuple[str, list[tuple[float, float]]]]:
    """The same three strokes as points, from back to front."""
    bend, angles = FOOT - TURN, [math.pi / 2 * step / 100 for step in range(101)]
    turn = [(STEM + TURN - TURN * math.cos(angle), bend + TURN * math.sin(angle)) for angle in angles]
    foot = [*straight((STEM, BAR), (STEM, bend)), *turn, *straight((STEM + TURN, FOOT), (24, FOOT))]
    return [
        ("value", foot),
        ("query", straight((STEM, TOP), (STEM, bend - 1))),
        ("key", straight((LEFT, BAR), (RIGHT, BAR))),
    ]


def picture(size: int, *, rounding: float = 0.0, ground: str | None = PAGE["page"], inset: float = 0.0) -> Image.Image:
    """The mark as a picture.

    Args:
        size: of its side, in pixels.
        rounding: of the tile's corners, in the mark's units.
        ground: the colour of the tile; None for none.
        inset: how much of the side stays free around the mark, as a share.
    """
    full, scale = size * FINE, size * FINE * (1 - 2 * inset) / SIZE
    image = Image.new("RGBA", (full, full))
    pen = ImageDraw.Draw(image)
    if ground:
        pen.rounded_rectangle((0, 0, full - 1, full - 1), rounding * full / SIZE, fill=ground)
    for part, points in strokes():
        for x, y in ((inset * full + x * scale, inset * full + y * scale) for x, y in points):
            half = STROKE / 2 * scale
            pen.ellipse((x - half, y - half, x + half, y + half), fill=PALETTE[part])
    return image.resize((size, size), Image.Resampling.LANCZOS)


def write(static: Path, extra: Path) -> None:
    """Write the mark and its icons; ``favicon.ico`` stands at the root, where browsers look for it unasked."""
    static.joinpath("logo.svg").write_text(svg(), encoding="utf-8")
    static.joinpath("favicon.svg").write_text(svg(tile=True), encoding="utf-8")
    sizes = [picture(width, rounding=ROUNDING) for width, _ in ICON_SIZES]
    sizes[-1].save(extra / "favicon.ico", sizes=ICON_SIZES, append_images=sizes[:-1])
    picture(180, inset=0.12).convert("RGB").save(static / "apple-touch-icon.png", optimize=True)
