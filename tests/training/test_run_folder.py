"""A run's folder: what may be written over and what not, what a kill leaves, what a damaged file is called."""

import errno
import json
import os

import pytest

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import CheckpointError
from ttutor.training import run_folder
from ttutor.training.run_folder import UNFINISHED, RunFacts, RunFolder
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer
FACTS = RunFacts("a text", "abc", {"source": "a.en"}, TextStyle(), "fp32", 1)


@pytest.fixture
def trained(begin):
    trainer = begin(steps=3, precision="fp32")
    trainer.run()
    for path in (trainer.folder.samples, trainer.folder.curve):
        path.write_text("")
    return trainer


def create(trainer, path) -> RunFolder:
    folder = RunFolder(path)
    folder.create(trainer.recipe, trainer.tokenizer, FACTS)
    return folder


def test_facts_are_read_back(begin, tmp_path):
    assert create(begin("one"), tmp_path / "other").facts() == FACTS


@pytest.mark.parametrize("name", ["recipe.toml", "tokenizer.json", "metrics.jsonl", "samples.jsonl", "curve.svg"])
def test_files_of_a_folder_that_is_no_run_are_not_written_over(begin, tmp_path, name):
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_text("mine")
    with pytest.raises(CheckpointError, match=f"holds {name} but no training run"):
        create(begin("one"), own)
    assert os.listdir(own) == [name]
    assert (own / name).read_text() == "mine"


def test_checkpoints_of_a_former_run_are_gone_before_the_new_one_is_there(trained):
    for name in ("run.json", "recipe.toml", "tokenizer.json", "metrics.jsonl", "samples.jsonl", "curve.svg"):
        (trained.folder.path / name).unlink()
    (trained.folder.checkpoints / "notes").write_text("mine")
    assert not create(trained, trained.folder.path).has_checkpoint
    assert os.listdir(trained.folder.checkpoints) == ["notes"]


@pytest.mark.parametrize("n_removed", range(9))
def test_a_removal_cut_off_anywhere_leaves_no_model_and_makes_room_for_a_run(trained, monkeypatch, n_removed):
    """One removal fails, as if the process were killed there; the marked remains are cleared without asking."""
    path, real, calls = trained.folder.path, os.unlink, []

    def killed(*arguments, **options):
        calls.append(1)
        if len(calls) > n_removed:
            raise OSError(errno.EIO, "killed here")
        return real(*arguments, **options)

    monkeypatch.setattr(os, "unlink", killed)
    with pytest.raises(CheckpointError, match="killed here"):
        RunFolder(path).remove()
    monkeypatch.undo()
    assert (path / UNFINISHED).exists()
    with pytest.raises(CheckpointError, match="there is no trained model"):
        Translator.load(path)
    assert not create(trained, path).has_checkpoint
    assert sorted(os.listdir(path)) == ["metrics.jsonl", "recipe.toml", "run.json", "tokenizer.json"]


@pytest.mark.parametrize("failing", range(5))
def test_a_creation_that_fails_half_way_leaves_nothing(begin, tmp_path, monkeypatch, failing):
    trainer, real, calls = begin("one"), run_folder.write_file, []

    def full(path, data):
        calls.append(path)
        if len(calls) > failing:
            raise CheckpointError(f"cannot write {path}: No space left on device")
        real(path, data)

    monkeypatch.setattr(run_folder, "write_file", full)
    with pytest.raises(CheckpointError, match="No space left"):
        create(trainer, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    calls.clear()
    with pytest.raises(CheckpointError, match="No space left"):
        create(trainer, tmp_path / "mine")
    assert os.listdir(tmp_path / "mine") == ["notes"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("corpus", 5),
        ("fingerprint", None),
        ("files", ["a"]),
        ("files", {"source": 3}),
        ("style", {"lower_case": "no", "final_mark": True}),
        ("precision", "fp8"),
        ("threads", "two"),
        ("threads", True),
        ("processes", 0),
        ("device", 1),
    ],
)
def test_facts_of_a_wrong_type_are_named(begin, as_readers_run_it, name, value):
    folder = begin().folder
    body = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps(body | {name: value}))
    with pytest.raises(CheckpointError, match=rf"run\.json is damaged: {name} cannot be"):
        folder.facts()


@pytest.mark.parametrize("style", [5, None, [], {"colour": 1}])
def test_a_style_that_is_none_is_named(begin, as_readers_run_it, style):
    folder = begin().folder
    body = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps(body | {"style": style}))
    with pytest.raises(CheckpointError, match=r"run\.json is damaged"):
        folder.facts()


def test_facts_that_may_not_be_read_are_not_called_missing(tmp_path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(CheckpointError, match=r"run\.json cannot be read: Is a directory"):
        RunFolder(tmp_path).facts()
