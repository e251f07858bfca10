"""Activation patching and the causal trace, against what is known of a decoder-only model before it is run."""

import pytest
import torch

from tests.inside.models import TOKEN_IDS, language_model
from ttutor.errors import ShapeError
from ttutor.inside import activation_patching, capture, causal_trace, patch

ONE, OTHER = TOKEN_IDS[:1], torch.tensor([[2, 10, 8, 12, 13]])  # they differ at token 2


@pytest.fixture
def model():
    return language_model()


def answer(model, token_ids):
    return lambda: model(token_ids)[0, -1, 7]


def test_every_cell_is_the_run_with_that_one_state_put_in(model):
    trace = activation_patching(model, answer(model, ONE), answer(model, OTHER), "decoder.layers.*")
    assert trace.names == ["decoder.layers.0", "decoder.layers.1"]
    assert (trace.source, trace.target) == (answer(model, ONE)().item(), answer(model, OTHER)().item())
    with capture(model, "decoder.layers.*") as seen:
        model(ONE)
    for row, name in enumerate(trace.names):
        for token in range(5):

            def put(value, name=name, token=token):
                mixed = value.clone()
                mixed[:, token] = seen[name][:, token]
                return mixed

            with patch(model, {name: put}):
                assert trace.table[row, token] == answer(model, OTHER)()


def test_restoring_the_spoiled_embedding_restores_everything(model):
    noise = torch.randn(12, dtype=torch.float64)

    def spoil(embedded):
        spoiled = embedded.clone()
        spoiled[:, 2] += noise
        return spoiled

    trace = causal_trace(model, answer(model, ONE), {"embeddings": spoil}, "embeddings", "decoder.layers.*")
    assert trace.names == ["embeddings", "decoder.layers.0", "decoder.layers.1"]
    assert trace.source == answer(model, ONE)().item()
    with patch(model, {"embeddings": spoil}):
        assert trace.target == answer(model, ONE)().item()
    recovered = trace.recovered()
    assert abs(recovered[0, 2] - 1) < 1e-12
    assert (recovered[0, [0, 1, 3, 4]].abs() < 1e-12).all()
    assert abs(recovered[2, 4] - 1) < 1e-12


def test_runs_of_other_lengths_are_refused(model):
    with pytest.raises(ShapeError, match=r"one shape, but are \(1, 5, 12\) and \(1, 4, 12\)"):
        activation_patching(model, answer(model, ONE), answer(model, ONE[:, :4]), "decoder.layers.0")
