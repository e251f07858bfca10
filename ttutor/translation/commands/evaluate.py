"""`ttutor evaluate`."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttutor.console import plain_errors, say
from ttutor.translation.commands.shared import Folder, latest_run, load_translator

if TYPE_CHECKING:
    from ttutor.translation.evaluation import Evaluation
    from ttutor.translation.translator import Translation
    from ttutor.translation.worst import BadSentence


def evaluate(
    source: Annotated[Path | None, typer.Option(help="Sentences to translate; default: the run's test split.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Their translations by people.")] = None,
    run: Folder = None,
    beam: Annotated[int, typer.Option(help="Width of the beam; 1 is greedy search.", min=1)] = 5,
    length_penalty: Annotated[
        float, typer.Option(help="Exponent of the length penalty; higher makes longer translations.")
    ] = 1.0,
    precision: Annotated[
        str, typer.Option(help="Format of the products: fp32, bf16, or auto (bf16 where the processor has it).")
    ] = "fp32",
    worst: Annotated[int, typer.Option(help="Show this many of the worst sentences.", min=0)] = 3,
    language: Annotated[
        str | None, typer.Option(help="Of the reference (de, fr, en); default: by the file's name.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Keep the translations in this file (.gz too).")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the data sets.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Score a trained model by BLEU, chrF and exact matches.

    With sacreBLEU's signatures, and the worst sentences.
    """
    with plain_errors():
        from ttutor.corpora.text_files import check_output, write_text
        from ttutor.translation.evaluation import evaluate as score
        from ttutor.translation.evaluation_text import evaluation_text
        from ttutor.translation.worst import worst_sentences

        if output is not None:
            check_output(output)
        folder = run or latest_run()
        text = evaluation_text(folder, source, reference, data_dir)
        translator = load_translator(folder)
        sentences, references = [one for one, _ in text.pairs], [other for _, other in text.pairs]
        options: dict[str, Any] = {"beam_size": beam, "length_penalty": length_penalty, "precision": precision}
        answers = translator.translate(sentences, **options)
        translations = [answer.text for answer in answers]
        if output is not None:
            write_text(output, translations)
        n_cut = warn_of_cuts(answers)
        evaluation = score(translations, references, n_cut=n_cut, language=language or text.language)
        show(evaluation, worst_sentences(translator, answers, text.pairs, worst), as_json)


def warn_of_cuts(answers: "list[Translation]") -> int:
    """How many sentences were not translated whole; tells of them on the error stream."""
    cut = [number for number, answer in enumerate(answers, start=1) if answer.is_cut]
    if cut:
        first = ", ".join(map(str, cut[:5]))
        say(f"Warning: {len(cut):,} of {len(answers):,} sentences are cut, the first: {first}.", error=True)
    return len(cut)


def show(evaluation: "Evaluation", worst: "list[BadSentence]", as_json: bool) -> None:
    """Print the scores, then the worst sentences."""
    import json

    if as_json:
        body = evaluation.as_dict() | {"worst": [one.as_dict() for one in worst]}
        print(json.dumps(body, indent=1, ensure_ascii=False))
        return
    print(evaluation)
    if worst:
        print("\nThe worst by chrF, and below each word of the translation the source word that it looked at:")
    for one in worst:
        print("", *one.lines(shutil.get_terminal_size((100, 24)).columns), sep="\n")
