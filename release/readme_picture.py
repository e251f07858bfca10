"""Draw the README's picture: a translator writes, word by word, and shows where it looks; for light and for dark pages.

ttutor train                        # half a minute
python release/readme_picture.py    # reads ttutor-runs/embedded, writes book/_static/translation-*.svg
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from ttutor.translation.alignment import CrossAttention
from ttutor.translation.translator import Translator
from ttutor.widgets.style import PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

SENTENCE = "the red cars do not sleep"
FOLDER = Path(__file__).resolve().parent.parent / "book" / "_static"
MODES = {"light": (PAGE, PALETTE), "dark": (PAGE_DARK, PALETTE_DARK)}
WIDTH, HEIGHT, MARGIN = 680, 195, 60
READ, WRITTEN = 50, 170
"""How deep the line of each sentence lies."""

LEAST, BROADEST = 0.04, 22
"""Weights below the first are not drawn; a ribbon of weight one is as broad as the second."""

SECONDS_A_WORD = 0.9
"""How long a word stands alone as the last one."""


def places(words: list[str]) -> list[float]:
    """Return where the middle of each word stands: each gets room for its letters."""
    letters = [len(word) + 2 for word in words]
    scale = (WIDTH - 2 * MARGIN) / sum(letters)
    return [MARGIN + scale * (sum(letters[:i]) + own / 2) for i, own in enumerate(letters)]


def draw(attention: CrossAttention, mode: str) -> str:
    """Return the picture as SVG: a ribbon from each word to those that it looked at, as broad as the weight."""
    page, palette = MODES[mode]
    read, written = ([word.text for word in words] for words in (attention.source_words, attention.target_words))
    above, below, middle = places(read), places(written), (READ + WRITTEN) / 2
    rows = attention.by_word().tolist()
    moments = [
        f'<g style="animation-delay:{SECONDS_A_WORD * (place + 1):.1f}s">\n'
        + "\n".join(ribbons(above, spot, row, middle))
        + f"\n{letters(word, spot, WRITTEN)}\n</g>"
        for place, (word, spot, row) in enumerate(zip(written, below, rows, strict=True))
    ]
    links = ", ".join(f"{link.target.text} looked at {link.source.text}" for link in attention.links())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        f"<title>A translation and where it looked: {html.escape(links)}.</title>\n"
        f"<style>\n{style(page['text'], palette['weights'])}</style>\n"
        + "\n".join([*moments, *(letters(word, spot, READ) for word, spot in zip(read, above, strict=True))])
        + "\n</svg>\n"
    )


def ribbons(above: list[float], spot: float, weights: list[float], middle: float) -> list[str]:
    """Return the ribbons from one written word to those that it looked at."""
    return [
        f'<path d="M{start:.0f},{READ + 10} C{start:.0f},{middle} {spot:.0f},{middle} {spot:.0f},{WRITTEN - 24}" '
        f'stroke-width="{BROADEST * weight:.1f}"/>'
        for start, weight in zip(above, weights, strict=True)
        if weight >= LEAST
    ]


def letters(word: str, x: float, y: int) -> str:
    """Return a word of either sentence."""
    return f'<text x="{x:.0f}" y="{y}">{html.escape(word)}</text>'


def style(ink: str, ribbon: str) -> str:
    """Return the rules by which the words come one after another, once; all at once for who wants no motion."""
    return (
        f"text {{ fill: {ink}; font: 22px system-ui, sans-serif; text-anchor: middle; }}\n"
        f"path {{ fill: none; stroke: {ribbon}; stroke-opacity: .75; }}\n"
        "g { animation: comes .5s backwards; }\n"
        "@keyframes comes { from { opacity: 0; } }\n"
        "@media (prefers-reduced-motion: reduce) { g { animation: none; } }\n"
    )


def main() -> None:
    """Translate the sentence with the run that is named, or with ``ttutor-runs/embedded``, and write both pictures."""
    attention = Translator.load(sys.argv[1] if len(sys.argv) > 1 else "ttutor-runs/embedded")(SENTENCE).attention
    for mode in MODES:
        (FOLDER / f"translation-{mode}.svg").write_text(draw(attention, mode), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
