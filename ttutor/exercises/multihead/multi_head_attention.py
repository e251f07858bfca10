"""Exercise: causal multi-head self-attention, with the weights handed in."""

import math

import torch
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
from ttutor.exercises.probes import batch_independent, causal, depends, gradient_reaches

SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"


def split(vectors, n_heads):
    """Give each head its own axis."""
    return rearrange(vectors, SPLIT, heads=n_heads)


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


exercise = Exercise(
    id="multihead.multi_head_attention",
    title="Several lookups side by side",
    statement="""
Write causal self-attention with several heads. Project `hidden` to queries, keys and values; give every head its own
d_model / n_heads features, head 0 the first ones; let each token look at itself and at the tokens before it, in each
head; lay the heads side by side again and apply the output weights. All weights are stored `d_out d_in`, as in
`nn.Linear`; there is no bias. You may use `softmax`, but no ready-made attention.
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
        Case(name="three heads of width four", inputs=lambda generator: _inputs(generator, 2, 5, 3, 4)),
        Case(
            name="one sentence, two heads of width seven, in float64",
            inputs=lambda generator: _inputs(generator, 1, 6, 2, 7, torch.float64),
        ),
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


def linear(hidden, weight):
    """Apply a weight as `nn.Linear` does."""
    return einsum(hidden, weight, "... d_in, d_out d_in -> ... d_out")


def project(hidden, w_query, w_key, w_value):
    """Queries, keys and values of all heads together."""
    return linear(hidden, w_query), linear(hidden, w_key), linear(hidden, w_value)


BLEND = "batch heads queries keys, batch heads keys d_head -> batch heads queries d_head"


SCORES = "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys"


def compare(q, k):
    """The scores, scaled."""
    return einsum(q, k, SCORES) / math.sqrt(q.shape[-1])


def past(n_tokens):
    """True where a token may look."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


def hide_future(scores):
    """The scores, without those of later keys."""
    return scores.masked_fill(~past(scores.shape[-1]), -math.inf)


def attend(q, k, v):
    """Causal attention inside each head."""
    return einsum(hide_future(compare(q, k)).softmax(dim=-1), v, BLEND)


MERGE = "batch heads tokens d_head -> batch tokens (heads d_head)"


def merge(context):
    """Lay the heads side by side."""
    return rearrange(context, MERGE)


@exercise.mistake(
    "Your heads take every h-th feature. Head 0 should own the first d_head features, next to one another: `(heads "
    "d_head)`, not `(d_head heads)`, for queries, keys and values alike."
)
def head_order_dh(hidden, w_query, w_key, w_value, w_output, n_heads):
    pattern = "batch tokens (d_head heads) -> batch heads tokens d_head"
    q, k, v = (rearrange(part, pattern, heads=n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


@exercise.like("head_order_dh")
def head_order_dh_both_ways(hidden, w_query, w_key, w_value, w_output, n_heads):
    pattern = "batch tokens (d_head heads) -> batch heads tokens d_head"
    q, k, v = (rearrange(part, pattern, heads=n_heads) for part in project(hidden, w_query, w_key, w_value))
    back = "batch heads tokens d_head -> batch tokens (d_head heads)"
    return linear(rearrange(attend(q, k, v), back), w_output)


@exercise.like("head_order_dh")
def keys_split_otherwise(hidden, w_query, w_key, w_value, w_output, n_heads):
    query, key, value = project(hidden, w_query, w_key, w_value)
    k = rearrange(key, "batch tokens (d_head heads) -> batch heads tokens d_head", heads=n_heads)
    return linear(merge(attend(split(query, n_heads), k, split(value, n_heads))), w_output)


def heads_of(hidden, w_query, w_key, w_value, n_heads):
    """Queries, keys and values, split into heads."""
    return tuple(split(vectors, n_heads) for vectors in project(hidden, w_query, w_key, w_value))


@exercise.mistake(
    "Each head is right, but they are merged in another order than they were split: their features come out "
    "interleaved. Head 0 owns the first d_head features of the result too."
)
def merged_dh(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    return linear(rearrange(context, "batch heads tokens d_head -> batch tokens (d_head heads)"), w_output)


FLAT = "(batch heads tokens d_head) -> batch heads tokens d_head"


def reshaped(vectors, n_heads):
    """What `vectors.reshape(batch, heads, tokens, d_head)` gives."""
    batch, tokens, _ = vectors.shape
    return rearrange(
        rearrange(vectors, "batch tokens d_model -> (batch tokens d_model)"),
        FLAT,
        batch=batch,
        heads=n_heads,
        tokens=tokens,
    )


@exercise.mistake(
    "A reshape straight to `batch heads tokens d_head` mixes tokens, and the future leaks although you mask. Split the "
    "last axis first, then swap axes."
)
def split_no_transpose(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (reshaped(part, n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


def reshaped_back(context):
    """What `context.reshape(batch, tokens, d_model)` gives."""
    batch, _, tokens, _ = context.shape
    flat = rearrange(context, "batch heads tokens d_head -> (batch heads tokens d_head)")
    return rearrange(flat, "(batch tokens d_model) -> batch tokens d_model", batch=batch, tokens=tokens)


@exercise.mistake(
    "The heads are right but merged in the wrong order: a reshape straight back mixes tokens. Swap the axes of heads "
    "and tokens back first."
)
def merge_no_transpose(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(reshaped_back(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))), w_output)


@exercise.mistake(
    "Splitting and merging cancel in shape but not in meaning: your last token cannot see token 0. Split the last "
    "axis, then swap axes; undo both in reverse order."
)
def both_raw(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (reshaped(part, n_heads) for part in project(hidden, w_query, w_key, w_value))
    return linear(reshaped_back(attend(q, k, v)), w_output)


@exercise.mistake(
    "Your result does not depend on the number of heads: it is that of one wide head. Where is the split?"
)
def one_head(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, 1))), w_output)


@exercise.mistake(
    "Right for three heads of width 4, and for no others. Take the number of heads from the argument and the width "
    "from the vectors.",
    id="hard_coded_heads",
)
def always_three(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, 3))), w_output)


@exercise.like("hard_coded_heads")
def always_four_wide(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, hidden.shape[-1] // 4))), w_output)


@exercise.mistake(
    "You use the number of heads as the width of one. There should be `n_heads` heads, each d_model / n_heads wide."
)
def heads_as_width(hidden, w_query, w_key, w_value, w_output, n_heads):
    heads = heads_of(hidden, w_query, w_key, w_value, hidden.shape[-1] // n_heads)
    return linear(merge(attend(*heads)), w_output)


@exercise.mistake(
    "You add or average the heads, and what each of them found is lost. Lay them side by side; the output weights do "
    "the mixing.",
    id="heads_added",
)
def mean_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    mean = reduce(context, "batch heads tokens d_head -> batch tokens d_head", "mean")
    return linear(repeat(mean, "batch tokens d_head -> batch tokens (heads d_head)", heads=n_heads), w_output)


@exercise.like("heads_added")
def sum_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    context = attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))
    total = reduce(context, "batch heads tokens d_head -> batch tokens d_head", "sum")
    return linear(repeat(total, "batch tokens d_head -> batch tokens (heads d_head)", heads=n_heads), w_output)


@exercise.mistake(
    "All heads look where the first one looks. Each has queries and keys of its own: which index do you take?"
)
def first_head_for_all(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q[:, :1].expand_as(q), k[:, :1].expand_as(k), v)), w_output)


@exercise.like("first_head_for_all")
def first_head_repeated(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (part[:, :1] for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    context = repeat(attend(q, k, v), "batch 1 tokens d_head -> batch heads tokens d_head", heads=n_heads)
    return linear(merge(context), w_output)


@exercise.mistake("The heads stand side by side in reverse order. Head 0 comes first.")
def last_head_first(hidden, w_query, w_key, w_value, w_output, n_heads):
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads)).flip(1)), w_output)


@exercise.mistake(
    "Heads and sentences come out exchanged: you laid them on one axis in one order and took them apart in the other. "
    "Sentences must not influence each other."
)
def batch_and_heads_exchanged(hidden, w_query, w_key, w_value, w_output, n_heads):
    """All heads are laid into the batch, and taken out of it the other way round."""
    pattern = "batch heads tokens d_head -> (batch heads) 1 tokens d_head"
    q, k, v = (rearrange(part, pattern) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    back = "(heads batch) 1 tokens d_head -> batch tokens (heads d_head)"
    return linear(rearrange(attend(q, k, v), back, heads=n_heads), w_output)


def finish(weights, v, w_output):
    """Blend, merge and project, as it should be."""
    return linear(merge(einsum(weights, v, BLEND)), w_output)


@exercise.mistake("Your weights are too sharp: the scores are not scaled. By what are they divided in each head?")
def no_scale(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES)).softmax(dim=-1), v, w_output)


@exercise.mistake("Your weights are too flat: you scale by √d_model. A head's vectors have d_model / n_heads entries.")
def scale_dmodel(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = einsum(q, k, SCORES) / math.sqrt(hidden.shape[-1])
    return finish(hide_future(scores).softmax(dim=-1), v, w_output)


@exercise.mistake("Your scores are divided by d_head, not by its root, and the weights are too flat.")
def div_d_head(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES) / q.shape[-1]).softmax(dim=-1), v, w_output)


@exercise.mistake(
    "You scale by the root of the number of heads. A score is a sum over the features of one head: how many are they?"
)
def scale_of_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(einsum(q, k, SCORES) / math.sqrt(n_heads)).softmax(dim=-1), v, w_output)


@exercise.mistake(
    "Changing the last token changes your output for the first: nothing hides the future. Here attention is causal."
)
def no_mask(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).softmax(dim=-1), v, w_output)


@exercise.mistake(
    "The future leaks: `tril` puts 0 where later scores were, and exp(0) = 1 is a weight like others. What score makes "
    "exp exactly 0?",
    id="zero_score",
)
def tril_of_scores(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).tril().softmax(dim=-1), v, w_output)


@exercise.mistake(
    "The future gets no weight, but the rest of each row no longer sums to 1, and early tokens shrink. Hide before you "
    "normalise."
)
def mask_after_softmax(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).softmax(dim=-1).tril(), v, w_output)


@exercise.mistake("You kept the future and hid the past. Which triangle of `queries keys` lies before a query?")
def only_the_future(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    return finish(scores.masked_fill(past(scores.shape[-1]).mT.logical_not(), -math.inf).softmax(dim=-1), v, w_output)


@exercise.mistake("Each token sees one token of the future: the diagonal of your mask stands one too far to the right.")
def one_ahead(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(1)
    return finish(scores.masked_fill(~allowed, -math.inf).softmax(dim=-1), v, w_output)


@exercise.mistake("No token sees itself, and the first one nothing at all. The diagonal belongs to the past.")
def not_itself(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(-1)
    return finish(scores.masked_fill(~allowed, -math.inf).softmax(dim=-1), v, w_output)


@exercise.like("not_itself")
def not_itself_zeros(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(-1)
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1).nan_to_num(0.0)
    return finish(weights, v, w_output)


@exercise.mistake("You normalise over the queries. Each *query* distributes its weight over keys: which axis are they?")
def softmax_q(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=-2), v, w_output)


@exercise.mistake(
    "You normalise over the heads, so that they compete for a key. Inside each head, each query distributes its weight "
    "over keys."
)
def softmax_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=1).nan_to_num(0.0), v, w_output)


@exercise.like("softmax_heads")
def softmax_heads_of_large(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k)
    return finish(scores.masked_fill(~past(scores.shape[-1]), -1e9).softmax(dim=1), v, w_output)


@exercise.mistake(
    "You take the softmax twice: the second one makes the weights almost equal, and gives the future some, since "
    "exp(0) = 1. Once is enough."
)
def softmax_twice(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(hide_future(compare(q, k)).softmax(dim=-1).softmax(dim=-1), v, w_output)


@exercise.mistake("Your weights are raw scores, negative here and there. What makes shares of them?")
def no_softmax(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return finish(compare(q, k).tril(), v, w_output)


SWAP = "batch first second d_head -> batch second first d_head"


@exercise.mistake(
    "Your score matrix is `heads heads`, one for each token: tokens never see each other. Which two axes should be "
    "last before you multiply?"
)
def attends_over_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (rearrange(part, SWAP) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    scores = compare(q, k)  # batch tokens heads heads
    return linear(merge(rearrange(einsum(scores.softmax(dim=-1), v, BLEND), SWAP)), w_output)


@exercise.like("attends_over_heads")
def attends_over_heads_masked(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (rearrange(part, SWAP) for part in heads_of(hidden, w_query, w_key, w_value, n_heads))
    weights = hide_future(compare(q, k)).softmax(dim=-1)
    return linear(merge(rearrange(einsum(weights, v, BLEND), SWAP)), w_output)


@exercise.mistake(
    "This is exactly the heads laid side by side. One linear map is missing, the one that lets what the heads found be "
    "mixed."
)
def no_wo(hidden, w_query, w_key, w_value, w_output, n_heads):
    return merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads)))


TURNED = "... d_in, d_in d_out -> ... d_out"


@exercise.mistake(
    "Weights are stored `d_out d_in`, as in nn.Linear, and yours act the other way round, all or some. Square matrices "
    "hide it: write the axes beside each product."
)
def weight_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (split(einsum(hidden, weight, TURNED), n_heads) for weight in (w_query, w_key, w_value))
    return einsum(merge(attend(q, k, v)), w_output, TURNED)


@exercise.like("weight_transposed")
def inner_weights_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (split(einsum(hidden, weight, TURNED), n_heads) for weight in (w_query, w_key, w_value))
    return linear(merge(attend(q, k, v)), w_output)


@exercise.like("weight_transposed")
def output_weight_transposed(hidden, w_query, w_key, w_value, w_output, n_heads):
    return einsum(no_wo(hidden, w_query, w_key, w_value, w_output, n_heads), w_output, TURNED)


@exercise.mistake("You apply the output weights before attention. They come last: they mix what the heads have found.")
def output_first(hidden, w_query, w_key, w_value, w_output, n_heads):
    return no_wo(linear(hidden, w_output), w_query, w_key, w_value, w_output, n_heads)


def right(hidden, w_query, w_key, w_value, w_output, n_heads):
    """As it should be."""
    return linear(merge(attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))), w_output)


@exercise.mistake(
    "Queries and keys are exchanged: who is looked at asks, and who asks is looked at. Compare the order of the "
    "arguments with your projections."
)
def query_and_key_exchanged(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_key, w_query, w_value, w_output, n_heads)


@exercise.mistake(
    "One of your three projections uses another one's weight. Queries, keys and values have a matrix each: read the "
    "three lines side by side.",
    id="shared_weight",
)
def value_from_key(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_key, w_key, w_output, n_heads)


@exercise.like("shared_weight")
def key_from_query(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_query, w_value, w_output, n_heads)


@exercise.mistake(
    "The heads cut their values straight out of the input. What is handed over is projected too, with a matrix of its "
    "own.",
    id="not_projected",
)
def value_not_projected(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, _ = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q, k, split(hidden, n_heads))), w_output)


@exercise.like("not_projected")
def nothing_projected(hidden, w_query, w_key, w_value, w_output, n_heads):
    parts = split(hidden, n_heads)
    return linear(merge(attend(parts, parts, parts)), w_output)


@exercise.mistake(
    "Your output is too large by exactly the input. The residual connection belongs to the block around attention."
)
def residual_inside(hidden, w_query, w_key, w_value, w_output, n_heads):
    return hidden + right(hidden, w_query, w_key, w_value, w_output, n_heads)


@exercise.mistake(
    "Your output has mean 0 and variance 1 for each token: a norm belongs to the block, not into attention."
)
def normalised_inside(hidden, w_query, w_key, w_value, w_output, n_heads):
    out = right(hidden, w_query, w_key, w_value, w_output, n_heads)
    return nn.functional.layer_norm(out, out.shape[-1:])


@exercise.mistake(
    "You return the heads, each with its own axis. Two steps are missing: lay them side by side, and apply the output "
    "weights."
)
def returns_heads(hidden, w_query, w_key, w_value, w_output, n_heads):
    return attend(*heads_of(hidden, w_query, w_key, w_value, n_heads))


@exercise.mistake(
    "With one sentence in the batch your output loses an axis: `squeeze()` without an axis takes away every axis of "
    "size one."
)
def squeezed(hidden, w_query, w_key, w_value, w_output, n_heads):
    return right(hidden, w_query, w_key, w_value, w_output, n_heads).squeeze()


@exercise.mistake(
    "Inputs in float64 come back in float32. Keep the dtype that you are given: where do you name one, or make a "
    "tensor without asking for the input's?"
)
def mask_of_float32(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = einsum(q, k, SCORES).float() / math.sqrt(q.shape[-1])
    n_tokens = scores.shape[-1]
    future = torch.full((n_tokens, n_tokens), -math.inf, dtype=torch.float32).triu(1)
    return linear(merge(einsum((scores + future).softmax(dim=-1), v.float(), BLEND)), w_output.float())


@exercise.mistake(
    "The output is right, but nothing can be learnt: weights copied into a new layer, `.detach()`, `.data`, `.item()` "
    "and `.numpy()` all cut the way back. Use the tensors that you were given.",
    id="no_gradient",
)
def copied_weights(hidden, w_query, w_key, w_value, w_output, n_heads):
    copies = []
    for weight in (w_query, w_key, w_value, w_output):
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
        layer.weight.data.copy_(weight)
        copies.append(layer)
    to_query, to_key, to_value, to_output = copies
    q, k, v = (split(layer(hidden), n_heads) for layer in (to_query, to_key, to_value))
    return to_output(merge(attend(q, k, v)))


@exercise.like("no_gradient")
def detached_weights(hidden, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    scores = compare(q, k).detach()
    n_tokens = scores.shape[-1]
    allowed = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return linear(merge(einsum(weights, v, BLEND)), w_output)


@exercise.like("no_gradient")
def through_numpy(hidden, w_query, w_key, w_value, w_output, n_heads):
    return torch.from_numpy(right(hidden, w_query, w_key, w_value, w_output, n_heads).detach().numpy())


@exercise.mistake(
    "Your answer is right but a weight you were given has changed: the second call with it would be wrong. `/=` edits "
    "the caller's tensor."
)
def inplace(hidden, w_query, w_key, w_value, w_output, n_heads):
    d_head = w_query.shape[0] // n_heads
    w_query /= math.sqrt(d_head)
    q, k, v = heads_of(hidden, w_query, w_key, w_value, n_heads)
    return linear(merge(attend(q * math.sqrt(d_head), k, v)), w_output)
