"""A corpus and a recipe so small that a training takes a moment."""

from ttutor.corpora.corpus import Corpus, embedded_corpus
from ttutor.training.recipe import TrainingRecipe

SIZES = {"train": 120, "validation": 10, "test": 10}


def tiny_corpus(seed: int = 0) -> Corpus:
    return embedded_corpus(seed, SIZES)


def tiny_recipe(**changes) -> TrainingRecipe:
    """Dropout is on, so that random numbers matter; several epochs, so that the shuffling does."""
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "dropout": 0.1, "vocab_size": 300}
    rest = {"tokens_per_batch": 400, "warmup": 4, "steps": 14, "validate_every": 5, "checkpoint_every": 3}
    return TrainingRecipe.preset("embedded").replace(**sizes, **rest).replace(**changes)
