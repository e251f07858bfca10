"""What several tests of the translator share."""

from pathlib import Path

import pytest
from filelock import FileLock

from tests.training.conftest import begin
from tests.training.tiny import tiny_recipe
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer

__all__ = ["begin"]


@pytest.fixture(scope="session")
def learned(shared_folder: Path) -> Trainer:
    """A model that knows its thirty sentences by heart: all that one so small can be sure to translate to an end."""
    corpus = embedded_corpus(0, {"train": 30, "validation": 5, "test": 5})
    changes = {"steps": 240, "warmup": 20, "dropout": 0.0, "d_model": 64, "n_layers": 2, "vocab_size": 600}
    recipe = tiny_recipe(**changes, batches_per_step=1, validate_every=240, checkpoint_every=240)
    folder = RunFolder(shared_folder / "learned" / "run")
    with FileLock(shared_folder / "learned.lock"):
        trainer = Trainer(corpus, recipe, folder, precision="fp32")
        if folder.has_checkpoint:  # another process has trained it
            trainer.resume()
        else:
            trainer.run()
    return trainer
