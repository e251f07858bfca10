"""A corpus and a recipe so small that a training takes a moment."""

import json

from ttutor.corpora.corpus import Corpus, embedded_corpus
from ttutor.training.recipe import TrainingRecipe

SIZES = {"train": 120, "validation": 10, "test": 10}
MODEL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "vocab_size": 300}
BATCHES = {"tokens_per_batch": 400, "warmup": 4}


def tiny_corpus(seed: int = 0) -> Corpus:
    return embedded_corpus(seed, SIZES)


def tiny_recipe(**changes) -> TrainingRecipe:
    """Dropout is on, so that random numbers matter; several epochs, so that the shuffling does."""
    rest = {"dropout": 0.1, "steps": 14, "validate_every": 5, "checkpoint_every": 3}
    return TrainingRecipe.preset("embedded").replace(**MODEL, **BATCHES, **rest).replace(**changes)


def tiny_toml(**changes) -> str:
    """Such a recipe as a file, with what a test changes."""
    return "".join(
        f"{name} = {json.dumps(value)}\n" for name, value in (MODEL | BATCHES | {"max_tokens": 64} | changes).items()
    )
