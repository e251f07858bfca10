"""Mistakes about what happens inside the heads. Wrong on purpose, hence without annotations."""

import math

import torch
from einops import einsum, rearrange

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.multihead.multi_head_attention.steps import (
    BLEND,
    SCORES,
    compare,
    heads_of,
    hide_future,
    linear,
    merge,
    past,
)

SWAP = "batch first second d_head -> batch second first d_head"


def finish(weights, v, w_output):
    """Blend, merge and project, as it should be."""
    return linear(merge(einsum(weights, v, BLEND)), w_output)


def no_scale(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES)).softmax(dim=-1), v, w_output)


def scale_dmodel(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = einsum(q, k, SCORES) / math.sqrt(hidden.shape[-1])
    return finish(hide_future(scores).softmax(dim=-1), v, w_output)


def div_d_head(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES) / q.shape[-1]).softmax(dim=-1), v, w_output)


def scale_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES) / math.sqrt(n_heads)).softmax(dim=-1), v, w_output)


def no_mask(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).softmax(dim=-1), v, w_output)


def tril_of_scores(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).tril().softmax(dim=-1), v, w_output)


def mask_after_softmax(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).softmax(dim=-1).tril(), v, w_output)


def only_the_future(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    return finish(scores.masked_fill(past(scores.shape[-1]).mT.logical_not(), -math.inf).softmax(dim=-1), v, w_output)


def one_ahead(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(1)
    return finish(scores.masked_fill(~allowed, -math.inf).softmax(dim=-1), v, w_output)


def not_itself(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(-1)
    return finish(scores.masked_fill(~allowed, -math.inf).softmax(dim=-1), v, w_output)


def not_itself_zeros(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(-1)
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1).nan_to_num(0.0)
    return finish(weights, v, w_output)


def softmax_q(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=-2), v, w_output)


def softmax_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=1).nan_to_num(0.0), v, w_output)


def softmax_heads_of_large(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    return finish(scores.masked_fill(~past(scores.shape[-1]), -1e9).softmax(dim=1), v, w_output)


def softmax_twice(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=-1).softmax(dim=-1), v, w_output)


def no_softmax(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).tril(), v, w_output)


def attends_over_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (rearrange(part, SWAP) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    scores = compare(q, k)  # batch tokens heads heads
    return linear(merge(rearrange(einsum(scores.softmax(dim=-1), v, BLEND), SWAP)), w_output)


def attends_over_heads_masked(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (rearrange(part, SWAP) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    weights = hide_future(compare(q, k)).softmax(dim=-1)
    return linear(merge(rearrange(einsum(weights, v, BLEND), SWAP)), w_output)


MISTAKES = (
    Mistake(
        id="no_scale",
        says="Your weights are too sharp: the scores are not scaled. By what are they divided in each head?",
        answers=(no_scale,),
    ),
    Mistake(
        id="scale_dmodel",
        says="Your weights are too flat: you scale by √d_model. A head's vectors have d_model / n_heads entries.",
        answers=(scale_dmodel,),
    ),
    Mistake(
        id="div_d_head",
        says="Your scores are divided by d_head, not by its root, and the weights are too flat.",
        answers=(div_d_head,),
    ),
    Mistake(
        id="scale_of_heads",
        says="You scale by the root of the number of heads. A score is a sum over the features of one head: how many "
        "are they?",
        answers=(scale_of_heads,),
    ),
    Mistake(
        id="no_mask",
        says="Changing the last token changes your output for the first: nothing hides the future. Here attention is "
        "causal.",
        answers=(no_mask,),
    ),
    Mistake(
        id="zero_score",
        says="The future leaks: `tril` puts 0 where later scores were, and exp(0) = 1 is a weight like others. What "
        "score makes exp exactly 0?",
        answers=(tril_of_scores,),
    ),
    Mistake(
        id="mask_after_softmax",
        says="The future gets no weight, but the rest of each row no longer sums to 1, and early tokens shrink. Hide "
        "before you normalise.",
        answers=(mask_after_softmax,),
    ),
    Mistake(
        id="only_the_future",
        says="You kept the future and hid the past. Which triangle of `queries keys` lies before a query?",
        answers=(only_the_future,),
    ),
    Mistake(
        id="one_ahead",
        says="Each token sees one token of the future: the diagonal of your mask stands one too far to the right.",
        answers=(one_ahead,),
    ),
    Mistake(
        id="not_itself",
        says="No token sees itself, and the first one nothing at all. The diagonal belongs to the past.",
        answers=(not_itself, not_itself_zeros),
    ),
    Mistake(
        id="softmax_q",
        says="You normalise over the queries. Each *query* distributes its weight over keys: which axis are they?",
        answers=(softmax_q,),
    ),
    Mistake(
        id="softmax_heads",
        says="You normalise over the heads, so that they compete for a key. Inside each head, each query distributes "
        "its weight over keys.",
        answers=(softmax_heads, softmax_heads_of_large),
    ),
    Mistake(
        id="softmax_twice",
        says="You take the softmax twice: the second one makes the weights almost equal, and gives the future some, "
        "since exp(0) = 1. Once is enough.",
        answers=(softmax_twice,),
    ),
    Mistake(
        id="no_softmax",
        says="Your weights are raw scores, negative here and there. What makes shares of them?",
        answers=(no_softmax,),
    ),
    Mistake(
        id="attends_over_heads",
        says="Your score matrix is `heads heads`, one for each token: tokens never see each other. Which two axes "
        "should be last before you multiply?",
        answers=(attends_over_heads, attends_over_heads_masked),
    ),
)
