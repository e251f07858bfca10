"""A run's folder: what may be written over and what not, what a kill leaves, what a damaged file is called."""

import errno
import json
import os
import re
import socket
import subprocess
import sys

import pytest

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer
HOLD = """
import sys
from ttutor.training.run_folder import RunFolder
with RunFolder(sys.argv[1]).writing():
    print("holding", flush=True)
    sys.stdin.read()
"""
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


def test_a_second_writer_is_refused_by_name_and_a_dead_ones_lock_is_taken_over(trained):
    folder = trained.folder
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert held.stdout.readline() == "holding\n"
        refused = f"is being written by process {held.pid} on {re.escape(socket.gethostname())}"
        before = folder.metrics.read_bytes()
        for writes in (
            lambda: trained.resume(),
            lambda: trained.run(),
            lambda: folder.create(trained.recipe, trained.tokenizer, FACTS, overwrite=True),
        ):
            with pytest.raises(FileError, match=refused):
                writes()
        assert (folder.metrics.read_bytes(), folder.has_checkpoint) == (before, True)
        assert Translator.load(folder.path).unfinished == ""  # whoever reads is let in
    finally:
        held.kill()
        held.communicate()
    trained.resume()
    assert json.loads((folder.path / "writer.lock").read_text())["process"] == os.getpid()


def test_only_what_a_killed_process_began_is_to_be_overwritten(tmp_path):
    for name, advice in (("tokenizer.json", r"x`$"), ("recipe.toml", r"x --overwrite`$")):
        folder = tmp_path / name.partition(".")[0] / "x"  # an export has a tokenizer, too
        folder.mkdir(parents=True)
        (folder / name).write_text("")
        with pytest.raises(FileError, match=advice):
            RunFolder(folder).facts()


def test_checkpoints_behind_a_link_are_replaced_there_and_the_link_stays(trained, tmp_path):
    folder, disk = trained.folder, tmp_path / "bigger disk"
    folder.checkpoints.rename(disk)
    folder.checkpoints.symlink_to(disk)
    folder.create(trained.recipe, trained.tokenizer, FACTS, overwrite=True)
    assert folder.checkpoints.readlink() == disk
    assert (folder.has_checkpoint, folder.facts()) == (False, FACTS)


def test_a_link_to_nowhere_is_refused_before_the_old_run_goes(trained, tmp_path):
    folder = trained.folder
    folder.checkpoints.rename(tmp_path / "elsewhere")
    folder.checkpoints.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match=r"checkpoints is a link to .*nowhere, where there is no folder"):
        folder.create(trained.recipe, trained.tokenizer, FACTS, overwrite=True)
    assert folder.facts() == trained.facts()


def test_a_full_disk_at_the_beginning_of_the_new_run_keeps_the_old_one(trained, monkeypatch):
    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = trained.folder
    before = sorted(os.listdir(folder.path))
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FileError, match="cannot write .*run.*No space left"):
        folder.create(trained.recipe, trained.tokenizer, FACTS, overwrite=True)
    monkeypatch.undo()
    assert (sorted(set(os.listdir(folder.path)) - {"writer.lock"}), folder.facts()) == (
        sorted(set(before) - {"writer.lock"}),
        trained.facts(),
    )


@pytest.mark.skipif(os.name != "posix", reason="Windows has no umask")
def test_others_may_read_a_checkpoint_where_the_umask_lets_them(begin):
    before = os.umask(0o022)
    try:
        trainer = begin(steps=1)
        trainer.run()
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in trainer.folder.checkpoints.rglob("*")}
    assert modes == {0o755, 0o644}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tokenizer.json", "", ""),
        ("recipe.toml", "learning_rate = ", "learning_rate = 0.5  # was "),
        ("run.json", '"precision": "fp32"', '"precision": "bf16"'),
        ("run.json", '"lower_case": true', '"lower_case": false'),
    ],
)
def test_a_file_that_decides_the_result_is_the_one_that_the_checkpoint_signed(trained, name, old, new):
    path = trained.folder.path / name
    text = path.read_text(encoding="utf-8")
    if name == "tokenizer.json":  # swap two tokens: it loads, and reads other tokens
        tokens = json.loads(text)
        vocabulary = tokens["model"]["vocab"]
        (one, first), (other, second) = list(vocabulary.items())[-2:]
        vocabulary |= {one: second, other: first}
        changed = json.dumps(tokens, ensure_ascii=False)
    else:
        assert old in text
        changed = text.replace(old, new)
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(FileError, match=f"{name} has changed since the checkpoint"):
        Translator.load(trained.folder.path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged"),
        (b"[]", "is damaged"),
        (b"[" * 50_000, "is damaged: Invalid JSON: recursion limit"),
        (b'{"format": 3}', "is damaged"),
        (b'{"a": 1}', "has the format None"),
    ],
)
def test_facts_that_are_none_are_one_message(trained, content, message):
    (trained.folder.path / "run.json").write_bytes(content)
    with pytest.raises(FileError, match=message):
        trained.folder.facts()
