"""`ttutor translate`."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttutor.console import plain_errors, say
from ttutor.translation.commands.shared import Folder, with_engine

if TYPE_CHECKING:
    from ttutor.translation.answer import Translation
    from ttutor.translation.translator import EngineTranslator

INDENT = "    "
Sentences = Annotated[list[str] | None, typer.Argument(help="Sentences; none: one a line from the input.")]


def translate(
    sentences: Sentences = None,
    run: Folder = None,
    input_file: Annotated[Path | None, typer.Option("--input", help="Sentences, one a line (.gz too).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write here, whole or not at all (.gz too).")] = None,
    beam: Annotated[int, typer.Option(help="Width of the beam; 1 is greedy search.", min=1)] = 5,
    length_penalty: Annotated[
        float, typer.Option(help="Exponent of the length penalty; higher makes longer translations.")
    ] = 1.0,
    precision: Annotated[
        str, typer.Option(help="Format of the products: fp32, bf16, or auto (bf16 where the processor has it).")
    ] = "fp32",
    threads: Annotated[
        int | None,
        typer.Option(help="How many batches to translate side by side.", min=1, show_default="one a core"),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Another program that runs the model: ctranslate2, huggingface or onnx.", show_default="ttutor"
        ),
    ] = None,
    alternatives: Annotated[
        int | None, typer.Option(help="Up to this many further translations below each.", min=0, show_default="0")
    ] = None,
    alignment: Annotated[bool, typer.Option("--alignment", help="The source words that it looked at.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a sentence, for programs.")] = False,
) -> None:
    """Translate sentences with a trained model.

    They are arguments, a file, or lines from a pipe, and are answered in order.

    Before any training of yours it is the model that ships with ttutor: captions of photographs, English to German.

    Every line in is a line out, an empty one too. What --alternatives and --alignment add stands indented below; a
    program reads it better by --json.
    """
    with plain_errors():
        from ttutor.corpora.text_files import check_output, write_text

        if output is not None:
            check_output(output)
        groups = sentence_groups(sentences, input_file)
        translator = with_engine(run, engine)
        options = search_options(translator, beam, length_penalty, precision, alignment, threads)
        show = partial(json_lines if as_json else text_lines, n_alternatives=alternatives)
        lines: list[str] = []
        hand_out = print_at_once if output is None else lines.extend
        n_before = 0
        for group in groups:
            answers = translator.translate(group, **options)
            for number, answer in enumerate(answers, start=n_before + 1):
                warn_if_cut(number, answer)
            hand_out([line for answer in answers for line in show(answer)])
            n_before += len(group)
        if output is not None:
            write_text(output, lines)


def search_options(
    translator: "EngineTranslator",
    beam: int,
    length_penalty: float,
    precision: str,
    alignment: bool,
    threads: int | None,
) -> dict[str, Any]:
    """What `translate` of this translator is told; refuses what only the package's own search can do."""
    from ttutor.errors import SettingError
    from ttutor.translation.translator import Translator

    options: dict[str, Any] = {"beam_size": beam, "length_penalty": length_penalty}
    if isinstance(translator, Translator):
        return options | {"precision": precision, "attention": alignment, "threads": threads}
    if alignment:
        raise SettingError("--alignment needs the package's own search: leave out --engine, and give the run's folder")
    if precision != "fp32":
        raise SettingError("an exported model has its number format already: leave out --precision")
    if threads is not None:
        raise SettingError("the program of an exported model chooses its threads itself: leave out --threads")
    return options


def print_at_once(lines: list[str]) -> None:
    """Print lines so that whoever waits at the other end of a pipe has them."""
    for line in lines:
        print(line)
    if sys.stdout is not None:  # as where the shell closed it, by `>&-`
        sys.stdout.flush()


def text_lines(answer: "Translation", n_alternatives: int | None) -> Iterator[str]:
    """A translation for people: its line, then indented what else was asked for."""
    yield answer.text
    if answer.attention is not None:
        width = shutil.get_terminal_size((100, 24)).columns - len(INDENT)
        for line in answer.attention.lines(width=max(20, width)):
            yield (INDENT + line).rstrip()
    for text, score in answer.alternatives[: n_alternatives or 0]:
        yield f"{INDENT}{score:8.3f}  {text}"


def json_lines(answer: "Translation", n_alternatives: int | None) -> Iterator[str]:
    """A translation for programs: one line with all there is, every alternative too unless a number was asked for."""
    yield json.dumps(answer.as_dict(n_alternatives), ensure_ascii=False, allow_nan=False)


def warn_if_cut(number: int, answer: "Translation") -> None:
    """Tell on the error stream of a sentence that was not translated whole."""
    if answer.is_cut:
        say(f"Warning: sentence {number:,} is cut: {answer.cut}.", error=True)


def sentence_groups(sentences: list[str] | None, input_file: Path | None) -> Iterator[list[str]]:
    """What to translate, in groups: the arguments, the lines of the file or those of the standard input."""
    from ttutor.errors import InputError

    if sentences and input_file is not None:
        raise InputError("sentences were given both as arguments and by --input: give one or the other")
    return iter([sentences]) if sentences else lines_of(input_file)


def lines_of(input_file: Path | None) -> Iterator[list[str]]:
    """The lines of a file or, without one, of the standard input."""
    from ttutor.corpora.text_files import open_text, read_groups
    from ttutor.errors import InputError

    if input_file is None and sys.stdin is None:
        raise InputError("there is no input: give the sentences as arguments, or one a line through a pipe")
    if input_file is None and sys.stdin.isatty():
        say("One sentence a line; end with Ctrl-D.", error=True)
    name = "the input" if input_file is None else str(input_file)
    with nullcontext(sys.stdin.buffer) if input_file is None else open_text(input_file) as stream:
        yield from read_groups(stream, name)  # type: ignore[arg-type]
