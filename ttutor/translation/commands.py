"""The commands `ttutor train`, `ttutor translate` and `ttutor evaluate`.

Heavy imports stand inside the functions, so that `ttutor --help` answers at once.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_RUNS = Path("ttutor-runs")
Folder = Annotated[
    Path | None, typer.Option(help="Folder of the run; default: the last one trained under ttutor-runs.")
]


def register(app: typer.Typer) -> None:
    """Add the translator's commands to the `ttutor` command."""
    app.command("train")(train)
    app.command("translate")(translate)
    app.command("evaluate")(evaluate)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what is wrong in one message and leave with code 2; a traceback helps nobody who mistyped a path."""
    from ttutor.translation.errors import TranslationError

    try:
        yield
    except TranslationError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    except BrokenPipeError:  # the reader of our output, `head` for instance, has seen enough
        sys.stderr.close()
        raise typer.Exit(0) from None


def train(
    source: Annotated[Path | None, typer.Option(help="Sentences to translate from, one a line (.gz too).")] = None,
    target: Annotated[Path | None, typer.Option(help="Their translations, line by line.")] = None,
    validation_source: Annotated[Path | None, typer.Option(help="Sentences to validate on.")] = None,
    validation_target: Annotated[Path | None, typer.Option(help="Their translations.")] = None,
    preset: Annotated[str | None, typer.Option(help="embedded or multi30k-tiny.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A recipe of your own, TOML or JSON.")] = None,
    steps: Annotated[int | None, typer.Option(help="Train for this many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Train for this many passes over the text.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Train for this long.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, other random choices.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default: ttutor-runs/<name>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Throw away a run that stands in the folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a translator; without options on the embedded English-French grammar, in about a minute."""
    with plain_errors():
        from ttutor.translation import training_command

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
                changes={"steps": steps, "epochs": epochs, "minutes": minutes, "seed": seed},
                out=out,
                resume=resume,
                overwrite=overwrite,
                quiet=quiet,
            )
        )


def translate(
    sentences: Annotated[list[str] | None, typer.Argument(help="Sentences; none: one a line from the input.")] = None,
    run: Folder = None,
    beam: Annotated[int, typer.Option(help="Width of the beam; 1 is greedy search.", min=1)] = 5,
    length_penalty: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    alternatives: Annotated[int, typer.Option(help="Print up to this many further translations.", min=0)] = 0,
) -> None:
    """Translate sentences with a trained model: arguments, or lines from a pipe, answered in order."""
    with plain_errors():
        from ttutor.translation.translator import Translator

        translator = Translator.load(run or latest_run())
        for message in translator.messages:
            typer.echo(f"Warning: {message}; the checkpoint before it is used.", err=True)
        if not sentences and sys.stdin.isatty():
            typer.echo("One sentence a line; end with Ctrl-D.", err=True)
        for group in [sentences] if sentences else piped_lines():
            for answer in translator.translate(group, beam_size=beam, length_penalty=length_penalty):
                typer.echo(answer.text)
                for text, score in answer.alternatives[:alternatives]:
                    typer.echo(f"    {score:8.3f}  {text}")


def evaluate(
    source: Annotated[Path | None, typer.Option(help="Sentences to translate; default: the run's test split.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Their translations by people.")] = None,
    run: Folder = None,
    beam: Annotated[int, typer.Option(help="Width of the beam; 1 is greedy search.", min=1)] = 5,
    length_penalty: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Score a trained model: BLEU and chrF with sacreBLEU's signatures, and the share of exact matches."""
    with plain_errors():
        import json

        from ttutor.translation.evaluation import evaluate as score
        from ttutor.translation.translator import Translator

        folder = run or latest_run()
        pairs = evaluation_pairs(folder, source, reference)
        translator = Translator.load(folder)
        answers = translator.translate([one for one, _ in pairs], beam_size=beam, length_penalty=length_penalty)
        evaluation = score([answer.text for answer in answers], [other for _, other in pairs])
        typer.echo(json.dumps(evaluation.as_dict(), indent=1) if as_json else str(evaluation))


def latest_run() -> Path:
    """The run under ttutor-runs that was begun last.

    Raises:
        CheckpointError: there is none.
    """
    from ttutor.translation.errors import CheckpointError

    runs = sorted(DEFAULT_RUNS.glob("*/run.json"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise CheckpointError(
            f"there is no trained model under {DEFAULT_RUNS}; train one first with `ttutor train`, or name it by --run"
        )
    return runs[-1].parent


def piped_lines(at_once: int = 64) -> Iterator[list[str]]:
    """Lines of the standard input: one by one from a terminal, by the group from a pipe.

    Raises:
        CorpusError: a line is not UTF-8.
    """
    from ttutor.translation.errors import CorpusError

    group: list[str] = []
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            group.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise CorpusError(f"the input is not UTF-8: line {number}, byte {error.start + 1}") from None
        if len(group) == at_once or sys.stdin.isatty():
            yield group
            group = []
    if group:
        yield group


def evaluation_pairs(folder: Path, source: Path | None, reference: Path | None) -> list[tuple[str, str]]:
    """The pairs of two files or, without files, the unseen combinations of the embedded corpus.

    Raises:
        CorpusError: one file without the other, or none for a run on files.
    """
    from ttutor.translation.corpus import embedded_corpus, read_pairs
    from ttutor.translation.errors import CorpusError
    from ttutor.translation.run_folder import RunFolder

    if (source is None) != (reference is None):
        raise CorpusError(
            "--source and --reference belong together: give both, or neither for the run's own test split"
        )
    if source is not None:
        return read_pairs(source, reference)[0]
    if any(RunFolder(folder).facts().files.values()):
        raise CorpusError(
            f"the run {folder} was trained on files, which have no test split: give --source and --reference"
        )
    return embedded_corpus().test
