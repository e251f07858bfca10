"""Recipes: presets, files, and messages that name what is wrong."""

import math

import pytest

from ttutor.errors import SettingError
from ttutor.training.recipe import PRESETS, TrainingRecipe

EMBEDDED = TrainingRecipe.preset("embedded")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_its_file(name, tmp_path):
    recipe = TrainingRecipe.preset(name)
    (tmp_path / "recipe.toml").write_text(recipe.to_toml(), encoding="utf-8")
    assert TrainingRecipe.load(tmp_path / "recipe.toml") == recipe


def test_the_file_explains_each_setting():
    lines = EMBEDDED.to_toml().splitlines()
    assert len(lines) > 15
    assert all(" # " in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1\.0"),
        ({"d_model": 100, "n_heads": 3}, "d_model=100, n_heads=3"),
        ({"d_model": 7, "n_heads": 1}, "d_model must be even .* got 7"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
        ({"precision": "fp8"}, "precision must be .* got 'fp8'"),
        ({"tokens_per_batch": 10}, "tokens_per_batch=10 cannot hold .* max_tokens=64"),
        ({"steps": 0}, "steps must be a positive number, got 0"),
        ({"minutes": -1.0}, r"minutes must be a positive number, got -1\.0"),
        ({"steps": 5, "minutes": 5.0}, "exactly one of .* got steps=5, minutes=5"),
        ({"d_modle": 5}, r"no setting d_modle; did you mean d_model\? it has name, "),
        ({"step": 5}, r"did you mean steps\?"),
        ({"epochs": math.inf}, "epochs must be a finite number, got inf"),
        ({"dropout": "a"}, "dropout must be a finite number, got 'a'"),
        ({"seed": 2**63}, "seed must be a whole number from 0 to"),
        ({"batches_per_step": 0}, "batches_per_step must be a whole number, at least 1, got 0"),
        ({"optimizer": "sgd"}, "optimizer must be one of adamw, muon, got 'sgd'"),
        ({"vocab_size": 10**12}, "vocab_size must be at most 1,000,000, got 1000000000000"),
        ({"patience": -1}, "patience must be a whole number, at least 0, got -1"),
        ({"languages": "english"}, "languages must be two languages, like \"en-de\", got 'english'"),
        ({"languages": "en-en"}, "languages must be two languages"),
    ],
)
def test_impossible_settings_are_named(changes, message, as_readers_run_it):
    with pytest.raises(SettingError, match=message):
        EMBEDDED.replace(**changes)


def test_giving_another_length_replaces_the_old_one():
    recipe = EMBEDDED.replace(minutes=2.0)
    assert (recipe.steps, recipe.minutes) == (None, 2.0)


def test_an_unknown_preset_lists_those_there_are():
    with pytest.raises(SettingError, match="no preset 'big'; there are embedded, multi30k-short, multi30k-tiny"):
        TrainingRecipe.preset("big")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("steps = 5\ncolour = 3\n", "unknown settings: colour"),
        ("steps = \n", "is no TOML"),
        ("steps = 5\ndropout = 'much'\n", "dropout must be a finite number, got 'much'"),
        ("steps = 5\nn_layers = 2.5\n", r"n_layers must be a whole number, at least 1, got 2\.5"),
        ("steps = 5\nseed = true\n", "seed must be a whole number from 0 .*, got True"),
        ("minutes = 'ten'\n", "minutes must be a finite number, got 'ten'"),
        ("d_model = 64\n", "exactly one of steps, epochs, minutes"),
    ],
)
def test_a_bad_file_is_named(tmp_path, content, message, as_readers_run_it):
    (tmp_path / "mine.toml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingError, match=message):
        TrainingRecipe.load(tmp_path / "mine.toml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"none\.toml cannot be read"):
        TrainingRecipe.load(tmp_path / "none.toml")
