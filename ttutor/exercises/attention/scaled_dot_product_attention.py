"""Exercise: scaled dot-product attention, with a mask and with rows that may see nothing."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor import attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.exercises.values import place_of_largest


def weights_of(trial: Trial) -> tuple[Tensor, Tensor] | None:
    """Read an answer's weights by giving it one-hot values, and the mask in full size beside them."""
    query, key, _, mask = (tensor.detach() for tensor in trial.inputs)
    *leading, n_keys, _ = key.shape
    one_hot = torch.eye(n_keys, dtype=key.dtype).expand(*leading, n_keys, n_keys)
    weights = trial.run(query, key, one_hot, mask)
    shape = (*query.shape[:-1], n_keys)
    if not isinstance(weights, Tensor) or tuple(weights.shape) != shape:
        return None
    return weights, mask.expand(shape)


def _less_their_mean(rows: Tensor, mask: Tensor) -> Tensor:
    """Take the mean of its visible entries off every row, and put 0 at the others."""
    visible = rows.masked_fill(~mask, 0.0)
    mean = visible.sum(dim=-1, keepdim=True) / mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return (visible - mean).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(
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
    n_heads, n_queries, n_keys = drawn(generator, 3, 4), drawn(generator, 5, 6), drawn(generator, 7, 8)
    d_head, d_value = drawn(generator, 9, 12), drawn(generator, 13, 14)
    query = spread * torch.randn(2, n_heads, n_queries, d_head, generator=generator, dtype=dtype)
    key = spread * torch.randn(2, n_heads, n_keys, d_head, generator=generator, dtype=dtype)
    value = 1 + torch.randn(2, n_heads, n_keys, d_value, generator=generator, dtype=dtype)
    return query, key, value


def _padding(generator):
    query, key, value = _tensors(generator, torch.float64)
    is_real = torch.ones(2, key.shape[2], dtype=torch.bool)
    is_real[0, -2:] = is_real[1, 0] = False
    return query, key, value, is_real[:, None, None, :]


def _mask_with_empty_rows(generator, query, key, n_heads):
    mask = torch.rand(2, n_heads, query.shape[2], key.shape[2], generator=generator) < 0.5
    mask[..., 2] = True
    mask[0, :, 1] = mask[1, n_heads - 1, 3] = False
    return mask


def _empty_rows(generator):
    query, key, value = _tensors(generator)
    return query, key, value, _mask_with_empty_rows(generator, query, key, query.shape[1])


def _half_precision(generator):
    """Scores up to 14,000 in size, far apart, so that every output is one value exactly, also in float16."""
    axes = torch.eye(8)
    query = 100 * axes[:5] + 200 * axes[1:6]
    query[0] = -200 * axes[0]
    key = 200 * axes[:7]
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[0] = torch.arange(7) == 0  # all that it may see has a score of -14,142
    mask[2, 3] = mask[3, 4] = False  # the best key is hidden
    n_heads = drawn(generator, 2, 4)
    value = torch.randint(1, 9, (3, n_heads, 7, 6), generator=generator)
    tensors = query.expand(3, n_heads, 5, 8).clone(), key.expand(3, n_heads, 7, 8).clone(), value
    return *(tensor.half() for tensor in tensors), mask.expand(3, n_heads, 5, 7).clone()


def _gradients(generator):
    query, key, value = (tensor.requires_grad_() for tensor in _tensors(generator, spread=1.0))
    return query, key, value, _mask_with_empty_rows(generator, query, key, 1)


exercise = Exercise(
    id="attention.scaled_dot_product_attention",
    title="Attention itself",
    statement="""
Write the formula that everything else is built on,

$$\\mathrm{Attention}(Q, K, V) = \\mathrm{softmax}\\!\\left(\\frac{Q K^\\top}{\\sqrt{d_\\mathrm{head}}}\\right) V ,$$

for tensors `batch heads tokens features`. `mask` is a bool tensor in which True means "may attend"; it can be
broadcast to `batch heads queries keys`, so that an axis of it may have size one. A query that may attend to no key
gets zeros: no NaN, neither in the output nor in a gradient. `softmax` may be used, ready-made attention may not.
""".strip(),
    reference=reference,
    solution=scaled_dot_product_attention,
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
    hints=r"""
Four steps: compare, scale, hide, blend. Write the axes of the result beside each. Along which axis must the weights sum
to 1, and what must a hidden score be for its weight to be exactly 0?

Scores have the axes `queries keys` and are divided by the root of the width of one query. Fill the hidden ones with
$-\infty$ before the softmax. A row with nothing but $-\infty$ gives 0/0: find these rows first.

Put 0 for the scores of the rows that see nothing, so that the softmax is finite there, and put 0 for their weights
afterwards (`masked_fill` twice, with `~mask.any(dim=-1, keepdim=True)` or from the scores). Then multiply with the
values.
""",
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
)

exercise.mutations(r"""
no_scale: " / math.sqrt(query.shape[-1])" -> ""
or: " / math.sqrt(query.shape[-1])" -> "", "return weights" -> "return scores.softmax(dim=-1)"
or: " / math.sqrt(query.shape[-1])" -> "", "~mask, -math.inf" -> "~mask, -1e9"
    Your weights are too sharp, exactly as if the scores were √d_head times too large. What does the paper divide by,
    and why?
div_dk: "math.sqrt(query.shape[-1])" -> "query.shape[-1]"
    Your weights are too flat: the scores are divided by d_head, not by its root. The variance of q·k is d_head: what is
    its standard deviation? (A root on the query and one on the key make two.)
mul_sqrt: "/ math.sqrt" -> "* math.sqrt"
    You multiply by √d_head, and the weights are far too sharp. The scale should shrink the scores.
scale_of_d_model: "math.sqrt(query.shape[-1])" -> "math.sqrt(query.shape[1] * query.shape[-1])"
    Your scores are half of what they should be. Is your scale computed from the width of one head, or from that of all
    four heads together?
scale_of_keys: "math.sqrt(query.shape[-1])" -> "math.sqrt(key.shape[-2])"
    You divide by the root of the number of keys. A score is a sum over features: whose number is its variance?
scale_of_value: "math.sqrt(query.shape[-1])" -> "math.sqrt(value.shape[-1])"
    You take the scale from the width of the values. They have no part in the scores: which two vectors are multiplied
    there, and how wide are they?
scale_after_softmax: " / math.sqrt(query.shape[-1])" -> "",
  "return weights" -> "return weights / math.sqrt(query.shape[-1])"
    You divide the weights by √d_head, not the scores: each row sums to 0.35. The scale belongs before the softmax,
    whose output should already sum to 1.
mask_after_softmax: "scores.masked_fill(~mask, -math.inf)" -> "scores",
  "return weights" -> "return (scores.softmax(dim=-1) * mask)"
or: "scores.masked_fill(~mask, -math.inf)" -> "scores",
  "return weights" -> "return (scores.softmax(dim=-1) * mask.float())"
    Hidden keys get no weight, but the rest of their row no longer sums to 1. Take the hidden scores out before you
    normalise.
masked_and_renormalised: "scores.masked_fill(~mask, -math.inf)" -> "scores",
  "return weights" ->
  "weights = scores.softmax(dim=-1) * mask\n    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)"
    Masking after the softmax and dividing again works until one hidden score is much the largest: then the visible
    weights underflow to 0 first. Hide before the softmax.
polarity: "~mask" -> "mask"
    You attend exactly to the keys that the mask hides. Here True means 'may attend'.
tiny_fill: "~mask, -math.inf" -> "~mask, -1e-9"
or: "scores.masked_fill(~mask, -math.inf)" -> "scores * mask"
or: "scores.masked_fill(~mask, -math.inf)" -> "scores * mask.float()"
    Hidden keys still get weight: their score is about 0, and exp(0) = 1. That is what a fill of 0 or −1e-9 does, and
    multiplying scores by the mask. What score makes exp exactly 0?
small_fill: "~mask, -math.inf" -> "~mask, -10.0"
or: "~mask, -math.inf" -> "~mask, -10.0", "return weights" -> "return (weights * mask.any(dim=-1, keepdim=True))"
    A little attention leaks to hidden keys, and the more the larger the scores are. −10 is not small beside your
    scores: what is smaller than every number?
fill_of_ten_thousand: "~mask, -math.inf" -> "~mask, -1e4",
  "return weights" -> "return (weights * mask.any(dim=-1, keepdim=True))"
    Hidden keys win where all that a query may see scores below −10,000, which float16 can hold. What is smaller than
    every number?
add_bool: "scores.masked_fill(~mask, -math.inf)" -> "scores + mask"
    You added the bool mask, which shifts scores by 1. It should take the hidden ones out of the softmax altogether:
    what must be added for that?
zero_times_inf: "scores.masked_fill(~mask, -math.inf)" -> "scores + ~mask * -math.inf"
or: "scores.masked_fill(~mask, -math.inf)" -> "scores + (~mask).to(scores.dtype) * -math.inf"
    Everything is NaN: 0 · ∞ is NaN, and your mask is multiplied by −∞. Choose between numbers (`masked_fill`,
    `torch.where`) instead of multiplying.
ignore_mask: "scores.masked_fill(~mask, -math.inf)" -> "scores"
    Your output is the same with and without the mask. Which step should use it?
causal_uninvited: "~mask" -> "~mask | torch.ones_like(scores).triu(key.shape[2] - query.shape[2] + 1).bool()"
    You hide the future although nobody asked for it. Whether attention is causal is for the mask to say.
mask_of_first_head: "~mask" -> "~mask[:, :1]"
    Every head gets the mask of the first one. Often the heads share a mask, whose second axis then has size one; here
    each may have its own. Which axes of the mask do you touch?
mask_by_index: "scores = scores.masked_fill(~mask, -math.inf)" -> "scores[~mask] = -math.inf"
    Your mask works only in full size. A padding mask has the axes `batch 1 1 keys` and cannot be used as an index;
    choose a way of hiding that broadcasts.
inplace_mask: "~mask" -> "mask.logical_not_()"
    Your answer is right but the mask you were given now says the opposite. Methods that end in an underscore edit the
    caller's tensor.
nan_dead: "return weights" -> "return scores.softmax(dim=-1)"
    Query 1 of the first sentence may attend to nothing: its softmax sees only −∞ and gives 0/0, NaN. We define its
    output as 0. Where could you catch such rows?
big_neg_uniform: "~mask, -math.inf" -> "~mask, -1e9"
or: "~mask, -math.inf" -> "~mask, torch.finfo(query.dtype).min"
    A query that may see nothing gets the average of all values from you: with one large negative number everywhere its
    scores are equal. It should get 0. (−1e9 does not fit a float16 either.)
big_neg_guarded: "~mask, -math.inf" -> "~mask, -1e9",
  "return weights" -> "return (weights * mask.any(dim=-1, keepdim=True))"
    Right in float32, an error in float16: −1e9 does not fit there. −∞ fits every dtype, as does
    `torch.finfo(dtype).min`.
nan_gradient: "scores.masked_fill(~mask" -> "scores + torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask",
  "return weights" -> "return torch.where(mask.any(dim=-1, keepdim=True), scores.softmax(dim=-1), 0.0)"
    Forward is right and backward is NaN: for rows without a key the NaN is hidden after the softmax, not avoided. Make
    their scores finite before it.
softmax_q: "dim=-1).masked" -> "dim=-2).masked"
or: "~mask, -math.inf" -> "~mask, -1e9", "return weights" -> "return scores.softmax(dim=-2)"
or: "return weights" -> "return scores.softmax(dim=-2)"
    You normalise over the queries. Each *query* distributes its weight over keys: which axis are they?
softmax_heads: "dim=-1).masked" -> "dim=1).masked"
or: "~mask, -math.inf" -> "~mask, -1e9", "return weights" -> "return scores.softmax(dim=1)"
or: "return weights" -> "return scores.softmax(dim=1)"
    You normalise over the heads, so that they compete for a key. Inside each head, each query distributes its weight
    over the keys.
softmax_twice: "return weights" -> "return weights.softmax(dim=-1)"
or: "scores.masked_fill(~mask" -> "scores.softmax(dim=-1).masked_fill(~mask"
    You take the softmax of weights that have been through one already: it makes them almost equal, since none is far
    from another any more. Once is enough.
no_softmax: "return weights" -> "return scores.masked_fill(~mask, 0.0)"
    Your weights are the raw scores: they are negative here and there, and their sum is anything. What makes shares of
    them?
sigmoid: "return weights" -> "return scores.sigmoid()"
    You judge every key by itself with a sigmoid. Keys should compete for a query's attention, which sums to 1.
hardmax: "return weights" -> "return ((scores == scores.amax(dim=-1, keepdim=True)) * mask.to(query.dtype))"
    Each query gets the value of its best key alone. Attention blends: the others keep a share, and with it a gradient.
unstable_softmax: "return weights" ->
  "powers = scores.exp()\n    return (powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-12))"
    Right for small scores, NaN for large ones: you exponentiate them as they are. Take the row's maximum off first, or
    use a softmax that does.
returns_weights: "weights @ value" -> "weights"
    This has the shape of the weights: its last axis is the keys. One step is missing: apply them to the values.
blends_keys: "weights @ value" -> "weights @ key"
    The result is as wide as a key: you blend the keys. They are there to be found; what a query receives is values.
qk_swapped: "query @ key.mT" -> "key @ query.mT"
    Rows of the score matrix should be queries and columns keys; yours are the other way round, which looks right only
    where there are as many of both.
merged_heads: "weights @ value" -> "(weights @ value).transpose(1, 2).flatten(-2)"
    The numbers are right but the heads are already merged. Here each head keeps its own axis, the second one.
casts_to_float32: "scores = query" ->
  "query, key, value = query.float(), key.float(), value.float()\n    scores = query"
    Inputs in float64 come back in float32. Keep the dtype that you are given: where do you name one, or make a tensor
    without asking for the input's?
detached: "query @ key.mT" -> "query.detach() @ key.detach().mT"
or: "weights @ value" -> "torch.from_numpy((weights @ value).detach().numpy())"
    The output is right, but no gradient reaches the query: with `.detach()`, `.numpy()`, `.item()` or `.data` something
    leaves autograd, and the projections before it can never learn.
inplace_q: "query @ key.mT / math.sqrt(query.shape[-1])" -> "query.div_(math.sqrt(query.shape[-1])) @ key.mT"
    Your answer is right but the query you were given has changed: the next call with it would be wrong. An operator
    such as `/=` edits the caller's tensor.
""")


@exercise.must_hold(
    "A key that the mask hides should get no weight at all. True means 'may attend'; hide before the softmax."
)
def hides_what_the_mask_hides(trial: Trial) -> str | None:
    """Look for weight on a key that the mask hides."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    leaked = weights.abs().masked_fill(mask | ~mask.any(dim=-1, keepdim=True), 0.0)
    if leaked.max() < 1e-6:
        return None
    batch, head, query, key = place_of_largest(leaked)
    return (
        f"In sentence {batch}, head {head}, query {query} gives key {key} the weight "
        f"{weights[batch, head, query, key].item():.2g}, although the mask hides it."
    )


@exercise.must_hold(
    "The weights of each query should sum to 1 over the keys it may see. Along which axis do you normalise, and does "
    "anything come between softmax and values?"
)
def weights_sum_to_one(trial: Trial) -> str | None:
    """Look at the sums of the rows that see something."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    sums = weights.sum(dim=-1)
    distance = (sums - 1).abs().masked_fill(~mask.any(dim=-1), 0.0)
    if distance.max() < 1e-3:
        return None
    batch, head, query = place_of_largest(distance)
    return (
        f"In sentence {batch}, head {head}, the weights of query {query} sum to {sums[batch, head, query].item():.3g}."
    )


@exercise.must_hold(
    "A query that may see no key should get zeros. What do your scores look like in such a row, and what does the "
    "softmax make of them?"
)
def nothing_from_nothing(trial: Trial) -> str | None:
    """Look at the rows that may see nothing."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    given = weights.abs().sum(dim=-1).masked_fill(mask.any(dim=-1), 0.0)
    if given.max() == 0:
        return None
    batch, head, query = place_of_largest(given)
    return f"In sentence {batch}, head {head}, query {query} may see nothing, yet gives out weight."


@exercise.must_hold(
    "Attention does not know in which order keys stand, as long as their values and the mask stand in the same. Does "
    "your code use an index where it should use the mask?"
)
def order_of_keys_is_free(trial: Trial) -> str | None:
    """Give keys, values and mask in another order: nothing may change."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    mask = mask.expand(*mask.shape[:-1], key.shape[-2])
    before = trial.run(query, key, value, mask)
    after = trial.run(query, key.flip(-2), value.flip(-2), mask.flip(-1))
    moved = (after - before).abs().max().item()
    scale = before.abs().max().item()
    return (
        None
        if moved <= 1e-3 * scale
        else f"With keys, values and mask in reverse order an output moves by {moved:.2g}."
    )


@exercise.must_hold(
    "Scores are products of query and key: what one gains the other may lose. Look at how you compare them."
)
def scores_are_products(trial: Trial) -> str | None:
    """Double the queries and halve the keys: every product stays as it is."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    before, after = trial.run(query, key, value, mask), trial.run(2 * query, key / 2, value, mask)
    moved = (after - before).abs().max().item()
    scale = before.abs().max().item()
    return (
        None if moved <= 1e-3 * scale else f"With queries twice and keys half as long an output moves by {moved:.2g}."
    )


@exercise.must_hold(
    "The products of query and key should be divided by √d_head, which keeps their spread the same at every width. "
    "What else do you multiply or divide?"
)
def scale(trial: Trial) -> str | None:
    """Read off the weights by what the products of query and key were divided."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    small = query / query.norm(dim=-1, keepdim=True), key / key.norm(dim=-1, keepdim=True), value, mask
    if (read := weights_of(Trial(run=trial.run, inputs=small, value=None))) is None:
        return None
    weights, mask = read
    if not mask.any() or (weights[mask] <= 0).any():
        return None
    products = small[0] @ small[1].mT
    centred = [_less_their_mean(rows, mask) for rows in (weights.log(), products)]
    slope = ((centred[0] * centred[1]).sum() / (centred[1] ** 2).sum()).item()
    right = query.shape[-1] ** -0.5
    return (
        None
        if abs(slope / right - 1) < 1e-2
        else f"Your scores are {slope / right:.2g} times as large as they should be."
    )
