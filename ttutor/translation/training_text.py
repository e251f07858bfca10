"""Which text `ttutor train` learns from: the user's files, the data set that the recipe names, or the grammar."""

import os
from collections.abc import Mapping
from pathlib import Path

from ttutor.corpora.corpus import Corpus, embedded_corpus, file_corpus
from ttutor.corpora.datasets import DATASETS, find_dataset, known_dataset
from ttutor.errors import InputError, SettingError
from ttutor.training.recipe import TrainingRecipe

EMBEDDED, FILES = "embedded", "files"
"""What a recipe calls a text that is no data set."""

Files = dict[str, str | None]
"""The files of a training by the names of their options: source, target, validation_source, validation_target."""


def recipe_for(recipe: TrainingRecipe, files: Mapping[str, Path | None]) -> TrainingRecipe:
    """The recipe as it is used with these files: where the user gives any, it learns from them and says so.

    >>> recipe_for(TrainingRecipe.preset("multi30k-tiny"), {"source": Path("a.en"), "target": Path("a.fr")}).corpus
    'files'
    """
    return recipe.replace(corpus=FILES, languages=None) if any(files.values()) else recipe


def files_for(recipe: TrainingRecipe, files: Mapping[str, Path | None], data_dir: Path | None = None) -> Files:
    """The files to learn from, as absolute paths; none for the embedded grammar.

    Args:
        recipe: names the data set, and its languages.
        files: what the user gave; any of them wins over the data set.
        data_dir: the folder of all data sets, if the user named one.
    """
    given = {name: os.path.abspath(path) if path else None for name, path in files.items()}
    if recipe.corpus in (EMBEDDED, FILES):
        _check_no_dataset(recipe, data_dir)
        if recipe.corpus == FILES and not any(given.values()):
            raise InputError(
                "the recipe learns from files: give --source and --target, or write into the recipe another corpus: "
                f'"{EMBEDDED}", or a data set ({", ".join(DATASETS)})'
            )
        return given
    if recipe.languages is None:
        pairs = ", ".join(known_dataset(recipe.corpus).pairs)
        raise SettingError(f"{recipe.corpus} has several languages: choose two by --languages, out of {pairs}")
    splits = find_dataset(recipe.corpus, recipe.languages, data_dir)
    paths = [*splits["train"], *splits["validation"]]
    names = ("source", "target", "validation_source", "validation_target")
    return {name: os.path.abspath(path) for name, path in zip(names, paths, strict=True)}


def _check_no_dataset(recipe: TrainingRecipe, data_dir: Path | None) -> None:
    wrong = {"--languages": recipe.languages, "--data-dir": data_dir}
    given = [name for name, value in wrong.items() if value is not None]
    if given:
        text = "files" if recipe.corpus == FILES else "the embedded grammar (English to French)"
        raise SettingError(
            f"only a data set takes {' and '.join(given)}, and this training is on {text}; leave that out, "
            "or choose a recipe for a data set, as --preset multi30k-tiny"
        )


def read_corpus(files: Mapping[str, str | None], seed: int) -> Corpus:
    """The text of the files or, without any, of the embedded grammar."""
    for one, other in (("source", "target"), ("validation_source", "validation_target")):
        if files.get(one) is None and files.get(other) is not None:
            raise InputError(f"--{other.replace('_', '-')} needs --{one.replace('_', '-')}: give both")
    source, target = files.get("source"), files.get("target")
    held_out_source, held_out_target = files.get("validation_source"), files.get("validation_target")
    validation = (held_out_source, held_out_target) if held_out_source else None
    if source:
        return file_corpus(source, target, validation=validation, seed=seed)
    if validation:
        raise InputError("validation files without training files: give --source and --target too")
    return embedded_corpus()
