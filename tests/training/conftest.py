"""What several tests of the translator share."""

import pytest

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.corpora.text_style import TextStyle
from ttutor.training.run_folder import RunFacts, RunFolder
from ttutor.training.trainer import Trainer


@pytest.fixture
def begin(tmp_path):
    """Begin a tiny training in a folder of its own: `begin("name", steps=3)`."""

    def make(name: str = "run", corpus=None, **changes) -> Trainer:
        corpus = corpus or tiny_corpus()
        trainer = Trainer(corpus, tiny_recipe(**changes), RunFolder(tmp_path / name))
        facts = RunFacts(
            corpus=corpus.name,
            fingerprint=corpus.fingerprint(),
            files={},
            style=TextStyle.of([source for source, _ in corpus.train]),
            precision=trainer.precision,
            threads=1,
        )
        trainer.folder.create(trainer.recipe, trainer.tokenizer, facts)
        return trainer

    return make
