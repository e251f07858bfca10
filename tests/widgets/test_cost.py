"""The cost explorer: what is stored against benchmark and counter; growth and crossings in Python and on the page."""

from __future__ import annotations

import importlib
import json
import re
from types import ModuleType

import pytest
from playwright.sync_api import Page

from experiments._record import EXPERIMENTS
from tests.widgets.conftest import Show
from tests.widgets.figure import in_browser
from ttutor import assets
from ttutor.widgets import CostExplorer
from ttutor.widgets.cost import LINES, QUANTITIES


def specimen() -> CostExplorer:
    """The figure as the gallery shows it."""
    return CostExplorer("time")


def extremes() -> list[CostExplorer]:
    return [CostExplorer(quantity) for quantity in QUANTITIES] + [CostExplorer(lines=[])]


TAP = ("svg[role=slider]", "length in tokens")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that stored the figures."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("experiments.attention_costs")


def test_measured_figures_are_those_of_the_benchmark(script: ModuleType) -> None:
    found = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    stored = assets.load("attention_costs")
    current = json.loads(json.dumps(script.measured(found)))
    assert stored["measured"] == current, "run experiments/attention_costs.py again"
    assert stored["sources"] == script.sources(found), "run experiments/attention_costs.py again"


def test_counted_figures_are_those_of_the_counter(script: ModuleType) -> None:
    stored, lengths = assets.load("attention_costs")["counted"], script.LENGTHS[:2]
    for quantity, lines in script.counted(lengths).items():
        assert {name: stored[quantity][name][:2] for name in stored[quantity]} == lines, quantity


def test_exponents_are_those_of_the_last_two_points() -> None:
    made = CostExplorer("multiply_adds")
    found = {name: one["exponent"] for name, one in made.growth.items()}
    assert found["reference"] == pytest.approx(2, abs=1e-9)
    assert found["recurrent"] == pytest.approx(1, abs=1e-9)
    assert 1.9 < found["tiled"] < 2
    assert CostExplorer("kept").growth["recurrent"]["exponent"] == 0
    assert {one["to"] / one["from"] for one in made.growth.values()} == {2.0}


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_lines_cross_where_it_is_said(quantity: str) -> None:
    made = CostExplorer(quantity)
    for n, one, other in made.crossings:
        first, second = dict(made.points[one]), dict(made.points[other])
        common = sorted(set(first) & set(second))
        assert all(first[at] < second[at] for at in common if at >= n)
        before = max(at for at in common if at < n)
        assert first[before] >= second[before]


@pytest.mark.parametrize(
    ("quantity", "options", "message"),
    [
        ("speed", {}, "quantity has to be one of time, .* not 'speed'"),
        ("time", {"lines": ["flash"]}, "lines has to hold some of reference, .* not 'flash'"),
        ("time", {"lines": "sdpa"}, "lines has to hold some of"),
    ],
)
def test_bad_input_is_refused_with_a_reason(quantity: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CostExplorer(quantity, **options)


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


@in_browser
def test_slopes_and_crossings_on_screen_are_pythons(show: Show) -> None:
    page = show(specimen())
    for quantity, (words, *_) in QUANTITIES.items():
        page.get_by_label("Show", exact=True).select_option(words)
        made = CostExplorer(quantity)
        assert sorted(table(page)) == sorted(expected(made))
        said = [plain(text) for text in page.locator(".told li").all_inner_texts()]
        if made.crossings:
            pairs = [(n, LINES[one][0], LINES[other][0]) for n, one, other in made.crossings]
            assert sorted(crossings_in(said)) == sorted(pairs)
            assert len(said) == len({n for n, *_ in made.crossings})  # one sentence for each length
        else:
            assert said == ["Nowhere: at the lengths that two lines share, their order stays."]
        assert page.locator("polyline").count() == len(made.points)
        assert page.locator("circle").count() == sum(len(points) for points in made.points.values())
