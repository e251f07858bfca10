"""The feed-forward network as a sum over memories, and which inputs a key responds to."""

import pytest
import torch
from torch import nn

from tests.inside.models import TOKEN_IDS, language_model
from ttutor.errors import ShapeError
from ttutor.inside import capture, memory_coefficients, memory_keys, memory_values, top_inputs
from ttutor.layers import FeedForward, GatedFeedForward


@pytest.fixture
def hidden():
    return torch.randn(2, 5, 7, dtype=torch.float64)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_output_is_a_sum_over_memories(activation, hidden):
    network = FeedForward(7, 11, activation=activation).double()
    nn.init.normal_(network.widen.bias)
    nn.init.normal_(network.narrow.bias)
    total = network.narrow.bias.expand_as(hidden).clone()
    for key, bias, value in zip(memory_keys(network), network.widen.bias, memory_values(network), strict=True):
        fit = getattr(nn.functional, activation)(hidden @ key + bias)
        total += fit[..., None] * value
    torch.testing.assert_close(network(hidden), total, rtol=0, atol=1e-12)


def test_coefficients_of_a_gated_network_are_gate_times_width(hidden):
    network = GatedFeedForward(7, 11, activation="silu").double()
    coefficients = memory_coefficients(network, hidden)
    expected = nn.functional.silu(hidden @ memory_keys(network).T) * (hidden @ network.widen.weight.T)
    torch.testing.assert_close(coefficients, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(network(hidden), coefficients @ memory_values(network), rtol=0, atol=1e-12)


def test_coefficients_are_what_capture_finds_in_a_model():
    model = language_model()
    name = "decoder.layers.1.feed_forward"
    with capture(model, f"{name}.input", f"{name}.narrow.input") as seen:
        model(TOKEN_IDS)
    network = model.decoder.layers[1].feed_forward
    assert torch.equal(memory_coefficients(network, seen[f"{name}.input"]), seen[f"{name}.narrow.input"])


def test_top_inputs_are_the_largest_in_order():
    coefficients = torch.randperm(2 * 5 * 3).reshape(2, 5, 3).double()
    found = top_inputs(coefficients, key=1, n=4)
    ranked = sorted(((coefficients[r, t, 1].item(), r, t) for r in range(2) for t in range(5)), reverse=True)
    assert [(place.coefficient, place.row, place.token) for place in found] == ranked[:4]
    assert len(top_inputs(coefficients, key=1, n=99)) == 10


@pytest.mark.usefixtures("as_readers_run_it")
def test_keys_and_axes_that_do_not_exist_are_refused():
    with pytest.raises(IndexError, match="keys 0 to 2, but key 3 was asked for"):
        top_inputs(torch.zeros(2, 5, 3), key=3)
    with pytest.raises(ShapeError, match=r"coefficients must have 3 axes \[batch tokens d_ff\]"):
        top_inputs(torch.zeros(5, 3), key=0)
