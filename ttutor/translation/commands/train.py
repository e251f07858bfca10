"""`ttutor train`."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ttutor.console import plain_errors


def train(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Option(help="Sentences to translate from, one a line (.gz too); or, alone, sentence, tab, translation."),
    ] = None,
    target: Annotated[Path | None, typer.Option(help="Their translations, line by line.")] = None,
    validation_source: Annotated[Path | None, typer.Option(help="Sentences to validate on.")] = None,
    validation_target: Annotated[Path | None, typer.Option(help="Their translations.")] = None,
    preset: Annotated[str | None, typer.Option(help="embedded, multi30k-short or multi30k-tiny.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe of your own, a TOML file.")] = None,
    languages: Annotated[str | None, typer.Option(help="Of a data set: from and to, as en-fr.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of all data sets; default: TTUTOR_DATA, else your data folder.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Train for this many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Train for this many passes over the text.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Train for this long.")] = None,
    batches_per_step: Annotated[
        int | None, typer.Option(help="Batches whose gradients make one step, in all processes together.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, other random choices.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default: ttutor-runs/<name>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Throw away a run that stands in the folder.")] = False,
    device: Annotated[
        str, typer.Option(help="auto (an NVIDIA GPU where there is one), cpu, cuda, or one GPU as cuda:1.")
    ] = "auto",
    samples: Annotated[int, typer.Option(help="Show this many validation sentences as it learns.", min=0)] = 3,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a translator.

    Without options it learns the embedded English-French grammar, in about a minute.

    In several processes, on one machine or many: torchrun --nproc-per-node 2 -m ttutor train ... Each computes its
    share of a step's batches, on a GPU of its own or on the CPU; the result is that of one process, up to rounding.
    """
    with plain_errors():
        from ttutor.errors import SettingError
        from ttutor.translation import training_command

        if context.args:
            options = " ".join(
                f"--{name} {quote(path)}" for name, path in zip(("source", "target"), context.args, strict=False)
            )
            raise SettingError(f"expected options, but came {' '.join(context.args)}: a text is given by {options}")
        training_command.run(
            training_command.TrainingRequest(
                files={
                    "source": source,
                    "target": target,
                    "validation_source": validation_source,
                    "validation_target": validation_target,
                },
                preset=preset,
                recipe=recipe,
                changes={
                    "languages": languages,
                    "steps": steps,
                    "epochs": epochs,
                    "minutes": minutes,
                    "batches_per_step": batches_per_step,
                    "seed": seed,
                },
                data_dir=data_dir,
                out=out,
                resume=resume,
                overwrite=overwrite,
                samples=samples,
                quiet=quiet,
                device=device,
            )
        )
