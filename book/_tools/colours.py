"""The book's colours as CSS custom properties, from the one place in which they are written: `ttutor.widgets.style`.

Figures and explorers take theirs from there too. ``--tt-query`` fills a shape, ``--tt-query-line`` outlines it where
the fill alone is too pale; ``--tt-page``, ``--tt-text`` and their like are the page's own; ``--tt-right`` and the other
verdicts stand behind white text.
"""

from __future__ import annotations

from pathlib import Path

from ttutor.claims import BADGES
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK


def properties(page: dict[str, str], fills: dict[str, str], outlines: dict[str, str]) -> dict[str, str]:
    """Every custom property of one mode, by its name.

    >>> properties(PAGE, PALETTE, OUTLINES)["--tt-key-line"]
    '#8A6100'
    """
    named = {**page, **fills, **{f"{name}-line": colour for name, colour in outlines.items()}}
    verdicts = {name.replace(" ", "-"): colour for name, colour in BADGES.items()}
    return {f"--tt-{name}": colour for name, colour in {**named, **verdicts}.items()}


LIGHT = properties(PAGE, PALETTE, OUTLINES)
DARK = properties(PAGE_DARK, PALETTE_DARK, OUTLINES_DARK)


def style_sheet() -> str:
    """Both modes as CSS. Paper is always light."""
    dark = _rule('html[data-theme="dark"]', DARK)
    return f"{_rule('html', LIGHT)}@media screen {{\n{dark}}}\n"


def _rule(selector: str, values: dict[str, str]) -> str:
    lines = "".join(f"  {name}: {colour};\n" for name, colour in values.items())
    return f"{selector} {{\n{lines}}}\n"


def write(target: Path) -> None:
    """Write the style sheet to a file."""
    target.write_text(style_sheet(), encoding="utf-8")
