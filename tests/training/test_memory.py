"""A training that cannot fit is refused before anything is made; one that is small is not."""

import time

import pytest
import torch

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.errors import SettingError
from ttutor.training.memory import check_memory, installed_memory
from ttutor.training.preparation import model_config
from ttutor.training.trainer import Trainer

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "absurd",
    [{"d_model": 10**9, "n_heads": 1}, {"d_ff": 10**12}, {"batches_per_step": 10**9}],
    ids=str,
)
def test_an_absurd_recipe_is_refused_within_a_moment_with_both_numbers(absurd):
    began = time.perf_counter()
    with pytest.raises(SettingError, match=r"needs at least [\d,.]+ GB .* this machine has [\d,.]+ GB"):
        Trainer(tiny_corpus(), tiny_recipe(**absurd))
    assert time.perf_counter() - began < 60  # mostly the tokenizer's training, on a busy machine


def test_the_bound_is_below_what_a_training_holds():
    recipe = tiny_recipe()
    trainer = Trainer(tiny_corpus(), recipe)
    held = 6 * 4 * trainer.model.n_parameters()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttutor.training.memory.installed_memory", lambda device: held)
        with pytest.raises(SettingError, match="needs at least"):  # the activations are not counted in `held`
            check_memory(
                model_config(recipe.replace(tokens_per_batch=10**6), 300), recipe.replace(tokens_per_batch=10**6), CPU
            )
    check_memory(trainer.model.config, recipe, CPU)
    assert installed_memory(CPU) > held
