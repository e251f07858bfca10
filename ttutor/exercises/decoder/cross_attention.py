"""Exercise: cross-attention, by which the decoder reads the source."""

import math

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Finding, Property, Trial
from ttutor.exercises.probes import batch_independent, dependencies, depends
from ttutor.multihead import MultiHeadAttention


def cross_attention(
    hidden: Float[Tensor, "batch target d_model"],
    memory: Float[Tensor, "batch source d_model"],
    w_query: Float[Tensor, "d_model d_model"],
    w_key: Float[Tensor, "d_model d_model"],
    w_value: Float[Tensor, "d_model d_model"],
    w_output: Float[Tensor, "d_model d_model"],
    n_heads: int,
    memory_mask: Bool[Tensor, "batch 1 1 source"] | None = None,
) -> Float[Tensor, "batch target d_model"]:
    """Let each target token read the source, in every head; `memory_mask` says which source tokens are real."""
    split = "batch tokens (heads d_head) -> batch heads tokens d_head"
    q = rearrange(hidden @ w_query.T, split, heads=n_heads)
    k = rearrange(memory @ w_key.T, split, heads=n_heads)
    v = rearrange(memory @ w_value.T, split, heads=n_heads)
    context = scaled_dot_product_attention(q, k, v, memory_mask)
    return rearrange(context, "batch heads target d_head -> batch target (heads d_head)") @ w_output.T


def reference(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """The package's own layer, with these weights in it."""
    layer = MultiHeadAttention(hidden.shape[-1], n_heads, bias=False).to(hidden.dtype)
    maps = {"to_query": w_query, "to_key": w_key, "to_value": w_value, "to_output": w_output}
    weights = {f"{name}.weight": weight for name, weight in maps.items()}
    return torch.func.functional_call(layer, weights, (hidden, memory), {"mask": memory_mask})


def _maps(generator, d_model):
    """Weights at which scores have a standard deviation of about two."""
    return torch.unbind(torch.randn(4, d_model, d_model, generator=generator) / d_model**0.5)


def _two_sequences(generator, n_target, n_source, d_model, batch=2):
    hidden = 1.5 * torch.randn(batch, n_target, d_model, generator=generator)
    return hidden, 1.5 * torch.randn(batch, n_source, d_model, generator=generator) + 0.5


def _padded(generator):
    """Sources of unequal lengths in one batch, both shorter than the tensor."""
    n_source, n_heads = drawn(generator, 7, 9), drawn(generator, 3, 4)
    is_real = torch.arange(n_source) < torch.tensor([[4], [6]])
    mask = rearrange(is_real, "batch source -> batch 1 1 source")
    d_model = 4 * n_heads
    hidden, memory = _two_sequences(generator, drawn(generator, 5, 6), n_source, d_model)
    return hidden, memory, *_maps(generator, d_model), n_heads, mask


def _no_mask(generator):
    """As many target as source tokens, so that a confusion of the two raises nothing and can be named."""
    return *_two_sequences(generator, 6, 6, 10, batch=3), *_maps(generator, 10), 2, None


def _nothing_to_read(generator):
    """The second source is all padding."""
    mask = repeat(torch.tensor([True, False]), "batch -> batch 1 1 source", source=5)
    return *_two_sequences(generator, 4, 5, 8), *_maps(generator, 8), 4, mask


def _memory_that_is_not_read(trial: Trial) -> Finding | None:
    """Change one real source token after another: every output of its sequence must move."""
    hidden, memory, *rest, mask = trial.inputs
    is_real = torch.ones(memory.shape[:2], dtype=torch.bool) if mask is None else mask[:, 0, 0]
    for place in range(memory.shape[1]):
        changed = memory.clone()
        changed[:, place] += 2 * torch.arange(memory.shape[-1]).sin()
        moved = (trial.run(hidden, changed, *rest, mask) - trial.value).abs().amax(dim=-1) > 1e-6
        if not moved[is_real[:, place]].all():
            text = f"A change of source token {place} leaves some target tokens as they were."
            right = repeat(is_real.any(dim=0), "source -> target source", target=hidden.shape[1])
            return Finding(text, dependencies(trial, argument=1), right)
    return None


def _padding_that_is_read(trial: Trial) -> str | None:
    """Change the memory where the mask says padding: nothing may move."""
    hidden, memory, *rest, mask = trial.inputs
    if mask is None:
        return None
    noise = 3 * torch.arange(memory.shape[-1]).sin()
    changed = torch.where(rearrange(mask, "batch 1 1 source -> batch source 1"), memory, memory + noise)
    moved = (trial.run(hidden, changed, *rest, mask) - trial.value).abs().max().item()
    return None if moved < 1e-5 else f"A change of the padding moved your output by {moved:.2g}."


def _map_with_another_task(trial: Trial) -> str | None:
    """Set one map to zero after another, and look at what is left."""
    hidden, memory, *maps, n_heads, mask = trial.inputs
    for number, name in enumerate(("w_query", "w_key", "w_value", "w_output")):
        without = [torch.zeros_like(part) if place == number else part for place, part in enumerate(maps)]
        left = trial.run(hidden, memory, *without, n_heads, mask)
        if number < 2 and (left - left[:, :1]).abs().max() > 1e-4:
            return f"With `{name}` at zero all scores are equal, but the target tokens still receive different things."
        if number >= 2 and left.abs().max() > 1e-4:
            return f"With `{name}` at zero the output should be zero, but yours goes up to {left.abs().max():.2g}."
    return None


def _each_its_own(hidden, *_):
    """The map in which output i moves with target token i alone."""
    return torch.eye(hidden.shape[1], dtype=torch.bool)


exercise = Exercise(
    id="decoder.cross_attention",
    title="Cross-attention: the decoder reads the source",
    statement="""
Write the decoder's second sublayer. Its queries come from the decoder's stream `hidden`, its keys and values from the
encoder's output `memory`; source and target need not have the same length. The rest is multi-head attention as you know
it, without biases: weights are stored as in `nn.Linear`, head 0 owns the first `d_head` features, and `w_output` comes
after the merge.

`memory_mask` is True where a source token is real, and None where all are. A target token whose source is nothing but
padding receives zeros. You may use `ttutor.attention.scaled_dot_product_attention`, or your own.
""".strip(),
    reference=reference,
    solution=cross_attention,
    cases=(
        Case(name="two sources of unequal length", inputs=_padded, points=2),
        Case(name="no mask, and as many target as source tokens", inputs=_no_mask),
        Case(name="a source that is all padding", inputs=_nothing_to_read),
    ),
    explanation="""
Only the input of two projections tells it from self-attention. The output has the length of the target since there is
one query for each target token, and nothing is causal, since the whole source is known before the first word is
written. The mask belongs to the source, and so runs along the keys.
""".strip(),
    hints="""
Who asks, and who is asked? The output has one vector for each asker. That settles which of the two tensors makes the
queries.

Compared with self-attention only the input of two projections changes. The mask has one column for each source token
(each key), and broadcasts over heads and target tokens. Should a target token be kept from any part of the source?

Project `hidden` with `w_query`, `memory` with `w_key` and with `w_value`; cut all three into heads; attend under
`memory_mask`; merge the heads and apply `w_output`. Nothing is causal here.
""",
    properties=[
        Property(
            id="reads_all_of_the_source",
            says="Every target token may read every real source token, the last ones too: where do your keys "
            "and values come from, and what hides some of them?",
            broken=_memory_that_is_not_read,
        ),
        batch_independent(
            "The sequences of a batch must not influence each other: does each target read its own source, "
            "and no other?",
            arguments=(0, 1),
            id="sequences_apart",
        ),
        Property(
            id="ignores_padding",
            says="What stands in the padding should not matter at all: where does `memory_mask` act?",
            broken=_padding_that_is_read,
        ),
        Property(
            id="maps_in_their_places",
            says="Each of the four maps has one task: queries from `hidden`, keys and values from `memory`, "
            "and the merged heads at the end. Which weight stands where in your code?",
            broken=_map_with_another_task,
        ),
        depends(
            "Target tokens do not see each other in this sublayer; self-attention was before. Over which "
            "axis do you attend?",
            _each_its_own,
            id="targets_apart",
        ),
    ],
    forbids=(
        "MultiHeadAttention",
        "MultiheadAttention",
        "multi_head_attention_forward",
        "DecoderLayer",
        "TransformerDecoderLayer",
    ),
    difficulty=2,
    minutes=15,
    section="06-decoder",
)

exercise.mutations(r"""
kv_from_decoder: "memory @ w_key" -> "hidden @ w_key", "memory @ w_value" -> "hidden @ w_value", "v, memory_mask" -> "v"
    Changing the encoder's memory does not change your output: your keys and values come from the decoder, which makes
    this self-attention. Whose words is the decoder meant to read here?
q_from_encoder: "hidden @ w_query" -> "memory @ w_query", "memory @ w_key" -> "hidden @ w_key",
  "memory @ w_value" -> "hidden @ w_value", "v, memory_mask" -> "v"
    Your output has the length of the source: the encoder asks and the decoder answers. The queries come from the
    decoder, the keys and values from the memory.
v_from_decoder: "memory @ w_value" -> "hidden @ w_value"
    Your keys come from the memory, your values from the decoder. It fits only where both happen to have one length:
    what is found by a key should come from the same place as the key.
causal_on_cross: "context = " -> "causal = torch.ones(q.shape[2], k.shape[2]).tril().bool()\n    context = ",
  "v, memory_mask" -> "v, causal if memory_mask is None else causal & memory_mask"
    Early target tokens cannot see the end of the source. The causal mask is for self-attention; the source is known as
    a whole, so every target token may read all of it.
no_memory_mask: "v, memory_mask" -> "v"
    Changing what stands in the source's padding changes your output: `memory_mask` has no effect. Where do masks act in
    attention?
polarity: "v, memory_mask" -> "v, None if memory_mask is None else ~memory_mask"
    You read the padding and skip the words. In this course `True` means *may attend*; `nn.MultiheadAttention` has it
    the other way round.
tiny_fill: "scaled_dot_product_attention(q, k, v, memory_mask)" -> "_blend(q, k, v, memory_mask, fill=-1e-9)"
    Padded keys still get weight: you fill their scores with a number near 0, and exp(0) = 1. Which score has a power of
    exactly 0? (1e-9 is small, -1e9 is low.)
mask_after_softmax: "scaled_dot_product_attention(q, k, v, memory_mask)" -> "_blend(q, k, v, memory_mask)"
    Padded keys get no weight, but the rest of the row no longer sums to 1: you mask after the softmax. Take the padded
    keys out before the weights are shared.
nan_dead: "scaled_dot_product_attention(q, k, v, memory_mask)" -> "_blend(q, k, v, memory_mask, fill=-torch.inf)"
    Where the whole source is padding, your result is NaN: a softmax over nothing but −inf divides 0 by 0. By this
    course's convention a query that may see nothing gets zeros.
needs_a_mask: "v, memory_mask" -> "v, memory_mask.bool()"
    Right with a mask, an exception without one: `memory_mask` may be None, and then the whole source is real.
softmax_over_queries: "scaled_dot_product_attention(q, k, v, memory_mask)" -> "_blend(q, k, v, memory_mask, dim=-2)"
    Each source word shares its weight among the target tokens. It is the target token that shares its attention among
    the source words: which axis must sum to 1?
no_scale: "v, memory_mask" -> "v, memory_mask, scale=1.0"
    Your weights are sharper than they should be, as if each score were √d_head too large. What does the paper divide
    by?
scale_d_model: "v, memory_mask" -> "v, memory_mask, scale=hidden.shape[-1] ** -0.5"
    Your weights are flatter than they should be: you scale by √d_model, but a head's queries and keys have only d_model
    / n_heads features.
one_head: "split = " -> "n_heads = 1\n    split = "
    Your result does not depend on `n_heads`: one wide head does all the looking. Cut queries, keys and values into
    heads before comparing them.
residual_inside: "return rearrange" -> "return hidden + rearrange"
    Your output is mine plus `hidden`. The residual connection belongs to the layer around this function.
""")


def _blend(q, k, v, mask, *, fill=None, dim=-1):
    """Attention that fills hidden scores with a number, or, without one, takes hidden weights out afterwards."""
    mask = torch.tensor(True) if mask is None else mask
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if fill is None:
        return (scores.softmax(dim=dim) * mask) @ v
    return scores.masked_fill(~mask, fill).softmax(dim=dim) @ v
