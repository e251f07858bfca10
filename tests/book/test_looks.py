"""How the book looks: one set of colours, typefaces and icons that lie beside the style sheets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book._tools.build import colours
from ttutor.claims import BADGES
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
SHEETS = {path.name: path.read_text(encoding="utf-8") for path in sorted(STATIC.glob("*.css"))}


def declared(sheet: str) -> dict[str, str]:
    """The custom properties of a part of a style sheet."""
    return dict(re.findall(r"(--tt-[\w-]+): ([^;]+);", sheet))


def test_the_style_sheet_has_the_colours_of_figures_and_explorers() -> None:
    light, dark = colours().split("@media screen")
    for sheet, page, fills, lines in (light, PAGE, PALETTE, OUTLINES), (dark, PAGE_DARK, PALETTE_DARK, OUTLINES_DARK):
        of_page = {f"--tt-{name}": colour for name, colour in {**page, **fills}.items()}
        of_lines = {f"--tt-{name}-line": colour for name, colour in lines.items()}
        of_verdicts = {f"--tt-{name.replace(' ', '-')}": colour for name, colour in BADGES.items()}
        assert declared(sheet) == {**of_page, **of_lines, **of_verdicts}


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_names_no_colour_of_its_own(name: str) -> None:
    rules = re.sub(r"/\*.*?\*/", "", SHEETS[name], flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*\})|\b(?:rgb|hsl)a?\(", rules)) <= {"#fff"}


@pytest.mark.parametrize("name", SHEETS)
def test_every_colour_that_a_style_sheet_uses_is_there(name: str) -> None:
    known = set(declared(colours())) | set(declared("\n".join(SHEETS.values())))
    assert set(re.findall(r"var\((--tt-[\w-]+)", SHEETS[name])) <= known


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_fetches_nothing_but_typefaces_that_lie_beside_it(name: str) -> None:
    fetched = re.findall(r"(?:url\(|@import)([^)]*)", SHEETS[name])
    assert [path for path in fetched if not re.fullmatch(r"fonts/[\w-]+\.woff2", path)] == []
    assert [path for path in fetched if not (STATIC / path).is_file()] == []
