"""Getting a data set from where it is published: `ttutor fetch`.

Pooch does the work: it tries again where a connection fails, checks each file by its SHA-256, and gives it its name
only when it is whole and the published one.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pooch

from ttutor.corpora.datasets import MISSING, DataSet
from ttutor.errors import FileError
from ttutor.files import cannot_write

RETRIES = 4
"""How often a file that did not come is asked for again; pooch waits 1, 2, 3 and 4 seconds before."""


def fetch_dataset(
    dataset: DataSet,
    folder: Path,
    pairs: Sequence[str] = (),
    *,
    base_url: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> list[str]:
    """Bring the files that these pairs of languages need (without any: all) into a folder; names those that came.

    Files that are there and right are left alone. One that is there and is not the published one may be the user's
    work, so it stays as it is unless `overwrite` is set, and until its replacement is whole.

    Args:
        dataset: what to fetch.
        folder: where its files go.
        pairs: pairs of languages, as "en-de".
        base_url: another address that has the files.
        overwrite: replace files that are not the published ones.
        progress: show a bar for each file on the error stream.

    Raises:
        InputError: a pair of languages is unknown, or a file that is there cannot be read.
        FileError: a file does not come, is not the published one, cannot be kept, or stands in the way.
    """
    files = dataset.files_of(pairs)
    faults = dataset.faults(files, folder)
    strange = [f"{name} is {fault}" for name, fault in faults.items() if fault != MISSING]
    if strange and not overwrite:
        raise FileError(
            f"{folder} holds other files than the published ones: {'; '.join(strange)}. "
            "Move them away, or replace them by --overwrite"
        )
    address = (base_url or dataset.base_url).rstrip("/") + "/"
    registry = {name: f"sha256:{dataset.files[name]}" for name in files}
    downloader = pooch.HTTPDownloader(progressbar=progress, headers={"Accept-Encoding": "identity"})
    with _silent_pooch():
        for name in faults:
            try:
                source = pooch.create(folder, address, registry=registry, retry_if_failed=RETRIES)
                source.fetch(name, downloader=downloader)
            except (OSError, ValueError) as error:  # what pooch raises, the errors of requests among them
                raise FileError(_why_not(name, address, folder, error)) from None
    return list(faults)


def _why_not(name: str, address: str, folder: Path, error: Exception) -> str:
    """What to tell a person whose file did not come, or could not be kept."""
    if isinstance(error, OSError) and error.errno is not None:
        return cannot_write(Path(error.filename2 or error.filename or folder), error)
    return (
        f"{address}{name} cannot be fetched: {str(error).rstrip('.')}. Check that this machine is online (proxies are "
        "read from HTTPS_PROXY), give another address by --from, or copy the published files into "
        f"{folder}; what came whole is kept"
    )


@contextmanager
def _silent_pooch() -> Iterator[None]:
    """Keep pooch from telling its steps on the error stream: the command tells what came."""
    logger = pooch.get_logger()
    former = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(former)
