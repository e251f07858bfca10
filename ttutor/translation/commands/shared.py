"""What several commands share: how they find and load the model of a run."""

import tempfile
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import say

if TYPE_CHECKING:
    from ttutor.translation.translator import EngineTranslator, Translator

DEFAULT_RUNS = Path("ttutor-runs")
Folder = Annotated[
    Path | None, typer.Option(help="Folder of the run; default: the last one trained under ttutor-runs.")
]


def load_translator(run: Path) -> "Translator":
    """The translator of a run; tells on the error stream of damaged checkpoints and of a training not at its end."""
    from ttutor.translation.translator import Translator

    translator = Translator.load(run)
    for message in translator.messages:
        say(f"Warning: {message}; the checkpoint before it is used.", error=True)
    if translator.unfinished:
        say(f"Note: {translator.unfinished}; go on with: ttutor train --resume --out {quote(str(run))}", error=True)
    return translator


def latest_or_shipped() -> "Translator":
    """The translator of the run that was begun last; before any training, the one that ships with the package."""
    from ttutor.translation.packed import load_default

    if runs_by_age():
        return load_translator(latest_run())
    say_which_ships()
    return load_default()


def say_which_ships() -> None:
    """Tell on the error stream that the model that ships is used."""
    say(
        f"Note: there is no training under {DEFAULT_RUNS}; this is the translator that ships with ttutor, English to "
        "German, which knows captions of photographs.",
        error=True,
    )


def with_engine(run: Path | None, name: str | None) -> "EngineTranslator":
    """The translator of a run or of an exported folder; with the name of another program, as that program runs it."""
    from ttutor.errors import FileError
    from ttutor.translation.export import EXPORT, export_translator, is_exported, load_exported

    if run is not None and is_exported(run):
        if name is not None:
            raise FileError(f"{run} is an exported model already ({EXPORT} says for which program): leave out --engine")
        return load_exported(run)
    translator = load_translator(run) if run else latest_or_shipped()
    if name is None:
        return translator
    with tempfile.TemporaryDirectory(prefix="ttutor-export-") as folder:
        return load_exported(export_translator(translator, Path(folder, "model"), name))


def runs_by_age() -> list[Path]:
    """The facts of every run under ttutor-runs, the last one begun last."""
    return sorted(DEFAULT_RUNS.glob("*/run.json"), key=lambda path: path.stat().st_mtime)


def latest_run() -> Path:
    """The run under ttutor-runs that was begun last."""
    from ttutor.errors import FileError

    runs = runs_by_age()
    if not runs:
        raise FileError(
            f"there is no trained model under {DEFAULT_RUNS}; train one first with `ttutor train`, or name it by --run"
        )
    return runs[-1].parent
