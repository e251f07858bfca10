"""Which sentences `ttutor evaluate` scores a run on: the user's files, or the test split of the run's own text."""

import re
from dataclasses import dataclass
from pathlib import Path

from ttutor.corpora.corpus import Pair, embedded_corpus, read_aligned
from ttutor.corpora.datasets import DATASETS, find_dataset
from ttutor.errors import InputError
from ttutor.training.run_folder import RunFacts, RunFolder

OTHER = "other"
"""The language of a reference whose file does not tell it."""


@dataclass(frozen=True)
class EvaluationText:
    """Sentences with their translations by people, and the language of these ("de")."""

    pairs: list[Pair]
    language: str


def evaluation_text(
    folder: Path, source: Path | None, reference: Path | None, data_dir: Path | None = None
) -> EvaluationText:
    """All pairs of two files or, without files, the test split of what the run was trained on.

    Args:
        folder: of the run.
        source, reference: two files, line by line; the language is the ending of the reference's name.
        data_dir: the folder of all data sets; where the run's training files lay, if it is not given.
    """
    if (source is None) != (reference is None):
        raise InputError("--source and --reference belong together: give both, or neither for the run's own test split")
    if source is not None and reference is not None:
        return EvaluationText(read_aligned(source, reference), language_of(reference))
    run = RunFolder(folder)
    facts, recipe = run.facts(), run.recipe()
    if recipe.corpus in DATASETS and recipe.languages:
        files = find_dataset(recipe.corpus, recipe.languages, data_dir or _data_dir_of(facts))["test"]
        return EvaluationText(read_aligned(*files), recipe.languages.split("-")[1])
    return EvaluationText(_embedded_test(folder, facts), "fr")


def language_of(path: Path) -> str:
    """The language that a file's name ends with.

    >>> language_of(Path("test.de.gz")), language_of(Path("test.zh-CN")), language_of(Path("references.txt"))
    ('de', 'zh', 'other')
    """
    ending = Path(path.name.removesuffix(".gz")).suffix.removeprefix(".")
    language = re.split("[-_]", ending)[0]
    return language if len(language) == 2 and language.isalpha() else OTHER


def _data_dir_of(facts: RunFacts) -> Path | None:
    """The folder of data sets that the run was trained from, where it still stands."""
    source = facts.files.get("source")
    return Path(source).parent.parent if source and Path(source).is_file() else None


def _embedded_test(folder: Path, facts: RunFacts) -> list[Pair]:
    """The combinations of the embedded grammar that no training shows."""
    corpus = embedded_corpus()
    if any(facts.files.values()) or facts.fingerprint != corpus.fingerprint():
        raise InputError(
            f"the run {folder} was trained on {facts.corpus}, of which there is no test split here: "
            "give --source and --reference"
        )
    return corpus.test
