"""The stored costs of attention are those of the benchmark and of the counter."""

from __future__ import annotations

import importlib
import json
from types import ModuleType

import pytest

from experiments._record import EXPERIMENTS
from ttutor import assets


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
