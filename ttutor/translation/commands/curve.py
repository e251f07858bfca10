"""`ttutor curve`."""

from pathlib import Path
from typing import Annotated

import typer

from ttutor.console import plain_errors
from ttutor.translation.commands.shared import latest_run


def curve(
    run: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a run, several for several; default: the last one trained under ttutor-runs."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The picture: SVG, PDF or PNG; default: curve.svg, in the run's folder if there is one run, else here."
        ),
    ] = None,
) -> None:
    """Draw the losses and learning rate of runs, finished or not."""
    with plain_errors():
        from ttutor.training.curve import write_curve
        from ttutor.training.run_folder import RunFolder

        folders = [RunFolder(path) for path in run or [latest_run()]]
        picture = output or (folders[0].curve if len(folders) == 1 else Path("curve.svg"))
        write_curve(folders, picture)
        print(picture)
