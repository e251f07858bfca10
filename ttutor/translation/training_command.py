"""What `ttutor train` does: gather text and recipe, open or create the run's folder, train, and tell how it went."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

import torch
import typer

from ttutor.console import MENDABLE, say, teller
from ttutor.corpora.corpus import Corpus
from ttutor.errors import FileError, InputError, ProcessLost, RunError, SettingError, TtutorError
from ttutor.training.curve import write_curve
from ttutor.training.precision import place, training_device
from ttutor.training.processes import Processes, may_be_restarted
from ttutor.training.progress import SaidIfSlow, Stopped
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.training.trainer import OnValidation, Trainer
from ttutor.translation.evaluation import exact_match
from ttutor.translation.report import Report
from ttutor.translation.training_text import files_for, read_corpus, recipe_for
from ttutor.translation.translator import Translator


@dataclass(frozen=True)
class TrainingRequest:
    """What the user asked for; None where they left it to us."""

    files: dict[str, Path | None] = field(default_factory=dict)
    preset: str | None = None
    recipe: Path | None = None
    changes: dict[str, float | str | None] = field(default_factory=dict)
    data_dir: Path | None = None
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    samples: int = 0
    quiet: bool = False
    device: str = "auto"


def run(request: TrainingRequest, on_validation: OnValidation | None = None) -> Trainer:
    """Train as asked, from the beginning or from the last checkpoint.

    Where torchrun started several processes, each calls this; the first writes and speaks for all.

    `on_validation` as for `Trainer.run`; it is called after the report on the validation.
    """
    processes = Processes.launched()
    if not processes.is_first:
        request = replace(request, quiet=True, samples=0)
    folder = RunFolder(request.out or Path("ttutor-runs") / _default_name(request))
    if may_be_restarted() and folder.exists:  # by the very command that began it
        request = replace(request, resume=True, overwrite=False)
    with speaking_once(processes, folder), ExitStack() as held:
        make = _resumed if request.resume else _begun
        trainer = processes.run_on_first(lambda: make(request, folder, processes, held))
        _train(trainer, request, on_validation)
        processes.close()
        if processes.is_first:
            _tell_result(trainer, teller(request.quiet))
            if warning := trainer.hardly_learned():
                say(f"Warning: {warning}", error=True)
            draw_curve(trainer, teller(request.quiet))
    return trainer


def _train(trainer: Trainer, request: TrainingRequest, on_validation: OnValidation | None) -> None:
    teller(request.quiet)(
        f"{trainer.corpus.name}: {len(trainer.corpus.train):,} pairs to train on; {trainer.model.n_parameters():,} "
        f"parameters, {trainer.precision}, {_place(trainer)}; the run's folder is {trainer.folder.path}"
    )
    report = Report(trainer, request.samples, request.quiet)

    def look(trainer: Trainer) -> None:
        report(trainer)
        if on_validation:
            on_validation(trainer)

    try:
        trainer.run(quiet=request.quiet, on_validation=look)
    except Stopped:
        if trainer.processes.is_first:
            again = trainer.processes.command(f"train --resume --out {quote(str(trainer.folder.path))}")
            say(f"\nStopped and saved after step {trainer.position.step:,}. Go on with: {again}", error=True)
        else:
            trainer.processes.wait_for_an_end()
        raise typer.Exit(130) from None


@contextmanager
def speaking_once(processes: Processes, folder: RunFolder) -> Iterator[None]:
    """Let the first process alone say what ends all of them; if one is lost, each of the others says how to go on."""
    try:
        yield
    except ProcessLost as error:
        again = processes.command(f"train --resume --out {quote(str(folder.path))}")
        kept = f". The last checkpoint in {folder.checkpoints} is whole; go on with: {again}"
        raise ProcessLost(f"{error}{kept if folder.has_checkpoint else ''}") from None
    except RunError:
        if processes.is_first:
            raise
        processes.wait_for_an_end()
        raise typer.Exit(MENDABLE) from None


def draw_curve(trainer: Trainer, tell: Callable[[str], None]) -> None:
    """The curve, where Matplotlib is there to draw it; a finished training does not fail for the lack of a picture."""
    if not trainer.metrics or find_spec("matplotlib") is None:
        return
    try:
        write_curve([trainer.folder], trainer.folder.curve)
    except TtutorError as error:
        say(f"Warning: the training is saved, but not its curve: {error}", error=True)
    else:
        tell(f"Losses and learning rate, drawn: {trainer.folder.curve}")


def _default_name(request: TrainingRequest) -> str:
    """What to call the run's folder: after the recipe, and the languages where they are not the recipe's own."""
    languages = f"-{request.changes['languages']}" if request.changes.get("languages") else ""
    if request.recipe:
        return request.recipe.stem + languages
    return (request.preset or ("from-files" if request.files.get("source") else _default_preset(request))) + languages


def _default_preset(request: TrainingRequest) -> str:
    """The recipe of one who names none: for text of their own, or of a data set, the one for real text."""
    real = request.files.get("source") or request.changes.get("languages") or request.data_dir
    return "multi30k-tiny" if real else "embedded"


def _begun(request: TrainingRequest, folder: RunFolder, processes: Processes, held: ExitStack) -> Trainer:
    """A training at its beginning, with its folder on disk; `held` keeps other writers out of it."""
    recipe, tell = _recipe(request), teller(request.quiet)
    device = training_device(request.device, processes.local_rank)
    if processes.is_first:
        folder.check_free(overwrite=request.overwrite)
    try:
        files = files_for(recipe, request.files, request.data_dir)
    except InputError as error:
        if request.preset or request.recipe:
            raise
        raise InputError(
            f"{error} ({recipe.corpus} is the default where neither --preset nor --recipe names a text)"
        ) from None
    corpus = read_corpus(files, recipe.seed)
    for note in corpus.notes:
        tell(note)
    trainer = _made(request, corpus, recipe, folder, device=device, processes=processes)
    _tell_left_out(trainer, tell)
    if trainer.writes:
        held.enter_context(folder.writing())
        folder.create(recipe, trainer.tokenizer, trainer.facts(files), overwrite=request.overwrite)
        if folder.checkpoints.is_symlink():
            tell(f"{folder.checkpoints} is a link: checkpoints go to {folder.checkpoints.resolve()}.")
    return trainer


def _made(request: TrainingRequest, corpus: Corpus, recipe: TrainingRecipe, folder: RunFolder, **rest: Any) -> Trainer:
    """A trainer; a vocabulary of much text, or a thousand layers, take long before the first step."""
    text = (
        f"Vocabulary and model are being made: {len(corpus.train):,} pairs to read, {recipe.n_layers:,} layers of "
        f"width {recipe.d_model:,} on either side."
    )
    with closing(SaidIfSlow(text, request.quiet)):
        return Trainer(corpus, recipe, folder, **rest)


def _tell_left_out(trainer: Trainer, tell: Callable[[str], None]) -> None:
    counts = {"training": trainer.n_left_out, "validation": trainer.n_validation_left_out}
    for purpose, count in counts.items():
        if count:
            tell(
                f"Left out of {purpose}: {count:,} pairs with more than max_tokens={trainer.recipe.max_tokens} tokens."
            )


def _resumed(request: TrainingRequest, folder: RunFolder, processes: Processes, held: ExitStack) -> Trainer:
    """A training where its last whole checkpoint stands, with the recipe and the text it began with."""
    facts, recipe = folder.facts(), folder.recipe()
    if processes.is_first:
        held.enter_context(folder.writing())
    contradicting = _contradicting_options(request, facts, recipe)
    if contradicting:
        raise SettingError(
            f"--resume goes on with the recipe and the text of the run in {folder.path}, which differ from "
            f"{', '.join(contradicting)}; leave those out"
        )
    tell = teller(request.quiet)
    moved = request.data_dir is not None  # the data set, since the training began
    corpus = read_corpus(files_for(recipe, {}, request.data_dir) if moved else facts.files, recipe.seed)
    if corpus.fingerprint() != facts.fingerprint:
        raise FileError(
            f"the text has changed since the run in {folder.path} began, or was not read from files; "
            "restore the files as they were, or train anew in another folder"
        )
    device = training_device(request.device, processes.local_rank)
    trainer = _made(
        request,
        corpus,
        recipe,
        folder,
        tokenizer=folder.tokenizer(),
        precision=facts.precision,
        device=device,
        processes=processes,
    )
    began = place(facts.processes, facts.threads, facts.device)
    if began != _place(trainer):
        tell(
            f"This run began with {began} and goes on with {_place(trainer)}: "
            "its weights will differ from an uninterrupted run's, as a rule in the last digits only."
        )
    if folder.has_checkpoint:  # else it was killed before it wrote the first, and begins again
        for message in trainer.resume():
            if processes.is_first:
                say(f"Warning: {message}; the checkpoint before it is used.", error=True)
    tell(f"Resumed after step {trainer.position.step:,}.")
    return trainer


def _place(trainer: Trainer) -> str:
    return place(trainer.processes.count, torch.get_num_threads(), trainer.device.type)


def _contradicting_options(request: TrainingRequest, facts: RunFacts, recipe: TrainingRecipe) -> list[str]:
    """The options that ask for something else than the run has; the command that began it may be repeated."""
    names = [name for name, path in request.files.items() if path and os.path.abspath(path) != facts.files.get(name)]
    names += [name for name, value in request.changes.items() if value is not None and value != getattr(recipe, name)]
    if not names and (request.preset or request.recipe) and _recipe(request) != recipe:
        names.append("preset" if request.preset else "recipe")
    return [f"--{name.replace('_', '-')}" for name in names]


def _recipe(request: TrainingRequest) -> TrainingRecipe:
    if request.preset and request.recipe:
        raise SettingError("--preset and --recipe exclude each other: give one")
    if request.recipe:
        recipe = TrainingRecipe.load(request.recipe)
    else:
        recipe = TrainingRecipe.preset(request.preset or _default_preset(request))
        if request.preset is None and request.files.get("source"):
            recipe = recipe.replace(warmup=None)  # text of their own may be little
    changes = {name: value for name, value in request.changes.items() if value is not None}
    return recipe_for(recipe, request.files).replace(**changes)


def _tell_result(trainer: Trainer, tell: Callable[[str], None]) -> None:
    position, last = trainer.position, trainer.metrics[-1] if trainer.metrics else {}
    loss = last.get("validation_loss")
    ended = "not on record (metrics.jsonl was lost)" if loss is None else f"{loss:.3f} nats per token"
    tell(
        f"Trained {position.step:,} steps on {position.target_tokens:,} target tokens "
        f"in {position.seconds:.0f} seconds; validation loss {ended}."
    )
    if trainer.uses_best() and position.best_step < position.step:
        tell(
            f"The best was {position.best_loss:.3f}, after step {position.best_step:,}: its weights are kept to "
            "translate with."
        )
    if trainer.corpus.test:
        answers = Translator.of(trainer).translate([source for source, _ in trainer.corpus.test], beam_size=1)
        share = exact_match([answer.text for answer in answers], [target for _, target in trainer.corpus.test])
        right = round(share * len(answers))
        tell(
            f"Exact matches on test sentences with combinations never seen: {right:,} of {len(answers):,} "
            f"({100 * share:.2f} %)."
        )
    tell(f'Try it: ttutor translate --run {quote(str(trainer.folder.path))} "..."')
