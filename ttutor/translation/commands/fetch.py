"""`ttutor fetch`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ttutor.console import say, teller
from ttutor.translation.commands.shared import plain_errors


def fetch(
    name: Annotated[str, typer.Argument(help="The data set: multi30k.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of all data sets; default: TTUTOR_DATA, else your data folder."),
    ] = None,
    languages: Annotated[
        list[str] | None, typer.Option(help="Source and target, as en-de; may be repeated; default: all.")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--from", help="Another address that has the files.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are not the published ones.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Download a data set, checked by its checksums; files that are there already are not fetched again."""
    with plain_errors():
        from ttutor.corpora.datasets import data_root, known_dataset
        from ttutor.corpora.fetch import fetch_dataset

        dataset, pairs, tell = known_dataset(name), languages or [], teller(quiet)
        folder = data_root(data_dir) / dataset.name
        progress = not quiet and sys.stderr is not None and sys.stderr.isatty()
        try:
            came = fetch_dataset(dataset, folder, pairs, base_url=base_url, overwrite=overwrite, progress=progress)
        except KeyboardInterrupt:
            say("\nStopped; the files that came whole are kept. The same command goes on.", error=True)
            raise typer.Exit(130) from None
        for file in dataset.files_of(pairs):
            tell(f"{file}: {'fetched' if file in came else 'was already there'}")
        tell(f"{dataset.name} is in {folder}. {dataset.terms}")
        tell(f"Please cite: {'; '.join(dataset.papers.values())}.")
