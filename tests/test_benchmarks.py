"""What the benchmarks write: runs of one recipe together, with their mean and spread, and nothing of another recipe."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("tokenizers", reason="needs the translation extra")

from benchmarks import multi30k as benchmark

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def multi30k(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The benchmark as a module, writing to a folder of its own."""
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "results" / "multi30k.json")
    return benchmark


def options(**changes) -> argparse.Namespace:
    return argparse.Namespace(**{"preset": "multi30k-tiny", "languages": "en-de", "steps": None} | changes)


def scored(seed: int, bleu: float) -> dict:
    test = {"bleu": bleu, "bleu_lower_cased": bleu + 1, "bleu_as_words": bleu + 2, "chrf": 60.0, "bleu_signature": "s"}
    return {"seed": seed, "training_minutes": 20.0, "test": test}


def stored(module: ModuleType) -> list[dict]:
    return json.loads(module.RESULTS.read_text(encoding="utf-8"))["series"]


def test_runs_of_one_recipe_stand_together_with_mean_and_spread(multi30k: ModuleType) -> None:
    for seed, bleu in ((2, 41.0), (0, 39.0), (1, 40.0)):
        multi30k.write(options(), scored(seed, bleu))
    (series,) = stored(multi30k)
    assert [run["seed"] for run in series["runs"]] == series["summary"]["seeds"] == [0, 1, 2]
    assert series["summary"]["bleu"] == {"mean": 40.0, "standard_deviation": 1.0}
    assert series["recipe"]["languages"] == "en-de"


def test_a_seed_run_again_replaces_its_former_run_and_one_alone_has_no_spread(multi30k: ModuleType) -> None:
    multi30k.write(options(), scored(0, 30.0))
    multi30k.write(options(), scored(0, 40.0))
    (series,) = stored(multi30k)
    assert series["summary"]["bleu"] == {"mean": 40.0}


def test_languages_and_presets_stand_apart(multi30k: ModuleType) -> None:
    multi30k.write(options(), scored(0, 40.0))
    multi30k.write(options(languages="en-fr"), scored(0, 60.0))
    multi30k.write(options(preset="multi30k-short"), scored(0, 39.0))
    found = [(series["preset"], series["languages"], series["summary"]["bleu"]["mean"]) for series in stored(multi30k)]
    assert found == [
        ("multi30k-short", "en-de", 39.0),
        ("multi30k-tiny", "en-de", 40.0),
        ("multi30k-tiny", "en-fr", 60.0),
    ]


def test_runs_of_a_recipe_that_has_changed_are_dropped(multi30k: ModuleType) -> None:
    multi30k.write(options(steps=100), scored(0, 20.0))
    multi30k.write(options(), scored(1, 40.0))
    (series,) = stored(multi30k)
    assert series["summary"]["seeds"] == [1]
