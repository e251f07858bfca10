"""Checkpoints: whole or not there, checked on loading, never unpickled."""

import pytest
import torch

from ttutor.errors import FileError
from ttutor.training.checkpoint import (
    FORMAT,
    STATE,
    TENSORS,
    Checkpoint,
    copy_into,
    load_checkpoint,
    save_checkpoint,
)


def checkpoint(step: int) -> Checkpoint:
    tensors = {
        "model.weight": torch.full((3, 2), float(step)),
        "rng": torch.arange(10, dtype=torch.uint8),
        "average.weight": torch.zeros(3, 2, dtype=torch.float64),
    }
    return Checkpoint(tensors, {"step": step, "epoch": 1, "seconds": 0.1 + step})


def test_what_is_saved_is_loaded(tmp_path):
    saved = checkpoint(7)
    save_checkpoint(tmp_path, saved)
    loaded, messages = load_checkpoint(tmp_path)
    assert messages == []
    assert loaded.state == saved.state
    assert loaded.tensors.keys() == saved.tensors.keys()
    for name, tensor in saved.tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert torch.equal(loaded.tensors[name], tensor)
    assert torch.equal(loaded.group("model")["weight"], saved.tensors["model.weight"])


def test_the_last_two_are_kept(tmp_path):
    for step in (1, 20, 300):
        save_checkpoint(tmp_path, checkpoint(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000020", "step-00000300"]


def test_checkpoints_of_later_steps_are_of_a_training_thrown_away(tmp_path):
    for step in (300, 400, 3):
        save_checkpoint(tmp_path, checkpoint(step))
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000003"]
    assert load_checkpoint(tmp_path)[0].step == 3


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileError, match="there is no checkpoint in .*train first"):
        load_checkpoint(tmp_path / "nowhere")


def flip_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "bit flipped": flip_bit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "emptied": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("file", [TENSORS, STATE])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_with_a_message(tmp_path, file, damage):
    save_checkpoint(tmp_path, checkpoint(1))
    newest = save_checkpoint(tmp_path, checkpoint(2))
    DAMAGES[damage](newest / file)
    loaded, messages = load_checkpoint(tmp_path)
    assert loaded.step == 1
    assert len(messages) == 1
    assert "step-00000002" in messages[0]


def test_when_none_is_whole_the_message_names_each(tmp_path):
    for step in (1, 2):
        flip_bit(save_checkpoint(tmp_path, checkpoint(step)) / TENSORS)
    with pytest.raises(FileError, match="step-00000002.*step-00000001.*train anew"):
        load_checkpoint(tmp_path)


def test_another_format_is_named(tmp_path):
    path = save_checkpoint(tmp_path, checkpoint(1)) / STATE
    path.write_text(path.read_text().replace(FORMAT, "ttutor-translation-checkpoint-9"))
    with pytest.raises(FileError, match=f"checkpoint-9', expected '{FORMAT}'"):
        load_checkpoint(tmp_path)


def test_a_failed_write_keeps_the_checkpoints_before(tmp_path, monkeypatch):
    import errno
    import os

    save_checkpoint(tmp_path, checkpoint(1))

    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FileError, match="No space left"):
        save_checkpoint(tmp_path, checkpoint(2))
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert load_checkpoint(tmp_path)[0].step == 1


def test_a_checkpoint_of_another_model_is_named():
    with pytest.raises(FileError, match=r"of another model: .* missing: b; unexpected: c"):
        copy_into({"a": torch.zeros(1), "b": torch.zeros(1)}, {"a": torch.zeros(1), "c": torch.zeros(1)}, "the model")
    with pytest.raises(FileError, match=r"expected a of shape \(2,\), found \(3,\)"):
        copy_into({"a": torch.zeros(2)}, {"a": torch.zeros(3)}, "the model")
