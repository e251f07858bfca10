"""What a person sees of a download."""

import sys
from collections.abc import Sequence

from tqdm import tqdm

from ttutor.console import say
from ttutor.corpora.datasets import DataFile
from ttutor.corpora.downloading import Watcher


class DownloadBar(Watcher):
    """A line that shows how much of some files is here; silent where `quiet`, or where the output is no terminal.

    What has to be told in words (that an attempt failed, and another follows) is told on the error stream, except
    where `quiet`.
    """

    def __init__(self, files: Sequence[DataFile], quiet: bool = False):
        self._quiet, self._here = quiet, dict.fromkeys(files, 0)
        self._bar = tqdm(
            total=sum(file.size for file in files),
            unit="B",
            unit_scale=True,
            leave=False,
            disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
            file=sys.stderr,
            dynamic_ncols=True,
        )

    def has(self, file: DataFile, n_bytes: int) -> None:
        """So many bytes of the file are here."""
        self._bar.set_description_str(file.name, refresh=False)
        self._bar.update(n_bytes - self._here[file])
        self._here[file] = n_bytes

    def tell(self, message: str) -> None:
        """Print a line above the bar."""
        if not self._quiet:
            self._bar.clear()
            say(message, error=True)
            self._bar.refresh()

    def close(self) -> None:
        """Take the line away: what came is told when all is done."""
        self._bar.close()
