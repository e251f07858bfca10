"""The cost explorer in Python: what is stored against the benchmark and the counter, growth, crossings, refusals."""

from __future__ import annotations

import html
import importlib
import json
import re
from types import ModuleType

import pytest

from experiments._record import EXPERIMENTS
from tests.widgets.test_attention import Table
from ttutor import assets
from ttutor.transformer.costs import cache_bytes
from ttutor.widgets import CostExplorer
from ttutor.widgets.cost import LINES, QUANTITIES


def specimen() -> CostExplorer:
    """The figure as the gallery shows it."""
    return CostExplorer("time")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that stored the figures."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("experiments.attention_costs")


# ---------------------------------------------------------------- the stored figures are current


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


def test_a_recurrence_does_the_same_for_every_token(script: ModuleType) -> None:
    (few, state), (twice, same) = script.recurrence(script.STEPS), script.recurrence(2 * script.STEPS)
    assert (twice, same) == (2 * few, state)
    assert few % script.STEPS == 0


def test_full_attention_computes_what_the_formula_says() -> None:
    points = dict(CostExplorer("multiply_adds").points["reference"])
    assert points[4096] == 2 * 8 * 64 * 4096**2
    kept = dict(CostExplorer("kept").points["reference"])
    assert kept[4096] == 2 * cache_bytes(4096, n_layers=1, n_kv_heads=8, d_head=64)


# ---------------------------------------------------------------- what is worked out


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


def test_lines_that_do_not_cross_are_not_said_to() -> None:
    assert CostExplorer("kept", lines=["reference", "recurrent"]).crossings == []
    assert (512, "window", "reference") in CostExplorer("kept").crossings


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_line_has_two_points_and_missing_ones_are_named(quantity: str) -> None:
    made = CostExplorer(quantity)
    assert min(len(points) for points in made.points.values()) >= 2
    missing = made.figure["note"].partition(" No figures of: ")[2].removesuffix(".")
    assert missing == "; ".join(words for name, (words, _) in LINES.items() if name not in made.points)


# ---------------------------------------------------------------- state, fallback, refusals


def test_the_fallback_is_a_table_with_its_source() -> None:
    made = CostExplorer("memory", lines=["window", "sdpa"])
    table = Table(made.fallback_html())
    assert [cell for cell in table.cells["th"] if cell in {LINES[name][0] for name in LINES}] == [
        "full, fused (sdpa)", "window of 256",
    ]  # fmt: skip
    assert "benchmarks/attention.py" in table.cells["caption"][0]
    assert f"{made.growth['window']['exponent']:.2f}" in table.cells["td"]


def test_a_page_starts_from_what_was_chosen() -> None:
    made = CostExplorer("kept", lines=("recurrent", "reference"))
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', made.to_html())[1]))
    assert (state["quantity"], state["lines"]) == ("kept", ["reference", "recurrent"])


def test_no_line_at_all_is_possible() -> None:
    made = CostExplorer(lines=[])
    assert (made.growth, made.crossings) == ({}, [])
    assert "measured: time" in made.fallback_html()


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


def test_bad_input_is_refused_later_too() -> None:
    with pytest.raises(ValueError, match="not 'flash'"):
        specimen().lines = ["flash"]
