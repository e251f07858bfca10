"""Exercise: causal multi-head self-attention, with the weights handed in."""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.multihead.multi_head_attention import attending, projecting, splitting
from ttutor.exercises.multihead.multi_head_attention.probes import PROPERTIES


def multi_head_attention(
    hidden: Float[Tensor, "batch tokens d_model"],
    w_query: Float[Tensor, "d_model d_model"],
    w_key: Float[Tensor, "d_model d_model"],
    w_value: Float[Tensor, "d_model d_model"],
    w_output: Float[Tensor, "d_model d_model"],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """Let each token look at itself and at earlier ones, in every head; weights are stored as in `nn.Linear`."""
    ...


def solution(
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


EXERCISES = (
    Exercise(
        id="multihead.multi_head_attention",
        title="Several lookups side by side",
        statement="""
Write causal self-attention with several heads. Project `hidden` to queries, keys and values; give every head its own
d_model / n_heads features, head 0 the first ones; let each token look at itself and at the tokens before it, in each
head; lay the heads side by side again and apply the output weights. All weights are stored `d_out d_in`, as in
`nn.Linear`; there is no bias. You may use `softmax`, but no ready-made attention.
""".strip(),
        stub=multi_head_attention,
        reference=reference,
        solution=solution,
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
        hints=(
            (
                "Only three things are new besides plain attention: projecting, splitting into heads, and merging with "
                "a last projection. Write the axes after each line. Which axes must be the last two when you "
                "multiply queries and keys?"
            ),
            (
                "Split `batch tokens (heads d_head)` into `batch heads tokens d_head`; attention then runs inside each "
                "head by itself, as heads are one more leading axis. Merge by the same pattern backwards. The scale is "
                "that of one head."
            ),
            (
                "One `rearrange` splits, one merges: never let a reshape alone swap axes. `hidden @ weight.mT` is what "
                "`nn.Linear` does. Hide the future by `masked_fill` with −∞, using `tril` of a table of ones."
            ),
        ),
        mistakes=splitting.MISTAKES + attending.MISTAKES + projecting.MISTAKES,
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
    ),
)
