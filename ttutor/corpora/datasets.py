"""The data sets that the commands know by name: what was published, and where its files lie on this machine.

A data set is looked for in the first of these folders that is given, under its own name:

1. the one named by `--data-dir` (in Python: `data_dir`),
2. the one named by the environment variable `TTUTOR_DATA`,
3. the user's data folder (not a cache: those may be emptied at any time, and a resumed training needs its text).

Nothing here opens a connection; `ttutor.corpora.fetch` does.
"""

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttutor.errors import FileError, InputError

DATA_VARIABLE = "TTUTOR_DATA"
"""The environment variable that names the folder of all data sets."""

MISSING = "missing"
"""The fault of a file that is not there; every other fault is one of a file that is."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Texts in several languages of which line n translates line n, published as one file a split and language.

    `splits` says for each split how its files are called, `{language}` standing for the language; `files` maps the
    name of each file to its SHA-256, `papers` the citation keys of the book to the papers; `terms` says in a sentence
    what the text may be used for.
    """

    name: str
    languages: tuple[str, ...]
    splits: Mapping[str, str]
    files: Mapping[str, str]
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
            raise InputError(
                f"{self.name} has no languages {languages!r}; expected two of its languages, source first: "
                f"{', '.join(self.pairs)}"
            )
        source, target = languages.split("-")
        return {
            split: (name.format(language=source), name.format(language=target)) for split, name in self.splits.items()
        }

    def files_of(self, pairs: Sequence[str] = ()) -> list[str]:
        """The names of the files that these pairs of languages need; without any, of all.

        >>> MULTI30K.files_of(["en-fr"])[:2]
        ['test_2016_flickr.en.gz', 'test_2016_flickr.fr.gz']
        """
        needed = {name for pair in pairs for both in self.names(pair).values() for name in both}
        return [name for name in self.files if name in needed or not pairs]

    def faults(self, names: Sequence[str], folder: Path) -> dict[str, str]:
        """What is wrong with these files in a folder; empty where all are there and as they were published."""
        faults = {}
        for name in names:
            try:
                found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            except (FileNotFoundError, NotADirectoryError):
                faults[name] = MISSING
            except OSError as error:
                raise InputError(f"{folder / name} cannot be read: {error.strerror or error}") from None
            else:
                if found != self.files[name]:
                    faults[name] = f"damaged: its SHA-256 is {found} instead of {self.files[name]}"
        return faults


MULTI30K = DataSet(
    name="multi30k",
    languages=("en", "de", "fr"),
    splits={
        "train": "train.{language}.gz",
        "validation": "val.{language}.gz",
        "test": "test_2016_flickr.{language}.gz",
    },
    files={
        "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
        "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
        "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    },
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
        raise InputError(f"there is no data set {name!r}; known are: {', '.join(DATASETS)}")
    return DATASETS[name]


def data_root(data_dir: str | Path | None = None) -> Path:
    """The folder of all data sets: the one given, else that of `TTUTOR_DATA`, else the user's data folder.

    >>> str(data_root("somewhere"))
    'somewhere'
    """
    chosen = data_dir or os.environ.get(DATA_VARIABLE)
    if not chosen:
        import platformdirs

        try:
            return platformdirs.user_data_path("ttutor", appauthor=False)
        except RuntimeError:  # a user without a home, as in many containers
            raise FileError(
                "this user has no home folder where data sets could be: set HOME, or name a folder by "
                f"{DATA_VARIABLE} or --data-dir"
            ) from None
    return Path(chosen).expanduser()


def find_dataset(
    dataset: str | DataSet, languages: str, data_dir: str | Path | None = None
) -> dict[str, tuple[Path, Path]]:
    """Source and target file of each split (train, validation, test), whole and as published.

    `languages` names the two, source first: "en-de".

    Raises:
        InputError: the data set or the pair is unknown, or a file is missing or damaged; says how to get it.
    """
    dataset = known_dataset(dataset) if isinstance(dataset, str) else dataset
    folder, names = data_root(data_dir) / dataset.name, dataset.names(languages)
    faults = dataset.faults(dataset.files_of([languages]), folder)
    if faults:
        raise InputError(_how_to_get(dataset, faults, folder, data_dir))
    return {split: (folder / source, folder / target) for split, (source, target) in names.items()}


def _how_to_get(dataset: DataSet, faults: Mapping[str, str], folder: Path, data_dir: str | Path | None) -> str:
    """What to tell a person whose data set is not whole."""
    missing = [name for name, fault in faults.items() if fault == MISSING]
    damaged = [f"{name} is {fault}" for name, fault in faults.items() if fault != MISSING]
    wrong = [f"it lacks {', '.join(missing)}"] if missing else []
    options = [*(["--data-dir", str(data_dir)] if data_dir else []), *(["--overwrite"] if damaged else [])]
    return (
        f"the data set {dataset.name} is not whole in {folder}: {'; '.join(wrong + damaged)}. Get it by "
        f"`{shlex.join(['ttutor', 'fetch', dataset.name, *options])}`; "
        f"without a connection copy these files there from {dataset.base_url}, or give by --data-dir "
        f"(or {DATA_VARIABLE}) another folder that holds {dataset.name}/"
    )
