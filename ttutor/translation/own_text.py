"""A translator from your own text in one call."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ttutor.corpora.corpus import Pair, file_corpus, pairs_corpus
from ttutor.errors import InputError
from ttutor.names import answers_other_names
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.translation.translator import Translator

__all__ = ["train_translator"]


@answers_other_names
def train_translator(
    source: str | Path | Iterable[Pair],
    target: str | Path | None = None,
    folder: str | Path | None = None,
    *,
    recipe: TrainingRecipe | None = None,
    device: str = "auto",
    quiet: bool = False,
    **changes: Any,
) -> Translator:
    """Train a translator on your own text, and return it.

    Args:
        source: a file with one sentence a line; without a target, with a tab and its translation behind each sentence.
            Or the pairs of sentence and translation themselves, in a list.
        target: a file whose line n translates line n of the source.
        folder: where checkpoints and metrics go, for `Translator.load` later; None keeps everything in memory.
        recipe: the settings; if not given, those of "multi30k-tiny", which is made for real text, with a warm-up of a
            tenth of the training.
        device: "auto" (an NVIDIA GPU where there is one), "cpu", "cuda", or one GPU as "cuda:1".
        quiet: show no progress bar; that it has hardly learned is still said, as a warning.
        **changes: fields of the recipe that you want otherwise, such as ``steps=2000`` or ``minutes=10``.

    Raises:
        InputError: a file is missing, empty, a folder or not UTF-8, or the lines do not match.
        SettingError: there is no such field, value or device.
        FileError: the folder cannot be written, or holds another training.
    """
    if target is not None and Path(target).is_dir():
        raise InputError(f"expected a file of translations, but {target} is a folder; name that by folder=...")
    recipe = recipe or TrainingRecipe.preset("multi30k-tiny").replace(warmup=None)
    recipe = recipe.replace(corpus="files", languages=None).replace(**changes)
    if isinstance(source, str | Path):
        corpus = file_corpus(source, target, seed=recipe.seed)
    elif target is None:
        corpus = pairs_corpus(source, seed=recipe.seed)
    else:
        raise InputError("pairs hold their translations already: leave the target out, or name a file for each side")
    trainer = Trainer(corpus, recipe, folder, device=device)
    trainer.run(quiet=quiet)
    if warning := trainer.hardly_learned():
        warnings.warn(warning, stacklevel=3)  # past what answers other names, at the caller's line
    return Translator.of(trainer)
