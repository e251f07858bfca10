"""Normalisation, feed-forward network and residual connections."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from ttutor.errors import ShapeError
from ttutor.layers import (
    ACTIVATIONS,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    PostNorm,
    PreNorm,
    RMSNorm,
    layer_norm,
    residual_sublayer,
    rms_norm,
)


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


def test_rms_norm_formula_module_and_torch_agree(hidden):
    ours, theirs = RMSNorm(8, eps=0.1).double(), nn.RMSNorm(8, eps=0.1).double()
    nn.init.normal_(theirs.weight)
    ours.gain.data = theirs.weight.data
    expected = theirs(hidden)
    torch.testing.assert_close(ours(hidden), expected)
    torch.testing.assert_close(rms_norm(hidden, ours.gain, eps=0.1), expected)


@pytest.mark.parametrize(("name", "function"), [("relu", nn.functional.relu), ("gelu", nn.functional.gelu)])
def test_feed_forward_is_its_formula_at_each_position(hidden, name, function):
    network = FeedForward(8, 20, activation=name).double()
    first, second = network.widen, network.narrow
    expected = function(hidden @ first.weight.T + first.bias) @ second.weight.T + second.bias
    torch.testing.assert_close(network(hidden), expected)
    torch.testing.assert_close(network(hidden.flip(1)), expected.flip(1))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("silu", lambda x: x / (1 + (-x).exp())),
        ("gelu", lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2),
        ("gelu_tanh", lambda x: x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ],
)
def test_activations_are_their_formulas(hidden, name, function):
    torch.testing.assert_close(ACTIVATIONS[name](hidden), function(hidden), rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["silu", "gelu"])
@pytest.mark.parametrize("bias", [False, True])
def test_gated_feed_forward_is_its_formula(hidden, activation, bias):
    network = GatedFeedForward(8, 20, activation=activation, bias=bias).double()
    for name, parameter in network.named_parameters():
        assert bias or not name.endswith("bias")
        nn.init.normal_(parameter)
    maps = [nn.functional.linear(hidden, part.weight, part.bias) for part in (network.gate, network.widen)]
    expected = nn.functional.linear(
        ACTIVATIONS[activation](maps[0]) * maps[1], network.narrow.weight, network.narrow.bias
    )
    torch.testing.assert_close(network(hidden), expected)


def test_an_unknown_activation_is_refused():
    known = r"one of \['gelu', 'gelu_tanh', 'quick_gelu', 'relu', 'silu'\]"
    with pytest.raises(ValueError, match=f"{known}, but is 'swish'"):
        FeedForward(8, 20, activation="swish")


@pytest.mark.parametrize("make_norm", [LayerNorm, RMSNorm, partial(LayerNorm, eps=1e-3)])
def test_the_two_residual_connections(hidden, make_norm):
    pre, post = PreNorm(8, make_norm=make_norm).double(), PostNorm(8, make_norm=make_norm).double()
    assert repr(pre.norm) == repr(post.norm) == repr(make_norm(8))
    assert pre.norm.eps == make_norm(8).eps
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


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_would_be_broadcast_is_refused():
    hidden, wide = torch.randn(2, 3, 5), torch.ones(8)
    with pytest.raises(ShapeError, match="axis 'd_model' is 1 in hidden but 8 in gain"):
        layer_norm(hidden[..., :1], wide, wide)
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in hidden but 1 in gain"):
        rms_norm(hidden, wide[:1])
    for around in (PreNorm(5), PostNorm(5)):
        with pytest.raises(ShapeError, match=r"must give what it got, \(2, 3, 5\), but gave \(2, 1, 5\)"):
            around(hidden, lambda stream: stream[:, :1])


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("network", [FeedForward(8, 7), GatedFeedForward(8, 7)])
def test_feed_forward_names_the_wrong_width(network):
    with pytest.raises(ShapeError, match="axis 'd_model' is 5 in hidden but must be 8"):
        network(torch.randn(2, 3, 5))
