"""The rank-one edit: exact at its key, and the least change by an independent solution of the same problem."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.inside.models import TOKEN_IDS, language_model
from ttutor.errors import ShapeError
from ttutor.inside import capture, edited, find_value, key_covariance, rank_one_edit


@pytest.fixture
def problem():
    """A weight, a key, a value and the covariance of 40 other keys, all in float64."""
    weight, key, value = (torch.randn(*size, dtype=torch.float64) for size in ((5, 7), (7,), (5,)))
    keys = torch.randn(40, 7, dtype=torch.float64) @ torch.randn(7, 7, dtype=torch.float64)
    return weight, key, value, key_covariance(keys)


def test_the_edited_weight_answers_the_key_with_the_value(problem):
    weight, key, value, covariance = problem
    new = rank_one_edit(weight, key, value, covariance)
    torch.testing.assert_close(new @ key, value, rtol=0, atol=1e-12)
    assert torch.linalg.matrix_rank(new - weight) == 1


def test_the_change_is_the_least_by_lagrange(problem):
    weight, key, value, covariance = (part.numpy() for part in problem)
    # Each row d of the change minimises d C d' subject to d k = r: one linear system in d and a multiplier.
    system = np.block([[covariance, key[:, None]], [key[None], np.zeros((1, 1))]])
    rows = [np.linalg.solve(system, np.append(np.zeros(7), r))[:7] for r in value - weight @ key]
    change = rank_one_edit(*problem).numpy() - weight
    np.testing.assert_allclose(change, np.stack(rows), rtol=0, atol=1e-11)


def test_an_edited_layer_is_the_old_one_afterwards(problem):
    _, key, value, covariance = problem
    layer = nn.Linear(7, 5).double()
    before = layer.weight.detach().clone()
    with pytest.raises(RuntimeError, match="on purpose"), edited(layer, key, value, covariance):  # noqa: PT012
        torch.testing.assert_close(layer(key), value, rtol=0, atol=1e-12)
        raise RuntimeError("on purpose")
    assert torch.equal(layer.weight, before)


def test_a_fact_is_written_into_a_model_and_others_move_less():
    model = language_model()
    name, token, wanted = "decoder.layers.1.feed_forward", 4, 17
    with torch.no_grad(), capture(model, f"{name}.narrow.input") as seen:
        before = model(TOKEN_IDS)
        model(torch.randint(1, 23, (40, 5)))
    assert before[0, token].argmax() != wanted
    first, many = seen.calls(f"{name}.narrow.input")

    def loss():
        return nn.functional.cross_entropy(model(TOKEN_IDS[:1])[:, token], torch.tensor([wanted]))

    value = find_value(model, name, token, loss, steps=20, learning_rate=0.5)
    layer = model.decoder.layers[1].feed_forward.narrow
    with torch.no_grad(), edited(layer, first[0, token], value, key_covariance(many, ridge=1e-3)):
        after = model(TOKEN_IDS)
    assert after[0, token].argmax() == wanted
    change = (after - before).norm(dim=-1)
    assert change[0, token] == change.max()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.usefixtures("as_readers_run_it")
def test_impossible_edits_are_refused(problem):
    weight, key, value, covariance = problem
    with pytest.raises(ValueError, match="not positive definite: gather more keys, or give key_covariance a ridge"):
        rank_one_edit(weight, key, value, key_covariance(torch.randn(3, 7, dtype=torch.float64)))
    with pytest.raises(ValueError, match="the key is zero"):
        rank_one_edit(weight, torch.zeros_like(key), value, covariance)
    with pytest.raises(ShapeError, match="axis 'd_in' is 7 in weight but 5 in key"):
        rank_one_edit(weight, value, value, covariance)
    with pytest.raises(ShapeError, match="keys must have at least 2 axes"):
        key_covariance(key)


def test_a_value_that_cannot_matter_or_is_not_one_is_refused():
    model = language_model()

    def loss():
        return model(TOKEN_IDS)[0, 0, 5]

    with pytest.raises(ValueError, match="the loss does not depend on 'decoder.layers.1' at token 4"):
        find_value(model, "decoder.layers.1", 4, loss, steps=1)
    with pytest.raises(ValueError, match=r"one intermediate that occurs is needed, but 'decoder.layers.\*' gave"):
        find_value(model, "decoder.layers.*", 4, loss, steps=1)
