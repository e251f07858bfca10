"""A card for a page: the picture that a link to it gets where links are shown with one.

Drawn without a network, with the book's own fonts, mark and colours; 1200 by 630 pixels, as such places ask for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from book._tools.fonts import find
from book._tools.logo import picture
from PIL import Image, ImageDraw, ImageFont

from ttutor.widgets.style import PAGE, PALETTE

WIDTH, HEIGHT, MARGIN, STRIP = 1200, 630, 80, 16
TITLE, KICKER, WORDS = ("serif-pro", "Semibold", 68), ("sans-pro", "Semibold", 34), ("sans-pro", "Regular", 33)
"""Package, weight and size in pixels of the card's three kinds of text."""


@cache
def font(package: str, weight: str, size: int) -> ImageFont.FreeTypeFont:
    """A font of the book."""
    family = "".join(word.capitalize() for word in package.split("-"))
    return ImageFont.truetype(find(f"font-source-{package}", f"Source{family}-{weight}.ttf"), size)


def wrap(text: str, letters: ImageFont.FreeTypeFont, width: int, most: int) -> list[str]:
    """Break a text into lines no wider than ``width`` pixels; what is more than ``most`` lines ends in an ellipsis.

    >>> wrap("a lookup that blends", font(*TITLE), 400, 1)
    ['a lookup…']
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if letters.getlength(longer) <= width or not lines[-1]:
            lines[-1] = longer
        elif len(lines) < most:
            lines.append(word)
        else:
            return [*lines[:-1], _shorten(lines[-1], letters, width)]
    return lines


def _shorten(line: str, letters: ImageFont.FreeTypeFont, width: int) -> str:
    """The line with an ellipsis, less the words that leave no room for it."""
    while " " in line and letters.getlength(f"{line}…") > width:
        line = line.rsplit(" ", 1)[0]
    return f"{line.rstrip(',.;:')}…"


def draw(kicker: str, title: str, words: str) -> Image.Image:
    """The card of a page.

    Args:
        kicker: what stands small above the title, such as ``Chapter 2``; may be empty.
        title: the page's title.
        words: what the page is about, in a sentence or two.
    """
    card = Image.new("RGB", (WIDTH, HEIGHT), PAGE["page"])
    pen = ImageDraw.Draw(card)
    mark = picture(96, ground=None)
    card.paste(mark, (MARGIN - 10, 62), mark)
    pen.text((MARGIN + 96, 110), "ttutor", PAGE["text"], font(*KICKER), anchor="lm")
    pen.text((WIDTH - MARGIN, 110), kicker, PAGE["muted"], font(*KICKER), anchor="rm")
    bottom = _lines(pen, 200, title, TITLE, PAGE["text"], most=3, height=80)
    room = HEIGHT - STRIP - MARGIN // 2 - bottom - 24
    _lines(pen, bottom + 24, words, WORDS, PAGE["muted"], most=max(1, room // 46), height=46)
    parts = ("query", "key", "value", "weights")
    for at, part in enumerate(parts):
        left = at * WIDTH // len(parts)
        pen.rectangle((left, HEIGHT - STRIP, left + WIDTH // len(parts), HEIGHT), fill=PALETTE[part])
    return card


def _lines(pen: ImageDraw.ImageDraw, top: int, text: str, kind: tuple, ink: str, *, most: int, height: int) -> int:
    """Write a text line by line; return where the next thing may stand."""
    lines = wrap(text, font(*kind), WIDTH - 2 * MARGIN, most)
    for number, line in enumerate(lines):
        pen.text((MARGIN, top + number * height), line, ink, font(*kind))
    return top + len(lines) * height


def write(target: Path, kicker: str, title: str, words: str) -> None:
    """Draw a card into a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(kicker, title, words).save(target)
