"""Exercise: causal multi-head self-attention, with the weights handed in."""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
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


PROPERTIES = [
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
]


def multi_head_attention(
    hidden: Float[Tensor, "batch tokens d_model"],
    w_query: Float[Tensor, "d_model d_model"],
    w_key: Float[Tensor, "d_model d_model"],
    w_value: Float[Tensor, "d_model d_model"],
    w_output: Float[Tensor, "d_model d_model"],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """Let each token look at itself and at earlier ones, in every head; weights are stored as in `nn.Linear`."""
    split = "batch tokens (heads d_head) -> batch heads tokens d_head"
    q, k, v = (rearrange(hidden @ weight.mT, split, heads=n_heads) for weight in (w_query, w_key, w_value))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    n_tokens = hidden.shape[1]
    allowed = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=hidden.device).tril()
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    context = rearrange(weights @ v, "batch heads tokens d_head -> batch tokens (heads d_head)")
    return context @ w_output.mT


def reference(hidden, w_query, w_key, w_value, w_output, n_heads):
    split = "batch tokens (heads d_head) -> batch heads tokens d_head"
    q, k, v = (rearrange(hidden @ weight.mT, split, heads=n_heads) for weight in (w_query, w_key, w_value))
    context = scaled_dot_product_attention(q, k, v, causal=True)
    return rearrange(context, "batch heads tokens d_head -> batch tokens (heads d_head)") @ w_output.mT


def _inputs(generator, n_sentences, n_tokens, n_heads, d_head, dtype=torch.float32):
    """Weights of such a size that scores have a standard deviation of about 2."""
    d_model = n_heads * d_head
    hidden = torch.randn(n_sentences, n_tokens, d_model, generator=generator, dtype=dtype)
    weights = torch.randn(4, d_model, d_model, generator=generator, dtype=dtype) * math.sqrt(2 / d_model)
    return hidden, *weights, n_heads


def _several(generator):
    n_heads = drawn(generator, 3, 4)
    return _inputs(generator, 2, drawn(generator, 5, 6), n_heads, drawn(generator, 7, 8))


def _very_negative(generator):
    """A feature that is 1 in every token takes 15,000 from every score: what is visible stands far below zero."""
    d_head = drawn(generator, 7, 9)
    hidden, w_query, w_key, w_value, w_output, n_heads = _inputs(generator, 1, 6, 2, d_head, torch.float64)
    hidden[..., 0] = 1
    size = math.sqrt(15_000 * math.sqrt(d_head))
    for weight, entry in ((w_query, -size), (w_key, size)):
        weight[::d_head] = 0  # the first feature of each head
        weight[::d_head, 0] = entry
    return hidden, w_query, w_key, w_value, w_output, n_heads


exercise = Exercise(
    id="multihead.multi_head_attention",
    title="Several lookups side by side",
    statement="""
Write causal self-attention with several heads. Project `hidden` to queries, keys and values; give every head its own
d_model / n_heads features, head 0 the first ones; let each token look at itself and at the tokens before it, in each
head; lay the heads side by side again and apply the output weights. All weights are stored `d_out d_in`, as in
`nn.Linear`; there is no bias. Gradients flow back to `hidden` and to all four weights. You may use `softmax`, but no
ready-made attention.
""".strip(),
    reference=reference,
    solution=multi_head_attention,
    explanation="""
One large product projects for all heads at once; the split gives each head its own block of d_head features and its
own axis, which attention then carries along like a batch. A reshape alone cannot do it: it keeps the order of the
numbers in memory, and so hands pieces of several tokens to one head. Merging goes the way back by the same pattern.
The scale is $\\sqrt{d_\\mathrm{head}}$, as a score sums over the features of one head.
""".strip(),
    cases=(
        Case(name="several sentences and heads", inputs=_several),
        Case(name="one sentence, in float64, and scores far below zero", inputs=_very_negative),
    ),
    hints="""
Only three things are new besides plain attention: projecting, splitting into heads, and merging with a last projection.
Write the axes after each line. Which axes must be the last two when you multiply queries and keys?

Split `batch tokens (heads d_head)` into `batch heads tokens d_head`; attention then runs inside each head by itself, as
heads are one more leading axis. Merge by the same pattern backwards. The scale is that of one head.

One `rearrange` splits, one merges: never let a reshape alone swap axes. `hidden @ weight.mT` is what `nn.Linear` does.
Hide the future by `masked_fill` with −∞, using `tril` of a table of ones.
""",
    properties=PROPERTIES,
    forbids=(
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "MultiheadAttention",
        "MultiHeadAttention",
        "AttentionHead",
        "attention_weights",
        "efficient_attention",
    ),
    difficulty=2,
    minutes=30,
    section="03-multihead",
)

exercise.mutations(r"""
head_order_dh: '"batch tokens (heads d_head)' -> '"batch tokens (d_head heads)'
or: '"batch tokens (heads d_head)' -> '"batch tokens (d_head heads)',
  "-> batch tokens (heads d_head)" -> "-> batch tokens (d_head heads)"
or: "scores = " -> "k = (hidden @ w_key.mT).unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)\n    scores = "
    Your heads take every h-th feature. Head 0 should own the first d_head features, next to one another: `(heads
    d_head)`, not `(d_head heads)`, for queries, keys and values alike.
merged_dh: "-> batch tokens (heads d_head)" -> "-> batch tokens (d_head heads)"
    Each head is right, but they are merged in another order than they were split: their features come out interleaved.
    Head 0 owns the first d_head features of the result too.
split_no_transpose: "rearrange(hidden @ weight.mT, split, heads=n_heads)" ->
  "(hidden @ weight.mT).reshape(len(hidden), n_heads, hidden.shape[1], -1)"
    A reshape straight to `batch heads tokens d_head` mixes tokens, and the future leaks although you mask. Split the
    last axis first, then swap axes.
merge_no_transpose: 'rearrange(weights @ v, "batch heads tokens d_head -> batch tokens (heads d_head)")' ->
  "(weights @ v).reshape(hidden.shape)"
    The heads are right but merged in the wrong order: a reshape straight back mixes tokens. Swap the axes of heads and
    tokens back first.
both_raw: "rearrange(hidden @ weight.mT, split, heads=n_heads)" ->
  "(hidden @ weight.mT).reshape(len(hidden), n_heads, hidden.shape[1], -1)",
  'rearrange(weights @ v, "batch heads tokens d_head -> batch tokens (heads d_head)")' ->
  "(weights @ v).reshape(hidden.shape)"
    Splitting and merging cancel in shape but not in meaning: your last token cannot see token 0. Split the last axis,
    then swap axes; undo both in reverse order.
one_head: "heads=n_heads" -> "heads=1"
    Your result does not depend on the number of heads: it is that of one wide head. Where is the split?
hard_coded_heads: "heads=n_heads" -> "heads=3"
or: "heads=n_heads" -> "heads=hidden.shape[-1] // 4"
    Right for three heads of width 4, and for no others. Take the number of heads from the argument and the width from
    the vectors.
heads_as_width: "heads=n_heads" -> "d_head=n_heads"
    You use the number of heads as the width of one. There should be `n_heads` heads, each d_model / n_heads wide.
heads_added: 'rearrange(weights @ v, "batch heads tokens d_head -> batch tokens (heads d_head)")' ->
  "(weights @ v).mean(dim=1).repeat(1, 1, n_heads)"
or: 'rearrange(weights @ v, "batch heads tokens d_head -> batch tokens (heads d_head)")' ->
  "(weights @ v).sum(dim=1).repeat(1, 1, n_heads)"
    You add or average the heads, and what each of them found is lost. Lay them side by side; the output weights do the
    mixing.
first_head_for_all: "q @ k.mT" -> "q[:, :1] @ k[:, :1].mT"
or: "weights @ v" -> "weights[:, :1] @ v[:, :1].expand_as(v)"
    All heads look where the first one looks. Each has queries and keys of its own: which index do you take?
last_head_first: "weights @ v" -> "(weights @ v).flip(1)"
    The heads stand side by side in reverse order. Head 0 comes first.
batch_and_heads_exchanged: "weights @ v" -> "(weights @ v).flatten(0, 1).unflatten(0, (n_heads, -1)).transpose(0, 1)"
    Heads and sentences come out exchanged: you laid them on one axis in one order and took them apart in the other.
    Sentences must not influence each other.
no_scale: " / math.sqrt(q.shape[-1])" -> ""
    Your weights are too sharp: the scores are not scaled. By what are they divided in each head?
scale_dmodel: "q.shape[-1]" -> "hidden.shape[-1]"
    Your weights are too flat: you scale by √d_model. A head's vectors have d_model / n_heads entries.
div_d_head: "math.sqrt(q.shape[-1])" -> "q.shape[-1]"
    Your scores are divided by d_head, not by its root, and the weights are too flat.
scale_of_heads: "q.shape[-1]" -> "n_heads"
    You scale by the root of the number of heads. A score is a sum over the features of one head: how many are they?
no_mask: ".masked_fill(~allowed, -math.inf)" -> ""
    Changing the last token changes your output for the first: nothing hides the future. Here attention is causal.
zero_score: "masked_fill(~allowed, -math.inf)" -> "tril()"
    The future leaks: `tril` puts 0 where later scores were, and exp(0) = 1 is a weight like others. What score makes
    exp exactly 0?
mask_after_softmax: "masked_fill(~allowed, -math.inf).softmax(dim=-1)" -> "softmax(dim=-1).tril()"
    The future gets no weight, but the rest of each row no longer sums to 1, and early tokens shrink. Hide before you
    normalise.
fill_of_ten_thousand: "-math.inf" -> "-1e4"
    The future wins where all that a token may see scores below −10,000. What is smaller than every number?
only_the_future: "tril()" -> "triu()"
    You kept the future and hid the past. Which triangle of `queries keys` lies before a query?
one_ahead: "tril()" -> "tril(1)"
    Each token sees one token of the future: the diagonal of your mask stands one too far to the right.
not_itself: "tril()" -> "tril(-1)"
or: "tril()" -> "tril(-1)", "softmax(dim=-1)" -> "softmax(dim=-1).nan_to_num(0.0)"
    No token sees itself, and the first one nothing at all. The diagonal belongs to the past.
softmax_q: "dim=-1" -> "dim=-2"
    You normalise over the queries. Each *query* distributes its weight over keys: which axis are they?
softmax_heads: "softmax(dim=-1)" -> "softmax(dim=1).nan_to_num(0.0)"
or: "-math.inf" -> "-1e9", "dim=-1" -> "dim=1"
    You normalise over the heads, so that they compete for a key. Inside each head, each query distributes its weight
    over keys.
softmax_twice: "softmax(dim=-1)" -> "softmax(dim=-1).softmax(dim=-1)"
    You take the softmax twice: the second one makes the weights almost equal, and gives the future some, since exp(0) =
    1. Once is enough.
no_softmax: "masked_fill(~allowed, -math.inf).softmax(dim=-1)" -> "tril()"
    Your weights are raw scores, negative here and there. What makes shares of them?
attends_over_heads: "-> batch heads tokens d_head" -> "-> batch tokens heads d_head",
  ".masked_fill(~allowed, -math.inf)" -> "", '"batch heads tokens d_head' -> '"batch tokens heads d_head'
or: "-> batch heads tokens d_head" -> "-> batch tokens heads d_head",
  "n_tokens = hidden.shape[1]" -> "n_tokens = n_heads", '"batch heads tokens d_head' -> '"batch tokens heads d_head'
    Your score matrix is `heads heads`, one for each token: tokens never see each other. Which two axes should be last
    before you multiply?
no_wo: "context @ w_output.mT" -> "context"
    This is exactly the heads laid side by side. One linear map is missing, the one that lets what the heads found be
    mixed.
weight_transposed: "weight.mT" -> "weight", "w_output.mT" -> "w_output"
or: "weight.mT" -> "weight"
or: "w_output.mT" -> "w_output"
    Weights are stored `d_out d_in`, as in nn.Linear, and yours act the other way round, all or some. Square matrices
    hide it: write the axes beside each product.
output_first: "context @ w_output.mT" -> "context", "split = " -> "hidden = hidden @ w_output.mT\n    split = "
    You apply the output weights before attention. They come last: they mix what the heads have found.
query_and_key_exchanged: "(w_query, w_key," -> "(w_key, w_query,"
    Queries and keys are exchanged: who is looked at asks, and who asks is looked at. Compare the order of the arguments
    with your projections.
shared_weight: "w_key, w_value)" -> "w_key, w_key)"
or: "(w_query, w_key," -> "(w_query, w_query,"
    One of your three projections uses another one's weight. Queries, keys and values have a matrix each: read the three
    lines side by side.
not_projected: "scores = " -> "v = rearrange(hidden, split, heads=n_heads)\n    scores = "
or: "hidden @ weight.mT" -> "hidden"
    The heads cut their values straight out of the input. What is handed over is projected too, with a matrix of its
    own.
residual_inside: "return context" -> "return hidden + context"
    Your output is too large by exactly the input. The residual connection belongs to the block around attention.
normalised_inside: "context @ w_output.mT" -> "torch.nn.functional.layer_norm(context @ w_output.mT, hidden.shape[-1:])"
    Your output has mean 0 and variance 1 for each token: a norm belongs to the block, not into attention.
returns_heads: "context @ w_output.mT" -> "weights @ v"
    You return the heads, each with its own axis. Two steps are missing: lay them side by side, and apply the output
    weights.
squeezed: "context @ w_output.mT" -> "(context @ w_output.mT).squeeze()"
    With one sentence in the batch your output loses an axis: `squeeze()` without an axis takes away every axis of size
    one.
mask_of_float32: "context @ w_output.mT" -> "(context @ w_output.mT).float()"
    Inputs in float64 come back in float32. Keep the dtype that you are given: where do you name one, or make a tensor
    without asking for the input's?
no_gradient: "weight.mT" -> "weight.detach().mT", "w_output.mT" -> "w_output.detach().mT"
or: "q @ k.mT" -> "(q @ k.mT).detach()"
or: "context @ w_output.mT" -> "torch.from_numpy((context @ w_output.mT).detach().numpy())"
    The output is right, but nothing can be learnt: weights copied into a new layer, `.detach()`, `.data`, `.item()` and
    `.numpy()` all cut the way back. Use the tensors that you were given.
inplace: " / math.sqrt(q.shape[-1])" -> "",
  "split = " -> "w_query /= math.sqrt(hidden.shape[-1] // n_heads)\n    split = "
    Your answer is right but a weight you were given has changed: the second call with it would be wrong. `/=` edits the
    caller's tensor.
""")
