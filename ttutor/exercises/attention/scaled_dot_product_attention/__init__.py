"""Exercise: scaled dot-product attention, with a mask and with rows that may see nothing."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor import attention
from ttutor.exercises.attention.scaled_dot_product_attention import blending, empty_rows, masking, scale, weighing
from ttutor.exercises.attention.scaled_dot_product_attention.probes import PROPERTIES
from ttutor.exercises.exercise import Case, Exercise


def scaled_dot_product_attention(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch heads keys d_head"],
    value: Float[Tensor, "batch heads keys d_value"],
    mask: Bool[Tensor, "..."],
) -> Float[Tensor, "batch heads queries d_value"]:
    """Blend the values by how well each query suits each key; `mask` is True where a query may attend."""
    ...


def solution(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch heads keys d_head"],
    value: Float[Tensor, "batch heads keys d_value"],
    mask: Bool[Tensor, "..."],
) -> Float[Tensor, "batch heads queries d_value"]:
    """Blend the values by how well each query suits each key; `mask` is True where a query may attend."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    sees_nothing = (scores == -math.inf).all(dim=-1, keepdim=True)
    weights = scores.masked_fill(sees_nothing, 0.0).softmax(dim=-1).masked_fill(sees_nothing, 0.0)
    return weights @ value


def reference(query, key, value, mask):
    return attention.scaled_dot_product_attention(query, key, value, mask)


def observe(answer, query, key, value, mask):
    """The context; where the inputs ask for gradients, these beside it."""
    context = answer(query, key, value, mask)
    if not (isinstance(context, Tensor) and context.is_floating_point()):
        return context
    if query.dtype == torch.float16:  # whether a mask added in float32 promotes the result is not asked here
        return context.to(query.dtype)
    if not query.requires_grad:
        return context
    names = ("gradient of the query", "gradient of the key", "gradient of the value")
    gradients: tuple[Tensor | None, ...] = (None, None, None)
    if context.requires_grad:
        total = (context.flatten() * torch.linspace(-1, 2, context.numel())).sum()
        gradients = torch.autograd.grad(total, (query, key, value), allow_unused=True)
    return {"context": context.detach()} | dict(zip(names, gradients, strict=True))


def _tensors(generator, dtype=torch.float32, spread=2.5):
    query = spread * torch.randn(2, 4, 5, 8, generator=generator, dtype=dtype)
    key = spread * torch.randn(2, 4, 7, 8, generator=generator, dtype=dtype)
    value = 1 + torch.randn(2, 4, 7, 6, generator=generator, dtype=dtype)
    return query, key, value


def _padding(generator):
    is_real = torch.tensor([[True] * 5 + [False] * 2, [False] + [True] * 6])
    return *_tensors(generator, torch.float64), is_real[:, None, None, :]


def _mask_with_empty_rows(generator, heads):
    mask = torch.rand(2, heads, 5, 7, generator=generator) < 0.5
    mask[..., 2] = True
    mask[0, :, 1] = mask[1, heads - 1, 3] = False
    return mask


def _empty_rows(generator):
    return *_tensors(generator), _mask_with_empty_rows(generator, 4)


def _half_precision(generator):
    """Scores up to 14,000 in size, far apart, so that every output is one value exactly, also in float16."""
    axes = torch.eye(8)
    query = 100 * axes[:5] + 200 * axes[1:6]
    query[0] = -200 * axes[0]
    key = 200 * axes[:7]
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[0] = torch.arange(7) == 0  # all that it may see has a score of -14,142
    mask[2, 3] = mask[3, 4] = False  # the best key is hidden
    value = torch.randint(1, 9, (2, 4, 7, 6), generator=generator)
    tensors = query.expand(2, 4, 5, 8).clone(), key.expand(2, 4, 7, 8).clone(), value
    return *(tensor.half() for tensor in tensors), mask.expand(2, 4, 5, 7).clone()


def _gradients(generator):
    tensors = _tensors(generator, spread=1.0)
    return *(tensor.requires_grad_() for tensor in tensors), _mask_with_empty_rows(generator, 1)


EXERCISES = (
    Exercise(
        id="attention.scaled_dot_product_attention",
        title="Attention itself",
        statement="""
Write the formula that everything else is built on,

$$\\mathrm{Attention}(Q, K, V) = \\mathrm{softmax}\\!\\left(\\frac{Q K^\\top}{\\sqrt{d_\\mathrm{head}}}\\right) V ,$$

for tensors `batch heads tokens features`. `mask` is a bool tensor in which True means "may attend"; it can be
broadcast to `batch heads queries keys`, so that an axis of it may have size one. A query that may attend to no key
gets zeros: no NaN, neither in the output nor in a gradient. `softmax` may be used, ready-made attention may not.
""".strip(),
        stub=scaled_dot_product_attention,
        reference=reference,
        solution=solution,
        explanation="""
A score is a sum of $d_\\mathrm{head}$ products; if queries and keys have variance 1, its variance is
$d_\\mathrm{head}$, and dividing by the root brings it back to 1. Hiding comes before the softmax, as only then do the
other weights still sum to 1. In a row of nothing but $-\\infty$ the softmax is 0/0. Repairing that afterwards is
enough for the output and not always for the gradient, since NaN times 0 is NaN; so such rows get finite scores first
and zero weights afterwards.
""".strip(),
        observe=observe,
        cases=(
            Case(name="a padding mask `batch 1 1 keys`, in float64", inputs=_padding),
            Case(name="a mask for each head, and queries that may see nothing", inputs=_empty_rows),
            Case(name="scores in the thousands, in float16", inputs=_half_precision),
            Case(name="gradients asked for", inputs=_gradients),
        ),
        hints=(
            (
                "Four steps: compare, scale, hide, blend. Write the axes of the result beside each. Along which "
                "axis must the weights sum to 1, and what must a hidden score be for its weight to be exactly 0?"
            ),
            (
                "Scores have the axes `queries keys` and are divided by the root of the width of one query. Fill the "
                "hidden ones with $-\\infty$ before the softmax. A row with nothing but $-\\infty$ gives 0/0: find "
                "these rows first."
            ),
            (
                "Put 0 for the scores of the rows that see nothing, so that the softmax is finite there, and put 0 for "
                "their weights afterwards (`masked_fill` twice, with `~mask.any(dim=-1, keepdim=True)` or from the "
                "scores). Then multiply with the values."
            ),
        ),
        mistakes=scale.MISTAKES + masking.MISTAKES + empty_rows.MISTAKES + weighing.MISTAKES + blending.MISTAKES,
        properties=PROPERTIES,
        forbids=(
            "scaled_dot_product_attention",
            "multi_head_attention_forward",
            "MultiheadAttention",
            "attention_weights",
            "efficient_attention",
        ),
        difficulty=2,
        minutes=25,
        section="02-attention",
    ),
)
