"""What is true of every right multi-head attention, whatever its layout."""

import torch
from einops import rearrange

from ttutor.exercises.exercise import Property, Trial
from ttutor.exercises.probes import batch_independent, causal, depends, gradient_reaches


def _moved(before, after) -> float:
    """How far an output moved, as a share of the largest."""
    return ((after - before).abs().max() / before.abs().max()).item()


def _heads_that_are_not_equal(trial: Trial) -> str | None:
    """Exchange whole heads in all four weights: the output may not move."""
    hidden, w_query, w_key, w_value, w_output, n_heads = trial.inputs
    if n_heads == 1:
        return None
    turned = [
        rearrange(
            rearrange(weight, "(heads d_head) d_model -> heads d_head d_model", heads=n_heads).roll(1, dims=0),
            "heads d_head d_model -> (heads d_head) d_model",
        )
        for weight in (w_query, w_key, w_value)
    ]
    columns = rearrange(w_output, "d_model (heads d_head) -> heads d_model d_head", heads=n_heads).roll(1, dims=0)
    w_turned = rearrange(columns, "heads d_model d_head -> d_model (heads d_head)")
    moved = _moved(trial.value, trial.run(hidden, *turned, w_turned, n_heads))
    return None if moved < 1e-3 else f"With the heads in another order the output moves by {moved:.0%} of its size."


def _output_that_is_not_linear(trial: Trial) -> str | None:
    """Double the output weights: the output must double."""
    hidden, w_query, w_key, w_value, w_output, n_heads = trial.inputs
    doubled = trial.run(hidden, w_query, w_key, w_value, 2 * w_output, n_heads)
    moved = _moved(2 * trial.value, doubled)
    return None if moved < 1e-3 else f"With output weights twice as large the output is off by {moved:.0%} of its size."


def _value_that_is_not_linear(trial: Trial) -> str | None:
    """Double the value weights: the output must double."""
    hidden, w_query, w_key, w_value, w_output, n_heads = trial.inputs
    moved = _moved(2 * trial.value, trial.run(hidden, w_query, w_key, 2 * w_value, w_output, n_heads))
    return None if moved < 1e-3 else f"With value weights twice as large the output is off by {moved:.0%} of its size."


def _query_against_key(trial: Trial) -> str | None:
    """Double the query weights and halve the key weights: every score stays as it is."""
    hidden, w_query, w_key, w_value, w_output, n_heads = trial.inputs
    moved = _moved(trial.value, trial.run(hidden, 2 * w_query, w_key / 2, w_value, w_output, n_heads))
    return None if moved < 1e-3 else f"With queries twice and keys half as long the output moves by {moved:.0%}."


def _mixture_of_alike(trial: Trial) -> str | None:
    """With every token the same, the blend is that token, whatever the weights are: they sum to one."""
    hidden, w_query, w_key, w_value, w_output, n_heads = trial.inputs
    same = hidden[:, :1].expand_as(hidden).clone()
    expected = same @ w_value.mT @ w_output.mT
    moved = _moved(expected, trial.run(same, w_query, w_key, w_value, w_output, n_heads))
    return None if moved < 1e-3 else f"With all tokens alike the output is off by {moved:.0%} of its size."


def _lower_triangle(hidden, *_):
    n_tokens = hidden.shape[1]
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


PROPERTIES = (
    causal(
        "Changing a later token must not change an earlier output. Where do you hide the future, and do tokens and "
        "heads stay apart when you split and merge?"
    ),
    depends(
        "Each token should depend on itself and on all tokens before it. Which of them does your split or your "
        "mask cut off?",
        _lower_triangle,
        id="sees_the_past",
    ),
    batch_independent(
        "The sentences of a batch must not influence one another. Which axes do you lay together, and "
        "do you take them apart in the same order?"
    ),
    Property(
        id="linear_in_output_weights",
        says="The output weights are the last step: what goes out is linear in them, and nothing is added after.",
        broken=_output_that_is_not_linear,
    ),
    Property(
        id="linear_in_value_weights",
        says="Once the weights of attention are fixed, the output is linear in the values. Where else do you use them?",
        broken=_value_that_is_not_linear,
    ),
    Property(
        id="weights_sum_to_one",
        says="When all tokens are alike, every blend of them is that one token. Do the weights of each query sum to 1, "
        "and do values and output go through their own matrices?",
        broken=_mixture_of_alike,
    ),
    Property(
        id="scores_are_products",
        says="A score is the product of a query and a key: what one gains the other may lose. Look at which weights "
        "make which.",
        broken=_query_against_key,
    ),
    Property(
        id="heads_are_alike",
        says="Heads have no rank: exchanging whole heads in all four weights changes nothing. Does each head own the "
        "same block of rows in all of them, and the same block of columns of the output weights?",
        broken=_heads_that_are_not_equal,
    ),
    gradient_reaches(
        "A gradient should reach the input and all four weights, or they cannot be learnt.", arguments=(0, 1, 2, 3, 4)
    ),
)
