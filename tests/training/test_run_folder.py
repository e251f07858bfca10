"""A run's folder: what may be written over and what not, what a kill leaves, what a damaged file is called."""

import os

import pytest

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.training.run_folder import RunFacts, RunFolder

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
    with pytest.raises(FileError, match=f"holds {name} but no training run"):
        create(begin("one"), own)
    assert os.listdir(own) == [name]
    assert (own / name).read_text() == "mine"


def test_checkpoints_of_a_former_run_are_gone_before_the_new_one_is_there(trained):
    for name in ("run.json", "recipe.toml", "tokenizer.json", "metrics.jsonl", "samples.jsonl", "curve.svg"):
        (trained.folder.path / name).unlink()
    (trained.folder.checkpoints / "notes").write_text("mine")
    with pytest.raises(FileError, match="holds checkpoints but no training run"):
        create(trained, trained.folder.path)
    trained.folder.remove()
    assert not create(trained, trained.folder.path).has_checkpoint
    assert os.listdir(trained.folder.checkpoints) == ["notes"]
