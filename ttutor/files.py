"""Writing files so that no reader, and no crash, ever meets half of one."""

import errno
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ttutor.errors import FileError

PARTIAL = ".partial-"
"""How the names of unfinished folders and files begin; whatever a killed process leaves is recognised by it."""

NO_ROOM = "make room or choose another folder"
IN_THE_WAY = "a file stands where a folder is needed, or a folder where a file is: move it or choose another folder"
NOT_WRITABLE = "you may not write there: change the permissions or choose another folder"
ADVICE = {
    errno.ENOSPC: NO_ROOM,
    errno.EDQUOT: NO_ROOM,
    errno.EEXIST: IN_THE_WAY,
    errno.ENOTDIR: IN_THE_WAY,
    errno.EISDIR: IN_THE_WAY,
    errno.EROFS: NOT_WRITABLE,
    errno.EACCES: NOT_WRITABLE,
    errno.EPERM: NOT_WRITABLE,
}


def make_folder(folder: Path) -> None:
    """Create a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(cannot_write(folder, error)) from None


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: into a temporary neighbour, to the disk, then renamed into place.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like; a former file stays as it was.
    """
    temporary = path.with_name(f"{PARTIAL}{path.name}")
    try:
        _write_through(temporary, data)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        _remove_quietly(temporary)
        raise FileError(cannot_write(path, error)) from None


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files whole or not at all; an older folder of that name is replaced.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like; nothing half-written is left.
    """
    temporary = None
    try:
        temporary = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=folder.parent))
        for name, data in files.items():
            _write_through(temporary / name, data)
        _sync_folder(temporary)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(temporary, folder)
        _sync_folder(folder.parent)
    except OSError as error:
        if temporary is not None:
            _remove_quietly(temporary)
        raise FileError(cannot_write(folder, error)) from None


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left unfinished in this folder."""
    for leftover in folder.glob(f"{PARTIAL}*"):
        _remove_quietly(leftover)


def cannot_write(path: Path, error: OSError) -> str:
    """What to tell a person whose disk said no."""
    return f"cannot write {path}: {error.strerror or error}; {ADVICE.get(error.errno or 0, 'choose another folder')}"


def _write_through(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut; Windows cannot open folders and does not need it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_quietly(path: Path) -> None:
    """Remove a file or folder that may not exist; a failure leaves a leftover that no reader ever looks at."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
