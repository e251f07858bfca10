"""Exercise: an encoder layer with its norms in front."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.encoder import EncoderLayer
from ttutor.exercises.encoder.encoder_layer_probes import properties
from ttutor.exercises.encoder.encoder_layer_sentences import MISTAKES
from ttutor.exercises.exercise import Case, Exercise
from ttutor.layers import layer_norm


def encoder_layer(
    hidden: Float[Tensor, "batch tokens d_model"],
    norm_1: tuple[Float[Tensor, " d_model"], ...],
    attention: tuple[Float[Tensor, "d_model d_model"], ...],
    norm_2: tuple[Float[Tensor, " d_model"], ...],
    feed_forward: tuple[Tensor, Tensor, Tensor, Tensor],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """Self-attention, then the feed-forward network, each added to the stream and each with its norm in front.

    `norm_1` and `norm_2` are (gain, bias), `attention` is (w_query, w_key, w_value, w_output), and `feed_forward` is
    (w_1, b_1, w_2, b_2), of shapes (d_ff, d_model), (d_ff,), (d_model, d_ff) and (d_model,).
    """
    ...


def solution(
    hidden: Float[Tensor, "batch tokens d_model"],
    norm_1: tuple[Float[Tensor, " d_model"], ...],
    attention: tuple[Float[Tensor, "d_model d_model"], ...],
    norm_2: tuple[Float[Tensor, " d_model"], ...],
    feed_forward: tuple[Tensor, Tensor, Tensor, Tensor],
    n_heads: int,
) -> Float[Tensor, "batch tokens d_model"]:
    """Self-attention, then the feed-forward network, each added to the stream and each with its norm in front.

    `norm_1` and `norm_2` are (gain, bias), `attention` is (w_query, w_key, w_value, w_output), and `feed_forward` is
    (w_1, b_1, w_2, b_2), of shapes (d_ff, d_model), (d_ff,), (d_model, d_ff) and (d_model,).
    """
    w_query, w_key, w_value, w_output = attention
    normed = layer_norm(hidden, *norm_1)
    split = "batch tokens (heads d_head) -> batch heads tokens d_head"
    q, k, v = (rearrange(normed @ weight.T, split, heads=n_heads) for weight in (w_query, w_key, w_value))
    context = scaled_dot_product_attention(q, k, v)
    hidden = hidden + rearrange(context, "batch heads tokens d_head -> batch tokens (heads d_head)") @ w_output.T

    w_1, b_1, w_2, b_2 = feed_forward
    inner = torch.relu(layer_norm(hidden, *norm_2) @ w_1.T + b_1)
    return hidden + inner @ w_2.T + b_2


def reference(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    """The package's own layer, with these weights in it; the biases of its attention stay zero."""
    layer = EncoderLayer(hidden.shape[-1], n_heads, feed_forward[0].shape[0], norm="pre").to(hidden.dtype)
    names = ("to_query", "to_key", "to_value", "to_output")
    weights = {f"self_attention.{name}.weight": weight for name, weight in zip(names, attention, strict=True)}
    for place, (gain, bias) in (("around_attention", norm_1), ("around_feed_forward", norm_2)):
        weights |= {f"{place}.norm.gain": gain, f"{place}.norm.bias": bias}
    names = ("widen.weight", "widen.bias", "narrow.weight", "narrow.bias")
    weights |= {f"feed_forward.{name}": part for name, part in zip(names, feed_forward, strict=True)}
    return torch.func.functional_call(layer, weights, (hidden,))


def _weights(generator, d_model, d_ff):
    """Attention's and the network's weights, of a size at which every part of the layer counts."""
    square = torch.randn(4, d_model, d_model, generator=generator) * 1.3 / d_model**0.5
    w_1 = torch.randn(d_ff, d_model, generator=generator) * 1.5 / d_model**0.5
    w_2 = torch.randn(d_model, d_ff, generator=generator) * 1.5 / d_ff**0.5
    return tuple(square), w_1, w_2


def _trained(generator):
    """Gains, biases and weights as after training: no two alike."""
    attention, w_1, w_2 = _weights(generator, d_model=12, d_ff=7)
    gains, shifts = 1.2 + 0.4 * torch.randn(2, 12, generator=generator), torch.randn(2, 12, generator=generator)
    b_1, b_2 = torch.randn(7, generator=generator), torch.randn(12, generator=generator)
    hidden = 3 * torch.randn(2, 5, 12, generator=generator) + 1
    return hidden, (gains[0], shifts[0]), attention, (gains[1], shifts[1]), (w_1, b_1, w_2, b_2), 3


def _fresh(generator):
    """Gains of one and biases of zero, as a layer starts; the first tokens of a sequence are zero vectors."""
    attention, w_1, w_2 = _weights(generator, d_model=10, d_ff=6)
    hidden = 3 * torch.randn(3, 4, 10, generator=generator) + 1
    hidden[1, :2] = 0.0
    norms = [(torch.ones(10), torch.zeros(10)) for _ in range(2)]
    return hidden, norms[0], attention, norms[1], (w_1, torch.zeros(6), w_2, torch.zeros(10)), 2


EXERCISES = (
    Exercise(
        id="encoder.encoder_layer",
        title="An encoder layer, pre-norm",
        statement="""
Put an encoder layer together. It is pre-norm: each sublayer reads a normalised copy of the stream, and what it writes
is added to the stream itself,

$$\\begin{aligned} x' &= x + \\mathrm{Attention}(\\mathrm{LayerNorm}_1(x)), \\\\
y &= x' + \\mathrm{FFN}(\\mathrm{LayerNorm}_2(x')). \\end{aligned}$$

Attention is multi-head self-attention without biases and without a mask; the feed-forward network is
$W_2\\,\\mathrm{ReLU}(W_1 x + b_1) + b_2$; both norms have $\\epsilon = 10^{-5}$. Every weight is stored as in
`nn.Linear`, outputs in rows. There is no dropout. You may use `ttutor.layers.layer_norm` and
`ttutor.attention.scaled_dot_product_attention`, or your own.
""".strip(),
        stub=encoder_layer,
        reference=reference,
        solution=solution,
        cases=(
            Case(name="a layer in the middle of training", inputs=_trained, points=2),
            Case(name="a layer as it starts, and tokens that are zero", inputs=_fresh),
        ),
        explanation="""
The variable `hidden` is the stream. It is only ever added to: each half reads a normalised copy, under a name of its
own, and writes its share back. That is why a layer whose output weights are zero is the identity, and why a gradient
finds a straight way from the last layer to the first. The price is that the stream grows from layer to layer, so that a
pre-norm stack ends with one norm more.
""".strip(),
        hints=(
            (
                "Draw the stream as a straight line from input to output. What branches off, what does the "
                "branch read, and where does it come back? If both branches wrote nothing, what would come out?"
            ),
            (
                "Two halves of the same form: stream plus sublayer of the norm of the stream. The norm's result "
                "needs a name of its own, for the stream goes on without it, and the second half starts from the "
                "sum of the first."
            ),
            (
                "Normalise with `norm_1`; make queries, keys and values of that (times the transposed weights), "
                "cut them into heads, attend, merge, apply `w_output`, add to `hidden`. Normalise the sum with "
                "`norm_2`, widen, ReLU, narrow, and add to the sum."
            ),
        ),
        mistakes=MISTAKES,
        properties=properties(reference),
        forbids=(
            "EncoderLayer",
            "TransformerEncoderLayer",
            "MultiHeadAttention",
            "MultiheadAttention",
            "multi_head_attention_forward",
            "functional_call",
        ),
        difficulty=2,
        minutes=25,
        section="05-encoder",
    ),
)
