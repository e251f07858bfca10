"""The plotting words: well-formed, described from the data, in the page's colours, and true to the numbers."""

from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from ttutor.figures import Bars, Heatmap, Lines, Panels, Picture, Points, Scatter, Sketch, Table, span
from ttutor.widgets.style import PAGE, PALETTE, PALETTE_DARK

SVG = "{http://www.w3.org/2000/svg}"
WORDS = {"title": "What is seen", "x": "step", "y": "loss"}
PLOTS = [
    Lines({"one": [3.0, 1.0], "two": torch.tensor([[3.0, 2.0], [3.0, 2.5]])}, levels={"guessing": 2.8}, **WORDS),
    Points({"RNN": {"short": [0.2, 0.2, 0.2], "long": [0.3]}, "LSTM": {"short": [0.9]}}, **WORDS),
    Scatter({"bank": ([1.0, 2.0], [3.0, 4.0]), "river": ([0.0], [0.0])}, texts={"here": (1.0, 1.0)}, **WORDS),
    Bars({"attention": {"before": 0.25, "after": 0.5}, "MLP": {"before": 0.75, "after": 1.0}}, numbers=".0%", **WORDS),
    Heatmap([[1.0, 0.0], [-0.5, 0.5]], ["I", "sleep"], mask=[[True, False], [True, True]], **WORDS),
    Sketch(lambda ax: ax.text(0.5, 0.5, "here"), "A word in the middle", **WORDS),
    Picture(torch.eye(4), "A diagonal", cuts=[2], **WORDS),
    Panels(Lines({"one": [1.0, 2.0]}, **WORDS), Bars({"a": 1.0}, **WORDS), columns=2, title="Both"),
]
EACH = pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: type(plot).__name__)


@cache
def shown(plot: object) -> str:
    """What a plot shows; one test sees that it is the same each time."""
    return plot._repr_html_()


def parse(plot: object) -> ElementTree.Element:
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return ElementTree.fromstring(shown(plot).replace("<svg ", f"<svg {names} ", 1))


def texts(plot: object) -> list[str]:
    return ["".join(text.itertext()).strip() for text in parse(plot).iter(f"{SVG}text")]


@EACH
def test_a_plot_is_well_formed_and_says_what_it_shows(plot: Lines) -> None:
    root = parse(plot)
    assert (root.get("role"), root.get("aria-label")) == ("img", plot.describe())
    assert "What is seen" in plot.describe()
    assert {"What is seen", "step", "loss"} <= set(texts(plot))


@EACH
def test_a_plot_is_the_same_each_time(plot: Lines) -> None:
    assert plot._repr_html_() == shown(plot)


@EACH
def test_every_colour_is_one_that_follows_the_page(plot: Lines) -> None:
    drawing = shown(plot).partition("</style>")[2].lower()
    for colour in (*PALETTE.values(), PAGE["text"], PAGE["page"], "#000000"):
        assert colour.lower() not in drawing
    assert "var(--text)" in drawing
    assert PALETTE_DARK["weights"] in shown(plot)


def test_two_figures_of_a_page_share_no_id() -> None:
    one, two = (Lines({"a": [1.0, 2.0]}, title=title) for title in ("first", "second"))
    found = [{node.get("id") for node in parse(plot).iter() if node.get("id")} for plot in (one, two)]
    assert found[0]
    assert not found[0] & found[1]


def test_a_line_goes_through_its_points() -> None:
    root = parse(Lines({"rise": [0.0, 0.0, 1.0]}))
    (path,) = [
        node for node in root.iter(f"{SVG}path") if "stroke: var(--query); stroke-width: 1.8" in node.get("style", "")
    ]
    spots = np.array(path.get("d").replace("M", "").replace("L", "").split(), dtype=float).reshape(-1, 2)
    assert spots[1, 0] - spots[0, 0] == pytest.approx(spots[2, 0] - spots[1, 0], abs=0.02)
    assert spots[0, 1] == spots[1, 1] > spots[2, 1]


def test_several_runs_are_a_median_and_what_lies_between_is_said() -> None:
    said = Lines({"dip": [[4.0, 0.0, 3.0], [4.0, 1.0, 3.0], [4.0, 2.0, 3.0]]}, at=[0, 10, 20], x="step").describe()
    assert said == "Lines of values over step, 0 to 20: dip from 4 to 3, lowest 1 at 10 (median of 3 runs)."


def test_curves_may_have_positions_of_their_own() -> None:
    lines = Lines({"pair": ([1, 2], [0.1, 0.2]), "mapping": {3: 0.3, 4: 0.4}})
    assert [lines.points(name)[0].tolist() for name in lines.curves] == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="the curve 'short' has 1 values at 2 positions"):
        Lines({"short": [1.0]}, at=[1, 2])._repr_html_()


def test_no_point_hides_another() -> None:
    plot = Points({"same": [0.5] * 5, "other": [0.0, 1.0]})
    spots = [(use.get("x"), use.get("y")) for use in parse(plot).iter(f"{SVG}use")]
    assert len(set(spots)) == len(spots) >= 7


def test_many_points_stay_in_their_row() -> None:
    plot = Points({"same": [0.5] * 24, "other": [0.0, 1.0]})
    *crowd, second, _axis = sorted({float(use.get("y")) for use in parse(plot).iter(f"{SVG}use") if use.get("y")})
    first = (crowd[0] + crowd[-1]) / 2
    assert len(crowd) == 24
    assert crowd[-1] - first < 0.45 * (second - first)


def test_bars_have_their_lengths_and_numbers() -> None:
    plot = Bars({"short": 0.25, "long": 0.5}, numbers=".0%")
    paths = [
        node.get("d").replace("M", " ").replace("L", " ").replace("z", " ").split()
        for node in parse(plot).iter(f"{SVG}path")
        if "var(--query)" in node.get("style", "") or "var(--key)" in node.get("style", "")
    ]
    short, long = (max(map(float, path[::2])) - min(map(float, path[::2])) for path in paths)
    assert long == pytest.approx(2 * short, abs=0.05)
    assert {"25%", "50%"} <= set(texts(plot))


def test_a_heat_map_writes_what_is_seen_and_hatches_what_is_masked() -> None:
    plot = PLOTS[4]
    assert {"1.00", "-0.50", "0.50"} <= set(texts(plot))
    assert "0.00" not in texts(plot)
    assert sum("url(#h" in node.get("style", "") for node in parse(plot).iter(f"{SVG}path")) == 1
    assert "I largest at I (1), sleep largest at sleep (0.5)" in plot.describe()


def test_a_row_that_sees_nothing_is_said_to_be_hidden() -> None:
    plot = Heatmap(np.eye(2), ["a", "b"], mask=[[False, False], [True, True]], title="One row")
    assert "a hidden, b largest at b (1)" in plot.describe()


def test_a_large_heat_map_is_one_picture() -> None:
    names = [str(at) for at in range(30)]
    plot = Heatmap(np.eye(30), names, title="Large")
    assert len(list(parse(plot).iter(f"{SVG}image"))) == 1
    assert len(plot._repr_html_()) < 20_000


def test_a_ring_outlines_a_cell() -> None:
    def outlines(**looks: object) -> int:
        nodes = parse(Heatmap(np.eye(2), ["a", "b"], title="Ringed", **looks)).iter(f"{SVG}path")
        return sum("fill: none" in node.get("style", "") and "1.4" in node.get("style", "") for node in nodes)

    assert outlines(rings=[(0, 1), (1, 0)]) == outlines() + 2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="shape .2, 2., but there are 2 names of rows and 3 of columns"):
        Heatmap(np.eye(2), ["a", "b"], ["c", "d", "e"]).describe()
    with pytest.raises(ValueError, match="no part is called 'red'; the palette has query"):
        Lines({"a": [1.0]}, colours={"a": "red"})._repr_html_()
    with pytest.raises(ValueError, match="at least one plot"):
        Panels()
    with pytest.raises(ValueError, match="the row 'RNN' has 1 cells for 2 columns"):
        Table({"RNN": [1]}, ["a", "b"])


def test_a_table_reads_the_same_on_a_page_and_in_a_terminal() -> None:
    table = Table({"a < b": [0.125, [0.1, 0.3]], "c": [12_000, "none"]}, ["one", "all"], numbers=".1f")
    assert str(table).splitlines()[1].split() == ["a", "<", "b", "0.1", "0.1", "to", "0.3"]
    root = ElementTree.fromstring(table._repr_html_())
    cells = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert cells == [["", "one", "all"], ["a < b", "0.1", "0.1 to 0.3"], ["c", "12,000", "none"]]


def test_a_span_of_one_number_is_that_number() -> None:
    assert span(torch.tensor([0.501, 0.499])) == "0.50"


def test_a_picture_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(height, width\) or \(3, height, width\), but have shape \(4, 2, 2\)"):
        Picture(np.zeros((4, 2, 2)), "Four channels").image()
    assert np.allclose(Picture([[0.0, 2.0]], "Too bright").image(), [[[0] * 3, [1] * 3]])
