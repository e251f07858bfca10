"""Files appear whole or not at all, whatever the disk does."""

import errno
import os

import pytest

from ttutor.errors import FileError
from ttutor.files import PARTIAL, cannot_write, make_folder, remove_leftovers, write_file, write_folder


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_written_and_replaced(tmp_path):
    for data in (b"one", b"two"):
        write_file(tmp_path / "x", data)
        assert (tmp_path / "x").read_bytes() == data
    assert os.listdir(tmp_path) == ["x"]


def test_a_folder_is_written_and_replaced(tmp_path):
    write_folder(tmp_path / "x", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "x", {"a": b"3"})
    assert os.listdir(tmp_path) == ["x"]
    assert os.listdir(tmp_path / "x") == ["a"]
    assert (tmp_path / "x" / "a").read_bytes() == b"3"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize(
    "write", [lambda path: write_file(path, b"new"), lambda path: write_folder(path, {"a": b"new"})]
)
def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch, failing, write):
    (tmp_path / "old").write_bytes(b"old")
    monkeypatch.setattr(os, failing, full_disk)
    with pytest.raises(FileError, match="No space left on device; make room"):
        write(tmp_path / "x")
    assert os.listdir(tmp_path) == ["old"]


def test_a_full_disk_leaves_the_former_file_as_it_was(tmp_path, monkeypatch):
    write_file(tmp_path / "x", b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FileError):
        write_file(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "make room or choose another folder"),
        (errno.ENOTDIR, "a file stands where a folder is needed"),
        (errno.EROFS, "you may not write there"),
        (errno.EACCES, "you may not write there"),
        (errno.EIO, "choose another folder"),
    ],
)
def test_the_advice_fits_what_went_wrong(tmp_path, code, advice):
    told = cannot_write(tmp_path, OSError(code, os.strerror(code)))
    assert told.startswith(f"cannot write {tmp_path}: {os.strerror(code)}; {advice}")


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(FileError, match="cannot write .*x"):
        make_folder(tmp_path / "x" / "y")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / f"{PARTIAL}abc").mkdir()
    (tmp_path / f"{PARTIAL}abc" / "half").write_bytes(b"1")
    (tmp_path / f"{PARTIAL}x").write_bytes(b"2")
    (tmp_path / "kept").write_bytes(b"3")
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["kept"]
