"""The cost explorer as a reader without a kernel meets it: lines, slopes and crossings, by pointer, keyboard, touch."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.book.browser import OVERFLOW
from tests.widgets.test_cost import specimen
from ttutor.widgets import CostExplorer
from ttutor.widgets.cost import LINES, QUANTITIES

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LOOKS = "all => all.map((e) => [getComputedStyle(e).strokeDasharray, e.getAttribute('stroke')])"


def plain(text: str) -> str:
    return text.replace("\u202f", "").replace("\u00a0", " ")


def table(page: Page) -> list[list[str]]:
    rows = page.locator(".told tbody tr").evaluate_all("all => all.map((r) => [...r.cells].map((c) => c.textContent))")
    return [[plain(cell) for cell in row] for row in rows]


def expected(made: CostExplorer) -> list[list[str]]:
    return [
        [LINES[name][0], f"{one['from']} → {one['to']}", f"× {one['times']:.2f}", f"{one['exponent']:.2f}"]
        for name, one in made.growth.items()
    ]


def crossings_in(said: list[str]) -> list[tuple[int, str, str]]:
    """The pairs that the sentences name: from which length on, which line is less, than which."""
    found = []
    for sentence in said:
        (n,) = re.findall(r"^From (\d+) tokens on, ", sentence)
        for part in sentence.split("; "):
            one, *others = re.findall("“([^”]*)”", part)
            found += [(int(n), one, other) for other in others]
    return found


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_slopes_and_crossings_on_screen_are_pythons(open_saved: Open, quantity: str) -> None:
    page = open_saved(specimen())
    page.get_by_label("Show", exact=True).select_option(QUANTITIES[quantity][0])
    made = CostExplorer(quantity)
    assert sorted(table(page)) == sorted(expected(made))
    said = [plain(text) for text in page.locator(".told li").all_inner_texts()]
    if not made.crossings:
        assert said == ["Nowhere: at the lengths that two lines share, their order stays."]
    else:
        assert sorted(crossings_in(said)) == sorted(
            (n, LINES[one][0], LINES[other][0]) for n, one, other in made.crossings
        )
        assert len(said) == len({n for n, *_ in made.crossings})  # one sentence for each length
    assert page.locator("polyline").count() == len(made.points)
    assert page.locator("circle").count() == sum(len(points) for points in made.points.values())


def test_lines_come_and_go_and_their_crossings_with_them(open_saved: Open) -> None:
    page = open_saved(CostExplorer("memory"))
    assert "costs less than “window of 256”" in page.locator(".told ul").inner_text()
    page.get_by_role("checkbox", name="window of 256").press("Space")
    assert "window" not in page.locator(".told").inner_text()
    assert page.locator("polyline").count() == 3
    for name in ("full, eager", "full, fused (sdpa)", "full, tiled"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    assert page.locator("polyline").count() == 0
    page.get_by_role("button", name="Reset").click()
    assert page.locator("polyline").count() == 4


def test_a_line_without_figures_has_no_switch(open_saved: Open) -> None:
    page = open_saved(specimen())
    expect(page.get_by_role("checkbox", name="linear, token by token")).to_be_hidden()
    assert "No figures of: linear, token by token." in page.locator("section.tt").inner_text()


def test_the_cursor_reads_the_figures_by_keyboard(open_saved: Open) -> None:
    made = specimen()
    page = open_saved(made)
    picture = page.locator("svg[role=slider]")
    picture.press("End")
    words = plain(picture.get_attribute("aria-valuetext"))
    assert words.startswith("length in tokens 131072; ")
    last = dict(made.points["window"])[131072]
    assert f"window of 256: {last / 1000:.2f} s" in words


def test_a_tap_on_the_chart_reads_a_length(open_saved: Open) -> None:
    page = open_saved(specimen(), width=360, touch=True)
    page.locator("svg[role=slider]").tap()
    assert "length in tokens" in page.locator(".tt-legend").inner_text()


def test_changes_are_spoken(open_saved: Open) -> None:
    page = open_saved(specimen())
    page.get_by_label("full, reference").uncheck()
    expect(page.locator('[role="status"]')).to_contain_text("full, reference hidden. full, eager: exponent 2.04")


def test_counted_and_measured_name_their_source(open_saved: Open) -> None:
    page = open_saved(specimen())
    assert "Measured by benchmarks/attention.py" in page.locator("section.tt").inner_text()
    page.get_by_label("Show", exact=True).select_option("counted: multiply-adds")
    assert "not timed: the same on every machine" in page.locator("section.tt").inner_text()


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("width", [360, 620, 720, 780])
def test_no_quantity_is_wider_than_its_page(open_saved: Open, quantity: str, width: int) -> None:
    page = open_saved(CostExplorer(quantity), width=width)
    assert page.evaluate(OVERFLOW) == []
    told, frame = page.locator(".told table").bounding_box(), page.locator(".cost").bounding_box()
    assert told["x"] + told["width"] <= frame["x"] + frame["width"] + 1


def test_a_line_has_its_colour_and_dash_in_every_view(open_saved: Open) -> None:
    page = open_saved(specimen())
    looks: dict[str, set] = {}
    for quantity, about in QUANTITIES.items():
        page.get_by_label("Show", exact=True).select_option(about[0])
        drawn = page.locator("polyline").evaluate_all(LOOKS)
        keys = page.locator(".tt-legend line").evaluate_all(LOOKS)
        assert drawn == keys
        for name, look in zip(CostExplorer(quantity).points, drawn, strict=True):
            looks.setdefault(name, set()).add(tuple(look))
    assert looks.keys() == LINES.keys()
    assert all(len(found) == 1 for found in looks.values())
    dashes, colours = zip(*(look for (look,) in looks.values()), strict=True)
    assert len(set(dashes)) == len(set(colours)) == len(LINES)
