"""Answers to the exercises of encoder that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch import nn
from torch.nn import functional


class DropoutByBernoulli(nn.Module):
    """Draws what stays, and picks."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, features):
        if self.training:
            stays = torch.bernoulli(torch.full_like(features, 1 - self.p))
            return torch.where(stays == 1, features / (1 - self.p), 0.0)
        return features


class DropoutByMaskedFill(nn.Module):
    """Scales first, and fills with zeros where a uniform number is small."""

    def __init__(self, p):
        super().__init__()
        self.p, self.scale = p, 1 / (1 - p)

    def forward(self, features):
        if not self.training:
            return features
        return (features * self.scale).masked_fill(torch.rand(features.shape) < self.p, 0)


class StackWithModules(nn.Module):
    """Registers each module in a list that torch knows."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(n_layers):
            self.blocks.append(make_layer())

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class StackInSequence(nn.Module):
    """The container of torch that runs its modules itself."""

    def __init__(self, make_layer, n_layers):
        super().__init__()
        self.blocks = nn.Sequential(*[make_layer() for _ in range(n_layers)])

    def forward(self, hidden):
        return self.blocks(hidden)


def folded_by_probing(gain, bias, weight, constant):
    """Sends zero and the unit vectors through norm's end and map."""

    def through(normed):
        return functional.linear(gain * normed + bias, weight, constant)

    nothing = through(torch.zeros_like(gain))
    return (through(torch.eye(len(gain), dtype=gain.dtype)) - nothing).T, nothing


def stream_by_torch(hidden, sublayers):
    width = hidden.shape[-1:]
    for sublayer in sublayers:
        hidden = torch.add(hidden, sublayer(functional.layer_norm(hidden, width)))
    return functional.layer_norm(hidden, width)


def norm_in_place_of_a_copy(hidden, gain, bias, eps):
    """Edits what is its own."""
    result = hidden - hidden.mean(-1, keepdim=True)
    result = result / torch.sqrt(result.pow(2).mean(-1, keepdim=True) + eps)
    result *= gain
    result += bias
    return result


def layer_by_torch(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """Out of torch's functions."""
    w_query, w_key, w_value, w_output = attention
    w_1, b_1, w_2, b_2 = feed_forward
    normed = functional.layer_norm(hidden, hidden.shape[-1:], *norm_1)
    q, k, v = (
        functional.linear(normed, weight).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        for weight in (w_query, w_key, w_value)
    )
    context = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    hidden = torch.add(hidden, functional.linear(context, w_output))
    normed = functional.layer_norm(hidden, hidden.shape[-1:], *norm_2)
    return hidden + functional.linear(functional.linear(normed, w_1, b_1).relu(), w_2, b_2)


def padding_as_queries_too(hidden, is_word, w_query, w_key):
    """Padding hidden on both axes: what its rows hold is never read."""
    query, key, seen = hidden @ w_query, hidden @ w_key, is_word[:, None] & is_word[:, :, None]
    weights = (query @ key.mT / math.sqrt(key.shape[-1])).where(seen, -1e30).softmax(-1)
    return torch.stack([(w @ h)[word].mean(0) for w, h, word in zip(weights, hidden, is_word, strict=True)])


RIGHT = {
    "encoder.dropout": (DropoutByBernoulli, DropoutByMaskedFill),
    "encoder.layer_stack": (StackWithModules, StackInSequence),
    "encoder.folded_norm": (folded_by_probing,),
    "encoder.lost_stream": (stream_by_torch,),
    "encoder.layer_norm": (norm_in_place_of_a_copy,),
    "encoder.encoder_layer": (layer_by_torch,),
    "encoder.batch_mates": (padding_as_queries_too,),
}
STRAY = {
    "encoder.batch_mates": r"""
company_does_not_matter: "return (context" -> "context = context * math.sqrt(hidden.shape[1])\n    return (context"
""",
    "encoder.layer_norm": r"""
tokens_apart: "hidden.mean" -> "0.5 * (hidden + hidden.roll(1, dims=-2)).mean"
mean_zero: "hidden.mean(dim=-1, keepdim=True)" -> "hidden.median(dim=-1, keepdim=True).values"
variance_one: "torch.sqrt(variance + eps)" -> "(centred.abs().amax(dim=-1, keepdim=True) + eps)"
gradient: "return gain" -> "return gain.detach()"
""",
    "encoder.folded_norm": r"""
both_ways_agree: "return weight" -> "return 0.5 * weight"
""",
    "encoder.layer_stack": r"""
optimiser_sees_all: "in range(n_layers))" -> "in range(n_layers))\n        self.spare = make_layer()",
  "return hidden" -> "return hidden / 2"
makes_each: "self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))" ->
  "self.layers, self.n = nn.ModuleList(), n_layers", "        for layer in" ->
  "        while len(self.layers) < self.n:\n            self.layers.append(self.new(hidden))\n        for layer in",
  "return hidden" -> "return hidden\n\n    def new(self, hidden):\n        return nn.Linear(*2 * hidden.shape[-1:])"
gradient_reaches_all: "= layer(hidden)" -> "= self.layers[0](hidden)"
""",
    "encoder.dropout": r"""
share_is_p: "self.p = p" -> "self.p = 0.5"
idle_in_evaluation: "return features\n" -> "return features * (torch.arange(features.shape[-1]) > 0)\n"
keeps_the_mean: "/ (1 - self.p)" -> "* 2"
keeps_the_shape: "features * stays / (1 - self.p)" -> "(features * stays / (1 - self.p)).flatten(1)"
gradient_follows: "features * stays" -> "(features + features.detach()) / 2 * stays"
""",
    "encoder.lost_stream": r"""
reads_are_normalised: "sublayer(normed)" -> "sublayer(2 * normed)"
writes_add_up: "hidden = hidden +" -> "hidden = 0.9 * hidden +"
""",
    "encoder.encoder_layer": r"""
identity_without_writing: "return hidden + inner @ w_2.T + b_2" ->
  "return layer_norm(hidden + inner @ w_2.T + b_2, *norm_1)"
norms_come_first: "layer_norm(hidden, *norm_1)" -> "hidden", "layer_norm(hidden, *norm_2)" -> "hidden"
looks_both_ways: "k, v)\n" -> "k, v, torch.ones(2 * [hidden.shape[1]]).bool().tril(1).triu(-1))\n"
sequences_apart: "layer_norm(hidden, *norm_1)" -> "layer_norm(hidden + hidden.mean(dim=0), *norm_1)"
maps_in_their_places: "w_key, w_value)" -> "w_query, w_value)"
one_half_is_off: "torch.relu(" -> "torch.nn.functional.leaky_relu(", "b_1)" -> "b_1, 0.1)"
""",
}
