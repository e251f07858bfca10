"""Draw the README's picture: where a translator looked while it wrote, for light and for dark pages.

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
    ribbons = [
        f'<path d="M{start:.0f},{READ + 10} C{start:.0f},{middle} {end:.0f},{middle} {end:.0f},{WRITTEN - 24}" '
        f'stroke-width="{BROADEST * weight:.1f}"/>'
        for end, row in zip(below, rows, strict=True)
        for start, weight in zip(above, row, strict=True)
        if weight >= LEAST
    ]
    texts = [
        f'<text x="{x:.0f}" y="{y}">{html.escape(word)}</text>'
        for y, words, spots in ((READ, read, above), (WRITTEN, written, below))
        for word, x in zip(words, spots, strict=True)
    ]
    links = ", ".join(f"{link.target.text} looked at {link.source.text}" for link in attention.links())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        f"<title>A translation and where it looked: {html.escape(links)}.</title>\n"
        f'<g fill="none" stroke="{palette["weights"]}" stroke-opacity=".75">\n' + "\n".join(ribbons) + "\n</g>\n"
        f'<g fill="{page["text"]}" font-family="system-ui, sans-serif" font-size="22" text-anchor="middle">\n'
        + "\n".join(texts)
        + "\n</g>\n</svg>\n"
    )


def main() -> None:
    """Translate the sentence with the run that is named, or with ``ttutor-runs/embedded``, and write both pictures."""
    attention = Translator.load(sys.argv[1] if len(sys.argv) > 1 else "ttutor-runs/embedded")(SENTENCE).attention
    for mode in MODES:
        (FOLDER / f"translation-{mode}.svg").write_text(draw(attention, mode), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
