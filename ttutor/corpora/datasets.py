"""The data sets that the commands know by name: what was published, and where its files lie on this machine.

A data set is looked for in the first of these folders that is given, under its own name:

1. the one named by `--data-dir` (in Python: `data_dir`),
2. the one named by the environment variable `TTUTOR_DATA`,
3. the user's data folder (not a cache: those may be emptied at any time, and a resumed training needs its text).

Nothing here opens a connection; `ttutor.corpora.fetch` does.
"""

import errno
import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttutor.errors import CorpusError

DATA_VARIABLE = "TTUTOR_DATA"
"""The environment variable that names the folder of all data sets."""

MISSING = "missing"
"""The fault of a file that is not there; every other fault is one of a file that is."""


@dataclass(frozen=True)
class DataFile:
    """A published file: its name, its length in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str

    def fault(self, folder: Path) -> str | None:
        """What is wrong with this file in a folder, in a few words, or None where it is as it was published."""
        path = folder / self.name
        try:
            size = path.stat().st_size
            if not path.is_file():
                return "no file, but a folder or the like"
            if size != self.size:
                return f"{size:,} bytes long instead of {self.size:,}"
            found = sha256_of(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return MISSING
            raise CorpusError(f"{path} cannot be read: {error.strerror or error}; check its permissions") from None
        return None if found == self.sha256 else f"damaged: its SHA-256 is {found} instead of {self.sha256}"


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Texts in several languages of which line n translates line n, published as one file a split and language.

    `splits` says for each split how its files are called, `{language}` standing for the language; `papers` maps the
    citation keys of the book to the papers; `terms` says in a sentence what the text may be used for.
    """

    name: str
    languages: tuple[str, ...]
    splits: Mapping[str, str]
    files: tuple[DataFile, ...]
    base_url: str
    papers: Mapping[str, str]
    terms: str

    @property
    def pairs(self) -> tuple[str, ...]:
        """Every pair of its languages, source first.

        >>> MULTI30K.pairs
        ('en-de', 'en-fr', 'de-en', 'de-fr', 'fr-en', 'fr-de')
        """
        return tuple(f"{one}-{other}" for one in self.languages for other in self.languages if one != other)

    def names(self, languages: str) -> dict[str, tuple[str, str]]:
        """The names of the two files of each split.

        >>> MULTI30K.names("en-de")["validation"]
        ('val.en.gz', 'val.de.gz')
        """
        if languages not in self.pairs:
            raise CorpusError(
                f"{self.name} has no languages {languages!r}; expected two of its languages, source first: "
                f"{', '.join(self.pairs)}"
            )
        source, target = languages.split("-")
        return {
            split: (name.format(language=source), name.format(language=target)) for split, name in self.splits.items()
        }

    def files_of(self, pairs: Sequence[str] = ()) -> list[DataFile]:
        """The files that these pairs of languages need; without any, all files.

        >>> [file.name for file in MULTI30K.files_of(["en-fr"])][:2]
        ['test_2016_flickr.en.gz', 'test_2016_flickr.fr.gz']
        """
        needed = {name for pair in pairs for both in self.names(pair).values() for name in both}
        return [file for file in self.files if file.name in needed or not pairs]


MULTI30K = DataSet(
    name="multi30k",
    languages=("en", "de", "fr"),
    splits={
        "train": "train.{language}.gz",
        "validation": "val.{language}.gz",
        "test": "test_2016_flickr.{language}.gz",
    },
    files=(
        DataFile("test_2016_flickr.de.gz", 22_890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
        DataFile("test_2016_flickr.en.gz", 21_077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
        DataFile("test_2016_flickr.fr.gz", 22_310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
        DataFile("train.de.gz", 637_044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
        DataFile("train.en.gz", 568_929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
        DataFile("train.fr.gz", 604_242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
        DataFile("val.de.gz", 24_681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
        DataFile("val.en.gz", 21_650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
        DataFile("val.fr.gz", 23_001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    ),
    base_url="https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
    papers={
        "elliott2016": "Elliott et al. 2016, arXiv:1605.00459",
        "elliott2017": "Elliott et al. 2017, arXiv:1710.07177",
    },
    terms="The text may be used for research and education; the images it describes are not part of it.",
)
"""Descriptions of photographs, 29,000 to train on, in English, German and French: task 1, raw, test set 2016."""

DATASETS = {dataset.name: dataset for dataset in (MULTI30K,)}


def known_dataset(name: str) -> DataSet:
    """The data set of this name."""
    if name not in DATASETS:
        raise CorpusError(f"there is no data set {name!r}; known are: {', '.join(DATASETS)}")
    return DATASETS[name]


def data_root(data_dir: str | Path | None = None) -> Path:
    """The folder of all data sets: the one given, else that of `TTUTOR_DATA`, else the user's data folder.

    >>> str(data_root("somewhere"))
    'somewhere'
    """
    chosen = data_dir or os.environ.get(DATA_VARIABLE)
    if not chosen:
        import platformdirs

        return platformdirs.user_data_path("ttutor", appauthor=False)
    return Path(chosen).expanduser()


def find_dataset(
    dataset: str | DataSet, languages: str, data_dir: str | Path | None = None
) -> dict[str, tuple[Path, Path]]:
    """Source and target file of each split (train, validation, test), whole and as published.

    `languages` names the two, source first: "en-de".

    Raises:
        CorpusError: the data set or the pair is unknown, or a file is missing or damaged; says how to get it.
    """
    dataset = known_dataset(dataset) if isinstance(dataset, str) else dataset
    folder, names = data_root(data_dir) / dataset.name, dataset.names(languages)
    faults = find_faults(dataset.files_of([languages]), folder)
    if faults:
        raise CorpusError(how_to_get(dataset, faults, folder, data_dir))
    return {split: (folder / source, folder / target) for split, (source, target) in names.items()}


def find_faults(files: Sequence[DataFile], folder: Path) -> dict[str, str]:
    """What is wrong with files, by their names; empty where all are there and as they were published."""
    faults = {file.name: file.fault(folder) for file in files}
    return {name: fault for name, fault in faults.items() if fault}


def how_to_get(dataset: DataSet, faults: Mapping[str, str], folder: Path, data_dir: str | Path | None) -> str:
    """What to tell a person whose data set is not whole."""
    missing = [name for name, fault in faults.items() if fault == MISSING]
    damaged = [f"{name} is {fault}" for name, fault in faults.items() if fault != MISSING]
    wrong = [f"it lacks {', '.join(missing)}"] if missing else []
    command = fetch_command(dataset, data_dir=data_dir, overwrite=bool(damaged))
    return (
        f"the data set {dataset.name} is not whole in {folder}: {'; '.join(wrong + damaged)}. Get it by `{command}`; "
        f"without a connection copy these files there from {dataset.base_url}, or give by --data-dir "
        f"(or {DATA_VARIABLE}) another folder that holds {dataset.name}/"
    )


def fetch_command(
    dataset: DataSet,
    *,
    languages: Sequence[str] = (),
    data_dir: str | Path | None = None,
    base_url: str | None = None,
    overwrite: bool = False,
) -> str:
    """The command that fetches a data set, as one types it.

    >>> fetch_command(MULTI30K, languages=["en-de"], data_dir="my data")
    "ttutor fetch multi30k --languages en-de --data-dir 'my data'"
    """
    words = ["ttutor", "fetch", dataset.name]
    words += [word for pair in languages for word in ("--languages", pair)]
    words += ["--data-dir", str(data_dir)] if data_dir else []
    words += ["--from", base_url] if base_url else []
    words += ["--overwrite"] if overwrite else []
    return shlex.join(words)


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
