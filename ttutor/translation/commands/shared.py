"""What several commands share: how they fail, and how they find and load the model of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import fail, plain_output, say

if TYPE_CHECKING:
    from ttutor.translation.translator import Translator

DEFAULT_RUNS = Path("ttutor-runs")
Folder = Annotated[
    Path | None, typer.Option(help="Folder of the run; default: the last one trained under ttutor-runs.")
]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what is wrong in one message and leave with code 2; a traceback helps nobody who mistyped a path."""
    from ttutor.errors import TranslationError

    try:
        with plain_output():
            yield
    except TranslationError as error:
        fail(str(error))


def load_translator(run: Path) -> "Translator":
    """The translator of a run; tells on the error stream of damaged checkpoints and of a training not at its end."""
    from ttutor.translation.translator import Translator

    translator = Translator.load(run)
    for message in translator.messages:
        say(f"Warning: {message}; the checkpoint before it is used.", error=True)
    if translator.unfinished:
        say(f"Note: {translator.unfinished}; go on with: ttutor train --resume --out {run}", error=True)
    return translator


def latest_or_shipped() -> "Translator":
    """The translator of the run that was begun last; before any training, the one that ships with the package."""
    from ttutor.translation.packed import load_default

    if runs_by_age():
        return load_translator(latest_run())
    say(
        f"Note: there is no training under {DEFAULT_RUNS}; this is the translator that ships with ttutor, English to "
        "German, which knows captions of photographs.",
        error=True,
    )
    return load_default()


def runs_by_age() -> list[Path]:
    """The facts of every run under ttutor-runs, the last one begun last."""
    return sorted(DEFAULT_RUNS.glob("*/run.json"), key=lambda path: path.stat().st_mtime)


def latest_run() -> Path:
    """The run under ttutor-runs that was begun last."""
    from ttutor.errors import CheckpointError

    runs = runs_by_age()
    if not runs:
        raise CheckpointError(
            f"there is no trained model under {DEFAULT_RUNS}; train one first with `ttutor train`, or name it by --run"
        )
    return runs[-1].parent
