"""`ttutor export`."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.console import plain_errors, say
from ttutor.translation.commands.shared import (
    latest_run,
    load_translator,
    runs_by_age,
    say_which_ships,
)

if TYPE_CHECKING:
    from ttutor.translation.translator import Translator

SHIPPED = "ttutor-translator"
Run = Annotated[
    Path | None, typer.Argument(help="Folder of the run; none: the last one trained, else the model that ships.")
]


def export(
    run: Run = None,
    to: Annotated[str, typer.Option(help="huggingface, ctranslate2 or onnx.")] = "ctranslate2",
    quantization: Annotated[
        str | None, typer.Option(help="int8: matrices in eight bits (ctranslate2 and onnx).", show_default="float32")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; default: the run's name and the form, beside the run.")
    ] = None,
) -> None:
    """Write a trained model for another program.

    For Hugging Face's transformers, CTranslate2 or ONNX Runtime.

    The tokenizer, the preparation of the text and a card for people go into the folder, too. `ttutor translate --run
    FOLDER` runs it.
    """
    with plain_errors():
        from ttutor.translation.export import export_translator

        translator, name, about, files = find(run)
        folder = out or name.with_name("-".join([name.name, to, *([quantization] if quantization else [])]))
        export_translator(translator, folder, to, quantization=quantization, about=about, files=files)
        say(f'{folder} is written; try it: ttutor translate --run {quote(str(folder))} "A sentence."')


def find(run: Path | None) -> "tuple[Translator, Path, dict[str, str], dict[str, bytes]]":
    """The translator, the name that its export gets by default, what the card says of it, and what must go along."""
    if run is None and not runs_by_age():
        from ttutor.translation.packed import load_packed, notice

        say_which_ships()
        packed = load_packed()
        return packed.translator, Path(SHIPPED), dict(packed.card), {"NOTICE": notice()}
    folder = run or latest_run()
    from ttutor.training.run_folder import RunFolder

    translator = load_translator(folder)
    recipe = RunFolder(folder).recipe()
    about = {"learned from": recipe.corpus, "direction": recipe.languages or "from source to target of its text"}
    return translator, folder, about, {}
