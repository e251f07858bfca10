"""Getting a data set from where it is published: `ttutor fetch`.

No file under its own name is ever half a file, or another than the published one: what comes is collected in a folder
beside, checked by its SHA-256, and then renamed. A kill at any moment leaves what has come, and the next fetch goes
on from there. Two fetches of one data set wait for each other.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock
import pooch

from ttutor.corpora.datasets import MISSING, DataFile, DataSet, find_faults
from ttutor.corpora.downloading import ResumingDownloader, Watcher
from ttutor.corpora.http_answers import Patience, without_password
from ttutor.errors import FetchError
from ttutor.files import PARTIAL, cannot_write

WORKSHOP = f"{PARTIAL}fetch"
"""The folder, within that of the data set, of what is on its way."""

PIECES = ".pieces"
"""The end of the name of a file that is not whole."""

LOCK = ".fetch.lock"
"""An empty file that a fetch holds; it stays, since removing it would let two others hold it at once."""


def fetch_dataset(
    dataset: DataSet,
    folder: Path,
    pairs: Sequence[str] = (),
    *,
    base_url: str | None = None,
    overwrite: bool = False,
    patience: Patience | None = None,
    watcher: Watcher | None = None,
) -> list[str]:
    """Bring the files that these pairs of languages need (without any: all) into a folder; names those that came.

    Files that are there and right are left alone. One that is there and is not the published one may be the user's
    work, so it stays as it is unless `overwrite` is set, and until its replacement is whole.

    Raises:
        CorpusError: a pair of languages is unknown, or a file that is there cannot be read.
        FetchError: a file does not come, is not the published one, cannot be kept, or stands in the way.
    """
    files, watcher = dataset.files_of(pairs), watcher or Watcher()
    if not find_faults(files, folder):
        return []
    with only_one(folder, watcher), keep_errors(folder):
        faults = find_faults(files, folder)  # anew: another fetch may have been at work
        check_leave(faults, folder, overwrite)
        with workshop_in(folder) as workshop:
            for file in files:
                if file.name in faults:
                    url = f"{(base_url or dataset.base_url).rstrip('/')}/{file.name}"
                    fetch_file(file, url, workshop, patience or Patience(), watcher)
                    os.replace(workshop / file.name, folder / file.name)
                watcher.has(file, file.size)
    return list(faults)


def check_leave(faults: Mapping[str, str], folder: Path, overwrite: bool) -> None:
    """Make sure that nothing is replaced without leave.

    Raises:
        FetchError: a file that is not the published one stands in the folder.
    """
    strange = [f"{name} is {fault}" for name, fault in faults.items() if fault != MISSING]
    if strange and not overwrite:
        raise FetchError(
            f"{folder} holds other files than the published ones: {'; '.join(strange)}. "
            "Move them away, or replace them by --overwrite"
        )


def fetch_file(file: DataFile, url: str, workshop: Path, patience: Patience, watcher: Watcher) -> None:
    """Bring one file into the workshop, whole and checked.

    Pieces of two different files make none: where they do not fit together, it is fetched once more from its beginning.

    Raises:
        FetchError: it does not come, cannot be kept, or is not the published one.
    """
    for again in (False, True):
        downloader = ResumingDownloader(file, workshop / f"{file.name}{PIECES}", patience, watcher)
        try:
            with silent_pooch():
                pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=workshop, downloader=downloader)
            return
        except ValueError:  # so pooch says that the checksum is another
            if downloader.sha256 in ("", file.sha256):
                raise
            if again or not downloader.resumed:
                raise FetchError(
                    f"{without_password(url)} is not the published {file.name}: expected SHA-256 {file.sha256}, what "
                    f"came has {downloader.sha256}; it was thrown away. Try another address by --from"
                ) from None
            watcher.tell(f"{file.name}: the pieces do not fit together; beginning again.")


@contextmanager
def workshop_in(folder: Path) -> Iterator[Path]:
    """A folder for what is on its way, with the pieces that are worth going on with and nothing else.

    Afterwards it is removed, except where there are pieces in it.
    """
    workshop = folder / WORKSHOP
    workshop.mkdir(exist_ok=True)
    for leftover in workshop.iterdir():
        if leftover.suffix != PIECES:
            leftover.unlink()
    try:
        yield workshop
    finally:
        with suppress(OSError):  # it is not empty
            workshop.rmdir()


@contextmanager
def only_one(folder: Path, watcher: Watcher) -> Iterator[None]:
    """Be the only fetch in a folder, which is created; waits while another is.

    The system gives the lock free when its holder ends, however it ends.

    Raises:
        FetchError: the folder cannot be created or written.
    """
    lock = filelock.FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            watcher.tell(f"Another fetch is at work in {folder}; waiting for it to end.")
            lock.acquire()
    except OSError as error:
        raise FetchError(cannot_write(folder, error)) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def keep_errors(folder: Path) -> Iterator[None]:
    """Say what the disk refuses in a message that a person can act on."""
    try:
        yield
    except OSError as error:
        raise FetchError(cannot_write(Path(error.filename2 or error.filename or folder), error)) from None


@contextmanager
def silent_pooch() -> Iterator[None]:
    """Keep pooch from telling its steps on the error stream: we tell ours."""
    logger = pooch.get_logger()
    former = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(former)
