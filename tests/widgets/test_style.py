"""The visual language: one palette for figures, explorers and diagrams, with the contrasts that it promises."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ttutor.claims import BADGES
from ttutor.exercises import result
from ttutor.widgets import static
from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

NAMES = {"query", "key", "value", "weights", "memory", "decoder", "loss", "masked"}
LIGHT_PAGE, DARK_PAGE = PAGE["page"], PAGE_DARK["page"]
LIGHT_TEXT, DARK_TEXT = PAGE["text"], PAGE_DARK["text"]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_palette_names_the_same_parts() -> None:
    assert NAMES == set(PALETTE) == set(PALETTE_DARK) == set(OUTLINES) == set(OUTLINES_DARK)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_outlines_stand_out_from_the_page(name: str) -> None:
    assert contrast(OUTLINES[name], LIGHT_PAGE) >= 3
    assert contrast(OUTLINES_DARK[name], DARK_PAGE) >= 3


@pytest.mark.parametrize("page", [PAGE, PAGE_DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "surface"])
@pytest.mark.parametrize("ink", ["text", "muted", "link"])
def test_text_is_readable_wherever_it_stands(page: dict[str, str], ground: str, ink: str) -> None:
    assert contrast(page[ink], page[ground]) >= 4.5


def test_white_is_readable_on_every_badge() -> None:
    assert [name for name, colour in BADGES.items() if contrast(colour, "#ffffff") < 4.5] == []
    assert set(result.COLOURS.values()) <= set(BADGES.values())


def test_explorers_get_their_colours_from_the_palette() -> None:
    source = static.module_source("attention")
    start = source.index("const COLOURS=") + len("const COLOURS=")
    colours, _ = json.JSONDecoder().raw_decode(source, start)
    assert colours["light"] == {**PALETTE, **{f"{name}-line": colour for name, colour in OUTLINES.items()}}
    assert colours["dark"] == {**PALETTE_DARK, **{f"{name}-line": colour for name, colour in OUTLINES_DARK.items()}}


def test_a_colour_costs_neither_matplotlib_nor_ipywidgets() -> None:
    code = "import sys; from ttutor.widgets import PALETTE; print({'matplotlib', 'ipywidgets'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
