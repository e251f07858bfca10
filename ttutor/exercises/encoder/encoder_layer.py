"""Exercise: an encoder layer with its norms in front."""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.encoder import EncoderLayer
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Property, Trial
from ttutor.exercises.probes import batch_independent, depends
from ttutor.layers import layer_norm


def properties(reference: Callable[..., torch.Tensor]) -> list[Property]:
    """The layer's properties in the order in which they are asked; the last one needs a right layer to compare with."""
    return [
        Property(
            id="identity_without_writing",
            says="Where no sublayer writes, the stream must pass unchanged: follow it from input to output. "
            "Which line does something to it?",
            broken=_stream_that_is_lost,
        ),
        Property(
            id="norms_come_first",
            says="A norm in front makes a sublayer blind to the size of its input. What exactly does this "
            "sublayer read?",
            broken=_size_that_matters,
        ),
        depends(
            "In an encoder every token sees every other, earlier and later ones: what keeps yours from it?",
            _everywhere,
            id="looks_both_ways",
        ),
        batch_independent(
            "Over which axes do you attend, and over which do you normalise? The sequences of a batch must not "
            "influence each other.",
            id="sequences_apart",
        ),
        Property(
            id="maps_in_their_places",
            says="Each of the four maps has one task: queries, keys, values, and the merged heads. Which weight "
            "stands where in your code?",
            broken=_map_with_another_task,
        ),
        Property(
            id="one_half_is_off",
            says="The two halves can be tried apart, by setting the output weights of the other to zero; the "
            "half that is right needs no more of your time.",
            broken=lambda trial: _half_that_is_off(trial, reference),
        ),
    ]


def _silenced(inputs, *, attention, network):
    """The same inputs with the output weights of one sublayer, or of both, at zero."""
    hidden, norm_1, maps, norm_2, (w_1, b_1, w_2, b_2), n_heads = inputs
    maps = (*maps[:3], torch.zeros_like(maps[3])) if attention else maps
    last = (torch.zeros_like(w_2), torch.zeros_like(b_2)) if network else (w_2, b_2)
    return hidden, norm_1, maps, norm_2, (w_1, b_1, *last), n_heads


def _stream_that_is_lost(trial: Trial) -> str | None:
    """Let neither sublayer write: the input must come out as it is."""
    silenced = _silenced(trial.inputs, attention=True, network=True)
    gap = (trial.run(*silenced) - trial.inputs[0]).abs().max().item()
    if gap < 1e-4:
        return None
    return f"With the output weights of both sublayers at zero, your layer is off its input by up to {gap:.2g}."


def _size_that_matters(trial: Trial) -> str | None:
    """Double the input: what the sublayer behind a norm writes may not change."""
    for silent, name in (("network", "attention"), ("attention", "the feed-forward network")):
        inputs = _silenced(trial.inputs, attention=silent == "attention", network=silent == "network")
        hidden, *rest = inputs
        once, twice = trial.run(hidden, *rest) - hidden, trial.run(2 * hidden, *rest) - 2 * hidden
        if (once - twice).abs().max() > 1e-2 * once.abs().max():
            return f"With the input doubled, {name} writes something else, by up to {(once - twice).abs().max():.2g}."
    return None


def _everywhere(hidden, *_):
    """The map in which every output moves with every token."""
    return torch.ones(hidden.shape[1], hidden.shape[1], dtype=torch.bool)


def _map_with_another_task(trial: Trial) -> str | None:
    """Set one map of attention to zero after another, with the network silent, and look at what is still written."""
    hidden, norm_1, maps, *rest = _silenced(trial.inputs, attention=False, network=True)
    for number, name in enumerate(("w_query", "w_key", "w_value", "w_output")):
        without = tuple(torch.zeros_like(part) if place == number else part for place, part in enumerate(maps))
        written = trial.run(hidden, norm_1, without, *rest) - hidden
        if number < 2 and (written - written[:, :1]).abs().max() > 1e-4:
            return f"With `{name}` at zero all scores are equal, but the tokens still receive different things."
        if number >= 2 and written.abs().max() > 1e-4:
            most = written.abs().max().item()
            return f"With `{name}` at zero attention should write nothing, but it writes up to {most:.2g}."
    return None


def _half_that_is_off(trial: Trial, reference: Callable[..., torch.Tensor]) -> str | None:
    """Silence one half after the other: is exactly one of them wrong by itself?"""
    is_off = {}
    for name in ("attention", "network"):
        inputs = _silenced(trial.inputs, attention=name == "network", network=name == "attention")
        gap = (trial.run(*inputs) - reference(*inputs)).abs().max().item()
        is_off[name] = gap > 1e-3
    if is_off["attention"] == is_off["network"]:
        return None
    wrong, right = ("attention", "the network") if is_off["attention"] else ("the network", "attention")
    return f"With {wrong} silent your layer is right, with {right} silent it is off: the trouble is in {wrong}."


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
    n_heads, d_ff = drawn(generator, 3, 4), drawn(generator, 6, 8)
    d_model = 4 * n_heads
    attention, w_1, w_2 = _weights(generator, d_model, d_ff)
    gains = 1.2 + 0.4 * torch.randn(2, d_model, generator=generator)
    shifts = torch.randn(2, d_model, generator=generator)
    b_1, b_2 = torch.randn(d_ff, generator=generator), torch.randn(d_model, generator=generator)
    hidden = 3 * torch.randn(2, 5, d_model, generator=generator) + 1
    return hidden, (gains[0], shifts[0]), attention, (gains[1], shifts[1]), (w_1, b_1, w_2, b_2), n_heads


def _fresh(generator):
    """Gains of one and biases of zero, as a layer starts; the first tokens of a sequence are zero vectors."""
    attention, w_1, w_2 = _weights(generator, d_model=10, d_ff=6)
    hidden = 3 * torch.randn(3, 4, 10, generator=generator) + 1
    hidden[1, :2] = 0.0
    norms = [(torch.ones(10), torch.zeros(10)) for _ in range(2)]
    return hidden, norms[0], attention, norms[1], (w_1, torch.zeros(6), w_2, torch.zeros(10)), 2


exercise = Exercise(
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
    reference=reference,
    solution=encoder_layer,
    cases=(
        Case(name="a layer in the middle of training", inputs=_trained, points=2),
        Case(name="a layer as it starts, and tokens that are zero", inputs=_fresh),
    ),
    explanation="""
The variable `hidden` is the stream. It is only ever added to: each half reads a normalised copy, under a name of its
own, and writes its share back. That is why a layer is the identity if its output weights and $b_2$ are zero, and why a
gradient finds a straight way from the last layer to the first. The price is that the stream grows from layer to layer,
so that a pre-norm stack ends with one norm more.
""".strip(),
    hints="""
Draw the stream as a straight line from input to output. What branches off, what does the branch read, and where does it
come back? If both branches wrote nothing, what would come out?

Two halves of the same form: stream plus sublayer of the norm of the stream. The norm's result needs a name of its own,
for the stream goes on without it, and the second half starts from the sum of the first.

Normalise with `norm_1`; make queries, keys and values of that (times the transposed weights), cut them into heads,
attend, merge, apply `w_output`, add to `hidden`. Normalise the sum with `norm_2`, widen, ReLU, narrow, and add to the
sum.
""",
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
)

exercise.mutations(r"""
post_norm: "normed = layer_norm(hidden, *norm_1)" -> "normed = hidden",
  "hidden + rearrange" -> "layer_norm(hidden + rearrange", "w_output.T" -> "w_output.T, *norm_1)",
  "layer_norm(hidden, *norm_2) @" -> "hidden @",
  "hidden + inner @ w_2.T + b_2" -> "layer_norm(hidden + inner @ w_2.T + b_2, *norm_2)"
    Your stream is normalised after each sum: this is post-norm, the order of the 2017 paper. Here each norm stands
    before its sublayer, inside the branch, and nothing normalises the stream itself.
norm_after_sublayer: "normed = layer_norm(hidden, *norm_1)" -> "normed = hidden",
  "+ rearrange" -> "+ layer_norm(rearrange", "w_output.T" -> "w_output.T, *norm_1)",
  "layer_norm(hidden, *norm_2) @" -> "hidden @", "inner @ w_2.T + b_2" -> "layer_norm(inner @ w_2.T + b_2, *norm_2)"
    You normalise what a sublayer writes instead of what it reads. The norm belongs between the stream and the sublayer:
    which of the two comes first in your code?
no_residual_attn: "hidden + rearrange" -> "rearrange"
    With its output weights at 0, attention should leave the stream alone; yours erases it. The skip around attention is
    missing.
no_residual_ff: "hidden + inner" -> "inner"
    With $W_2$ and $b_2$ at 0, the feed-forward network should leave the stream alone; yours erases it. The skip around
    it is missing.
residual_from_normed: "normed = layer_norm" -> "normed = hidden = layer_norm",
  "inner = torch.relu(layer_norm(hidden, *norm_2)" ->
  "hidden = layer_norm(hidden, *norm_2)\n    inner = torch.relu(hidden"
    You add what the sublayers write to the normalised stream. The skip carries the raw one; the norm is for the
    sublayer alone. Do both have a name of their own in your code?
residual_from_input: "normed = layer" -> "start = hidden\n    normed = layer", "return hidden" -> "return start"
    Your second skip starts at the layer's input, so that what attention wrote is read by the network and then
    forgotten. Where should the second skip start?
no_first_norm: "layer_norm(hidden, *norm_1)" -> "hidden"
    Doubling the input changes what attention sees, so its norm is missing. The first norm stands before attention.
no_second_norm: "layer_norm(hidden, *norm_2)" -> "hidden"
    Attention reads a normalised stream, the feed-forward network a raw one: its norm is missing.
no_affine: "layer_norm(hidden, *norm_1)" -> "torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])",
  "layer_norm(hidden, *norm_2)" -> "torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])"
    Right for a layer as it starts, wrong for a trained one: the norms' gain and bias have no effect. What are `norm_1`
    and `norm_2` made of?
no_eps: "*norm_1)" -> "*norm_1, 0.0)", "*norm_2)" -> "*norm_2, 0.0)"
    A token of zeros gives NaN: its norm divides 0 by 0. What stands under the root beside the variance?
ff_no_activation: "torch.relu" -> ""
    Your feed-forward network is linear, so that its two maps could be one: f(a) + f(b) = f(a + b) up to the biases.
    What stands between the maps?
gelu_not_relu: "torch.relu" -> "torch.nn.functional.gelu"
    Your network uses GELU, as BERT and GPT-2 do. The exercise asks for ReLU, as in the 2017 paper.
causal_encoder: "(q, k, v)" -> "(q, k, v, causal=True)"
    Changing a late token leaves your earlier outputs as they were: your attention is causal. An encoder has the whole
    sentence and may look both ways.
no_scale: "(q, k, v)" -> "(q, k, v, scale=1.0)"
    Your attention is sharper than it should be, as if the scores were too large by √d_head. What does the paper divide
    them by?
one_head: "heads=n_heads" -> "heads=1"
    Your result does not depend on `n_heads`: there is one head as wide as the model. Where do the queries, keys and
    values get cut?
inplace: "hidden = hidden + rearrange" -> "hidden += rearrange"
    The result is right, but `hidden` was overwritten: `+=` edits the tensor that you were given. Whoever called the
    layer still needs it.
extra_final_norm: "hidden + inner @ w_2.T + b_2" -> "layer_norm(hidden + inner @ w_2.T + b_2, *norm_2)"
    You normalise once more after the last addition. In a pre-norm model that norm belongs to the stack, once, after the
    last layer.
""")


@exercise.mistake(
    "Your feed-forward network comes first and attention second. It is the other way round: tokens are mixed before "
    "each is worked on by itself."
)
def ff_before_attn(hidden, norm_1, attention, norm_2, feed_forward, n_heads):
    inputs = hidden, norm_1, attention, norm_2, feed_forward, n_heads
    middle = encoder_layer(*_silenced(inputs, attention=True, network=False))
    return encoder_layer(middle, *_silenced(inputs, attention=False, network=True)[1:])
