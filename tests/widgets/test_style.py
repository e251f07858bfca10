"""The visual language: one palette for figures, explorers and diagrams, with the contrasts that it promises."""

import json
import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from ttutor.claims import BADGES
from ttutor.exercises import result
from ttutor.widgets import static
from ttutor.widgets.style import MEANINGS, OUTLINES, OUTLINES_DARK, PAGE, PAGE_DARK, PALETTE, PALETTE_DARK

NAMES = {"query", "key", "value", "weights", "memory", "decoder", "loss", "masked"}
LIGHT_PAGE, DARK_PAGE = PAGE["page"], PAGE_DARK["page"]
LIGHT_TEXT, DARK_TEXT = PAGE["text"], PAGE_DARK["text"]


# Who wears which colour, figure by figure: its styles by their class, "code" for what a script colours. What is added
# here has to have the meaning that MEANINGS gives the colour; what has none of them wears the colour of the text.
WORN = {
    "query": """alibi .word.last, attention .asks, attention .handle, attention .query-arrow, drawing th.row-on,
        heads .asks, patches .cell.on, patches .tile.on, rotary .query-arrow, rotary .query-word""",
    "key": """attention .key-arrow, attention .shadow, drawing th.column-on, rotary .key-arrow, rotary .key-word,
        softmax_scale .key, softmax_scale .path.lead, waves .hand, waves .knob, waves .line""",
    "value": "attention .value-arrow, attention .value-part, heads code",
    "weights": """alibi .word, attention .arc, attention .weight, blocks path, drawing .tt-bar, drawing code,
        heads .link, learning .between, learning .half, learning .link, learning .looked, learning circle.looked,
        patches code, playground .look, rotary .score[data-value], rotary .ring, rotary .wedge, sizes .square,
        softmax_scale .weight, softmax_scale code, tiles .power, translator .chip, translator .switch,
        translator path""",
    "memory": """blocks rect, collapse .curve, collapse .dot, collapse .trail, heads code, patches .cell, patches code,
        sequential .cell, sequential .moved, sequential .wire""",
    "decoder": """causal_mask code, decoding .node, decoding .stream, group .chance, group .paid,
        learning .chance, lens .group0, lens .guess, patches code, translator .bar,
        translator .chip.was::before, translator .chip::after""",
    "loss": """causal_mask td.answer, causal_mask th.changed, group .list, learning .loss, learning circle.loss,
        patches code, playground .fall, playground .line.loss, playground .wrong, quiz .why, schedule .loss,
        softmax_scale .left, translator .chip.other, translator .other""",
    "masked": "blocks code, drawing .tt-hatch, patches .cell.gone, patches .gone.gone, sequential .never",
}
ANY_COLOUR = "|".join(PALETTE)
CODED = rf'--tt-({ANY_COLOUR})|(?:colour(?: =|:) |row\()[^\n]*?"({ANY_COLOUR})"(?: : "({ANY_COLOUR})")?'


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_palette_names_the_same_parts() -> None:
    assert NAMES == set(PALETTE) == set(PALETTE_DARK) == set(OUTLINES) == set(OUTLINES_DARK)


def worn() -> dict[str, set[str]]:
    """Which styles and which scripts of which figure use each colour."""
    found: dict[str, set[str]] = {name: set() for name in PALETTE}
    for path in sorted((files("ttutor.widgets") / "js").iterdir()):
        source, figure = path.read_text(encoding="utf-8"), path.name.removesuffix(".js")
        styles = "".join(re.findall(r"css`([^`]*)`", source))
        for selectors, body in re.findall(r"([^{};]+)\{([^{}]*)\}", styles):
            for colour in re.findall(rf"--tt-({ANY_COLOUR})", body):
                found[colour] |= {f"{figure} {one.split()[-1]}" for one in selectors.split(",")}
        for groups in re.findall(CODED, re.sub(r"css`[^`]*`", "", source)):
            for colour in filter(None, groups):
                found[colour].add(f"{figure} code")
    return found


def test_every_colour_stands_only_where_it_has_its_one_meaning() -> None:
    assert set(MEANINGS) == NAMES
    assert worn() == {name: set(" ".join(listed.split()).split(", ")) for name, listed in WORN.items()}


def test_what_has_one_name_has_one_colour_in_all_figures() -> None:
    colours: dict[str, set[str]] = {}
    for colour, wearers in worn().items():
        for wearer in wearers:
            name = wearer.split()[1]
            if name not in {"code", "path", "rect"}:
                colours.setdefault(name, set()).add(colour)
    assert {name: worn for name, worn in colours.items() if len(worn) > 1} == {}


def test_figures_take_their_hues_from_the_palette_alone() -> None:
    for path in (files("ttutor.widgets") / "js").iterdir():
        hues = re.findall(r"#[0-9a-fA-F]{6}\b|\bhsla?\(|\boklch\(", path.read_text(encoding="utf-8"))
        assert hues == [], path.name


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
