"""The commands `ttutor train`, `ttutor translate` and `ttutor evaluate`.

Exit codes: 0 for success, 2 for anything that the user can mend, 130 for Ctrl-C.

Heavy imports stand inside the functions, so that `ttutor --help` answers at once.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ttutor.translation.console import fail, plain_output, say

if TYPE_CHECKING:
    from ttutor.translation.corpus import Pair
    from ttutor.translation.translator import Translation, Translator

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
        with plain_output():
            yield
    except TranslationError as error:
        fail(str(error))


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
        translator = load_translator(run or latest_run())
        n_before = 0
        for group in [sentences] if sentences else piped_lines():
            answers = translator.translate(group, beam_size=beam, length_penalty=length_penalty)
            for number, answer in enumerate(answers, start=n_before + 1):
                warn_if_cut(number, answer)
                print(answer.text)
                for text, score in answer.alternatives[:alternatives]:
                    print(f"    {score:8.3f}  {text}")
            n_before += len(group)
            sys.stdout.flush()


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

        folder = run or latest_run()
        pairs = evaluation_pairs(folder, source, reference)
        translator = load_translator(folder)
        answers = translator.translate([one for one, _ in pairs], beam_size=beam, length_penalty=length_penalty)
        cut = [number for number, answer in enumerate(answers, start=1) if answer.is_cut]
        if cut:
            first = ", ".join(map(str, cut[:5]))
            say(f"Warning: {len(cut):,} of {len(answers):,} sentences are cut, the first: {first}.", error=True)
        evaluation = score([answer.text for answer in answers], [other for _, other in pairs], n_cut=len(cut))
        print(json.dumps(evaluation.as_dict(), indent=1) if as_json else str(evaluation))


def load_translator(run: Path) -> "Translator":
    """The translator of a run; tells on the error stream of damaged checkpoints and of a training not at its end."""
    from ttutor.translation.translator import Translator

    translator = Translator.load(run)
    for message in translator.messages:
        say(f"Warning: {message}; the checkpoint before it is used.", error=True)
    if translator.unfinished:
        say(f"Note: {translator.unfinished}; go on with: ttutor train --resume --out {run}", error=True)
    return translator


def warn_if_cut(number: int, answer: "Translation") -> None:
    """Tell on the error stream of a sentence that was not translated whole."""
    if answer.is_cut:
        say(f"Warning: sentence {number:,} is cut: {answer.cut}.", error=True)


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
        CorpusError: there is no input, it cannot be read, or a line is not UTF-8.
    """
    from ttutor.translation.errors import CorpusError

    if sys.stdin is None:
        raise CorpusError("there is no input: give the sentences as arguments, or one a line through a pipe")
    if sys.stdin.isatty():
        say("One sentence a line; end with Ctrl-D.", error=True)
    group: list[str] = []
    try:
        for number, line in enumerate(sys.stdin.buffer, start=1):
            group.append(decoded(line, number))
            if len(group) == at_once or sys.stdin.isatty():
                yield group
                group = []
    except OSError as error:
        raise CorpusError(f"the input cannot be read: {error.strerror or error}") from None
    if group:
        yield group


def decoded(line: bytes, number: int) -> str:
    """A line of the input as text, without its end, and the first without the mark that some editors put in front."""
    from ttutor.translation.errors import CorpusError

    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"the input is not UTF-8: line {number}, byte {error.start + 1}; convert it to UTF-8 (iconv does it)"
        ) from None


def evaluation_pairs(folder: Path, source: Path | None, reference: Path | None) -> "list[Pair]":
    """All pairs of two files or, without files, the unseen combinations of the embedded corpus.

    Raises:
        CorpusError: one file without the other, or none for a run on another text than the embedded.
    """
    from ttutor.translation.corpus import embedded_corpus, read_aligned
    from ttutor.translation.errors import CorpusError
    from ttutor.translation.run_folder import RunFolder

    if (source is None) != (reference is None):
        raise CorpusError(
            "--source and --reference belong together: give both, or neither for the run's own test split"
        )
    if source is not None:
        return read_aligned(source, reference)
    facts, corpus = RunFolder(folder).facts(), embedded_corpus()
    if any(facts.files.values()) or facts.fingerprint != corpus.fingerprint():
        raise CorpusError(
            f"the run {folder} was trained on {facts.corpus}, of which there is no test split here: "
            "give --source and --reference"
        )
    return corpus.test
