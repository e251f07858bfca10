"""Normalisation, feed-forward network and residual connections."""

import pytest
import torch
from torch import nn

from ttutor.layers import FeedForward, LayerNorm, PostNorm, PreNorm, layer_norm, residual_sublayer
from ttutor.shapes import ShapeError


@pytest.fixture
def hidden():
    return 3 * torch.randn(2, 5, 8, dtype=torch.float64) + 1


def test_layer_norm_formula_module_and_torch_agree(hidden):
    ours, theirs = (
        LayerNorm(8, eps=0.1).double(),
        nn.LayerNorm(8, eps=0.1).double(),
    )  # a large eps shows where it stands
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    ours.gain.data, ours.bias.data = theirs.weight.data, theirs.bias.data
    expected = theirs(hidden)
    torch.testing.assert_close(ours(hidden), expected)
    torch.testing.assert_close(layer_norm(hidden, ours.gain, ours.bias, eps=0.1), expected)


def test_layer_norm_gives_each_token_mean_zero_and_variance_one(hidden):
    normalised = LayerNorm(8).double()(hidden)
    torch.testing.assert_close(normalised.mean(dim=-1), torch.zeros(2, 5, dtype=torch.float64))
    torch.testing.assert_close(
        normalised.var(dim=-1, unbiased=False), torch.ones(2, 5, dtype=torch.float64), rtol=0, atol=1e-4
    )


def test_layer_norm_leaves_other_tokens_alone(hidden):
    norm = LayerNorm(8).double()
    changed = hidden.clone()
    changed[:, 3] = 100.0
    assert torch.equal(norm(hidden)[:, :3], norm(changed)[:, :3])


def test_layer_norm_names_a_wrong_width(hidden):
    with pytest.raises(ShapeError, match="axis 'd_model' is 8 in hidden but must be 9"):
        LayerNorm(9)(hidden)


@pytest.mark.parametrize(("name", "function"), [("relu", nn.functional.relu), ("gelu", nn.functional.gelu)])
def test_feed_forward_is_its_formula_at_each_position(hidden, name, function):
    network = FeedForward(8, 20, activation=name).double()
    first, second = network.widen, network.narrow
    expected = function(hidden @ first.weight.T + first.bias) @ second.weight.T + second.bias
    torch.testing.assert_close(network(hidden), expected)
    torch.testing.assert_close(network(hidden.flip(1)), expected.flip(1))


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match=r"one of \['gelu', 'relu'\], but is 'swish'"):
        FeedForward(8, 20, activation="swish")


def test_the_two_residual_connections(hidden):
    pre, post = PreNorm(8).double(), PostNorm(8).double()
    torch.testing.assert_close(pre(hidden, torch.tanh), hidden + pre.norm(hidden).tanh())
    torch.testing.assert_close(post(hidden, torch.tanh), post.norm(hidden + hidden.tanh()))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_dropout_falls_on_what_the_sublayer_writes_and_only_while_training(norm):
    connection = residual_sublayer(norm, 64, dropout=0.5)
    stream = torch.zeros(1, 3, 64)
    connection.norm = nn.Identity()
    written = connection(stream, torch.ones_like)
    assert set(written.flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(connection.eval()(stream, torch.ones_like), torch.ones(1, 3, 64))


def test_an_unknown_place_of_the_norm_is_refused():
    with pytest.raises(ValueError, match='norm must be "post" or "pre", but is \'middle\''):
        residual_sublayer("middle", 8)
