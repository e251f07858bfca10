"""Drawings: well-formed, described, in the palette's colours, and nothing outside the frame."""

from xml.etree import ElementTree

import pytest

from ttutor.drawing import Drawing
from ttutor.widgets.style import OUTLINES, PALETTE, PALETTE_DARK

SVG = "{http://www.w3.org/2000/svg}"


def drawn() -> Drawing:
    drawing = Drawing(300, 200, 'Words & "queries"')
    words = drawing.box(10, 10, "a < b", "words d_model")
    query = drawing.box(10, 100, "q", part="query")
    drawing.arrow(words.bottom, query.top, "W_Q")
    return drawing


def parse(drawing: Drawing) -> ElementTree.Element:
    markup = drawing._repr_html_().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return ElementTree.fromstring(markup)


def test_a_drawing_is_well_formed_and_says_what_it_shows() -> None:
    root = parse(drawn())
    assert (root.get("role"), root.get("aria-label")) == ("img", 'Words & "queries"')
    assert ["".join(text.itertext()) for text in root.iter(f"{SVG}text")] == ["a < b", "words d_model", "q", "WQ"]


def test_an_arrow_leads_from_edge_to_edge() -> None:
    (line,) = parse(drawn()).iter(f"{SVG}line")
    assert [float(line.get(end, "")) for end in ("x1", "y1", "x2", "y2")] == [70, 56, 70, 100]


def test_colours_are_the_palettes_on_a_light_page_and_on_a_dark_one() -> None:
    markup = drawn()._repr_html_()
    assert "fill:var(--query)" in markup
    for colour in (*PALETTE.values(), *PALETTE_DARK.values(), *OUTLINES.values()):
        assert colour in markup
    assert "html[data-theme=dark]" in markup


def test_a_box_outside_the_frame_or_of_no_known_part_is_refused() -> None:
    drawing = Drawing(100, 100, "nothing")
    with pytest.raises(ValueError, match="leaves the drawing of 100 by 100"):
        drawing.box(0, 0, "wide", width=101)
    with pytest.raises(ValueError, match="no part is called 'red'; the palette has query"):
        drawing.box(0, 0, "x", part="red", width=10)


def test_a_drawing_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a description"):
        Drawing(1, 1, " ")
