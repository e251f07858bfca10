"""What several tests of the translator share."""

import pytest
import torch

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer


@pytest.fixture
def threads():
    """Set the number of PyTorch's threads, for this test alone."""
    former = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(former)


@pytest.fixture
def begin(tmp_path):
    """Begin a tiny training in a folder of its own: `begin("name", steps=3)`."""

    def make(name: str = "run", corpus=None, **changes) -> Trainer:
        corpus = corpus or tiny_corpus()
        trainer = Trainer(corpus, tiny_recipe(**changes), RunFolder(tmp_path / name))
        trainer.folder.create(trainer.recipe, trainer.tokenizer, trainer.facts())
        return trainer

    return make
