"""Writing files so that no reader, and no crash, ever meets half of one."""

import errno
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ttutor.errors import FileError, TtutorError

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


def append_to(path: Path, text: str) -> None:
    """Add text to a file's end, through to the disk.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(cannot_write(path, error)) from None


def write_text(path: Path, text: str) -> None:
    """Write a text whole or not at all, in UTF-8; the folder above it is made where there is none.

    Raises:
        FileError: as `write_file` does.
    """
    make_folder(path.parent)
    write_file(path, text.encode("utf-8", "replace"))


@contextmanager
def unfinished_folder(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into, removed at the end; what is whole by then has been moved into place.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like.
    """
    unfinished = folder.with_name(f"{PARTIAL}{folder.name}-{secrets.token_hex(4)}")
    try:
        make_folder(folder.parent)
        unfinished.mkdir()  # not `tempfile.mkdtemp`, which shuts out everybody else whatever the umask
        yield unfinished
    except OSError as error:
        raise FileError(cannot_write(folder, error)) from None
    except FileError as error:  # of a file in it: say where it was to stand
        raise FileError(str(error).replace(str(unfinished), str(folder))) from None
    finally:
        _remove_quietly(unfinished)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes its place when all is written, or not at all; an older one is replaced.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like; nothing half-written is left.
    """
    with unfinished_folder(folder) as unfinished:
        yield unfinished
        _sync_folder(unfinished)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(unfinished, folder)
        _sync_folder(folder.parent)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files whole or not at all; an older folder of that name is replaced.

    Raises:
        FileError: the disk is full, the folder is read-only, or the like; nothing half-written is left.
    """
    with new_folder(folder) as unfinished:
        for name, data in files.items():
            _write_through(unfinished / name, data)


@contextmanager
def sole_writer(lock: Path) -> Iterator[None]:
    """Be the only process that writes, as long as the block runs; within one process it may be entered again.

    The operating system holds the lock and frees it when the process ends, however that comes about.

    Args:
        lock: the file to lock; it stays, and says which process held it last.

    Raises:
        FileError: another process holds it, and which; or the file cannot be written.
    """
    from filelock import FileLock, Timeout  # with the translation extra

    make_folder(lock.parent)
    held = FileLock(lock, timeout=0, is_singleton=True)
    try:
        held.acquire()
    except Timeout:
        raise FileError(
            f"{lock.parent} is being written by {_holder(lock)}: wait until it ends, stop it, or choose another folder"
        ) from None
    except OSError as error:
        raise FileError(cannot_write(lock, error)) from None
    try:
        if held.lock_counter == 1:
            _name_holder(lock)
        yield
    finally:
        held.release()


def _name_holder(lock: Path) -> None:
    try:
        lock.write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}), encoding="utf-8")
    except OSError as error:
        raise FileError(cannot_write(lock, error)) from None


def _holder(lock: Path) -> str:
    """Who holds a lock, in words; Windows does not let others read it."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        holder = json.loads(lock.read_text(encoding="utf-8"))
        return f"process {holder['process']} on {holder['host']}"
    return "another process"


@contextmanager
def foreign_reader(path: object, advice: str, fault: str = "is damaged") -> Iterator[None]:
    """Let another library read a file in this block; whatever it raises for a damaged one becomes one message.

    Args:
        path: the file or folder, for the message.
        advice: what to do about one that is damaged.
        fault: what to say of it.

    Raises:
        FileError: the file cannot be read, or the library raised something.

    Example:
        >>> with foreign_reader("model.bin", "export it again"):
        ...     raise RuntimeError("File model.bin is incomplete")
        Traceback (most recent call last):
        ...
        ttutor.errors.FileError: model.bin is damaged (RuntimeError: File model.bin is incomplete); export it again
    """
    try:
        yield
    except (TtutorError, ImportError):
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # each library raises what it likes
        first = str(error).partition("\n")[0]
        said = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise FileError(f"{path} {fault} ({said}); {advice}") from error


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
