"""Mistakes about the four projections, the dtype and the gradient. Wrong on purpose, hence without annotations."""

import math

import torch
from einops import einsum
from torch import nn

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.multihead.multi_head_attention.steps import (
    BLEND,
    SCORES,
    attend,
    compare,
    heads_of,
    linear,
    merge,
    split,
)

TURNED = "... d_in, d_in d_out -> ... d_out"


def right(hidden, w_query, w_key, w_value, w_output, n_heads):
    """As it should be."""
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))), w_output)


def no_wo(hidden, w_query, w_key, w_value, w_output, n_heads):
    return merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads)))


def weight_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (split(einsum(hidden, weight, TURNED), n_heads) for weight in (w_query, w_key, w_value))
    return einsum(merge(attend(q, k, v)), w_output, TURNED)


def inner_weights_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (split(einsum(hidden, weight, TURNED), n_heads) for weight in (w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


def output_weight_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    return einsum(no_wo(hidden, w_query, w_key, w_value, w_output, n_heads), w_output, TURNED)


def output_first(hidden, w_query, w_key, w_value, w_output, n_heads):
    return no_wo(linear(hidden, w_output), w_query, w_key, w_value, w_output, n_heads)


def query_and_key_exchanged(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_key, w_query, w_value, w_output, n_heads)


def value_from_key(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_key, w_key, w_output, n_heads)


def key_from_query(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_query, w_value, w_output, n_heads)


def value_not_projected(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, _ = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q, k, split(hidden, n_heads))), w_output)


def nothing_projected(hidden, w_query, w_key, w_value, w_output, n_heads):
    parts = split(hidden, n_heads)
    return linear(merge(attend(parts, parts, parts)), w_output)


def residual_inside(hidden, w_query, w_key, w_value, w_output, n_heads):
    return hidden + right(hidden, w_query, w_key, w_value, w_output, n_heads)


def normalised_inside(hidden, w_query, w_key, w_value, w_output, n_heads):
    out = right(hidden, w_query, w_key, w_value, w_output, n_heads)
    return nn.functional.layer_norm(out, out.shape[-1:])


def returns_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    return attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))


def squeezed(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_key, w_value, w_output, n_heads).squeeze()


def mask_of_float32(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = einsum(q, k, SCORES).float() / math.sqrt(q.shape[-1])
    n_tokens = scores.shape[-1]
    future = torch.full((n_tokens, n_tokens), -math.inf, dtype=torch.float32).triu(1)
    return linear(merge(einsum((scores + future).softmax(dim=-1), v.float(), BLEND)), w_output.float())


def copied_weights(hidden, w_query, w_key, w_value, w_output, n_heads):
    copies = []
    for weight in (w_query, w_key, w_value, w_output):
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
        layer.weight.data.copy_(weight)
        copies.append(layer)
    to_query, to_key, to_value, to_output = copies
    q, k, v = (split(layer(hidden), n_heads) for layer in (to_query, to_key, to_value))
    return to_output(merge(attend(q, k, v)))


def detached_weights(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k).detach()
    n_tokens = scores.shape[-1]
    allowed = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return linear(merge(einsum(weights, v, BLEND)), w_output)


def through_numpy(hidden, w_query, w_key, w_value, w_output, n_heads):
    return torch.from_numpy(right(hidden, w_query, w_key, w_value, w_output, n_heads).detach().numpy())


def inplace(hidden, w_query, w_key, w_value, w_output, n_heads):
    d_head = w_query.shape[0] // n_heads
    w_query /= math.sqrt(d_head)
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q * math.sqrt(d_head), k, v)), w_output)


MISTAKES = (
    Mistake(
        id="no_wo",
        says="This is exactly the heads laid side by side. One linear map is missing, the one that lets what the heads "
        "found be mixed.",
        answers=(no_wo,),
    ),
    Mistake(
        id="weight_transposed",
        says="Weights are stored `d_out d_in`, as in nn.Linear, and yours act the other way round, all or some. "
        "Square matrices hide it: write the axes beside each product.",
        answers=(weight_transposed, inner_weights_transposed, output_weight_transposed),
    ),
    Mistake(
        id="output_first",
        says="You apply the output weights before attention. They come last: they mix what the heads have found.",
        answers=(output_first,),
    ),
    Mistake(
        id="query_and_key_exchanged",
        says="Queries and keys are exchanged: who is looked at asks, and who asks is looked at. Compare the order of "
        "the arguments with your projections.",
        answers=(query_and_key_exchanged,),
    ),
    Mistake(
        id="shared_weight",
        says="One of your three projections uses another one's weight. Queries, keys and values have a matrix each: "
        "read the three lines side by side.",
        answers=(value_from_key, key_from_query),
    ),
    Mistake(
        id="not_projected",
        says="The heads cut their values straight out of the input. What is handed over is projected too, with a "
        "matrix of its own.",
        answers=(value_not_projected, nothing_projected),
    ),
    Mistake(
        id="residual_inside",
        says="Your output is too large by exactly the input. The residual connection belongs to the block around "
        "attention.",
        answers=(residual_inside,),
    ),
    Mistake(
        id="normalised_inside",
        says="Your output has mean 0 and variance 1 for each token: a norm belongs to the block, not into attention.",
        answers=(normalised_inside,),
    ),
    Mistake(
        id="returns_heads",
        says="You return the heads, each with its own axis. Two steps are missing: lay them side by side, and apply "
        "the output weights.",
        answers=(returns_heads,),
    ),
    Mistake(
        id="squeezed",
        says="With one sentence in the batch your output loses an axis: `squeeze()` without an axis takes away every "
        "axis of size one.",
        answers=(squeezed,),
    ),
    Mistake(
        id="mask_of_float32",
        says="Inputs in float64 come back in float32. Keep the dtype that you are given: where do you name one, or "
        "make a tensor without asking for the input's?",
        answers=(mask_of_float32,),
    ),
    Mistake(
        id="no_gradient",
        says="The output is right, but nothing can be learnt: weights copied into a new layer, `.detach()`, `.data`, "
        "`.item()` and `.numpy()` all cut the way back. Use the tensors that you were given.",
        answers=(copied_weights, detached_weights, through_numpy),
    ),
    Mistake(
        id="inplace",
        says="Your answer is right but a weight you were given has changed: the second call with it would be wrong. "
        "`/=` edits the caller's tensor.",
        answers=(inplace,),
    ),
)
