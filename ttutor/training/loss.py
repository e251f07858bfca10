r"""The training loss: cross-entropy with label smoothing, in a version to read and a version to run.

The target distribution $q$ gives the right token $1 - \epsilon$ and spreads $\epsilon$ evenly over all $V$ tokens,
the right one included (Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 with $\epsilon = 0.1$):

$$q_v = (1 - \epsilon)\,[v = y] + \epsilon / V, \qquad L = -\sum_v q_v \log p_v$$

The mean runs over real target tokens; padding never counts. Where the smoothing is positive, no model can bring the
loss to zero: its floor is the entropy of $q$.
"""

import math

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from ttutor.masks import padding_mask
from ttutor.shapes import check_shapes
from ttutor.tokenization import PAD_ID
from ttutor.training.batching import Batch
from ttutor.transformer import Transformer

CHUNK = 128
"""Positions whose logits stand in memory at one time; 128 rows of 10,000 words stay in a processor's cache."""

BLOCK = 8
"""Chunks whose probabilities are gathered before they are multiplied with the hidden states, in one large product."""


def smoothed_cross_entropy(
    logits: Float[Tensor, "positions vocab_size"],
    targets: Int[Tensor, " positions"],
    *,
    smoothing: float = 0.1,
    pad_id: int = PAD_ID,
) -> Float[Tensor, ""]:
    """Mean label-smoothed cross-entropy per real target token, in nats, written out from the definition.

    >>> loss = smoothed_cross_entropy(torch.zeros(3, 4), torch.tensor([1, 2, 0]), smoothing=0.1)
    >>> round(loss.item(), 4) == round(math.log(4), 4)  # a uniform guess among 4 tokens
    True
    """
    check_shapes(logits=(logits, "positions vocab_size"), targets=(targets, "positions"))
    _check_smoothing(smoothing)
    real = targets != pad_id
    if not real.any():
        raise ValueError(
            f"every one of the {len(targets)} targets is padding (id {pad_id}): there is no loss to average"
        )
    log_probabilities = logits[real].log_softmax(dim=-1)
    smoothed = torch.full_like(log_probabilities, smoothing / logits.shape[-1])
    smoothed[torch.arange(len(smoothed), device=targets.device), targets[real]] += 1 - smoothing
    return -einsum(smoothed, log_probabilities, "positions vocab_size, positions vocab_size -> positions").mean()


def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """The smallest loss that any model can reach, in nats: the entropy of the smoothed target.

    >>> round(smoothing_floor(37_000, 0.1), 3)
    1.377
    """
    _check_smoothing(smoothing)
    if smoothing == 0:
        return 0.0
    right, other = 1 - smoothing + smoothing / vocab_size, smoothing / vocab_size
    return -right * math.log(right) - (vocab_size - 1) * other * math.log(other)


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")


def chunked_linear_cross_entropy(
    hidden: Float[Tensor, "positions d_model"],
    output_weight: Float[Tensor, "vocab_size d_model"],
    targets: Int[Tensor, " positions"],
    *,
    smoothing: float = 0.1,
    chunk: int = CHUNK,
) -> Float[Tensor, ""]:
    """The same loss straight from the decoder's hidden states, without ever holding all logits: the version to run.

    Projects a few hundred positions at a time and, while their logits are in the cache, computes the gradient too.
    4,096 positions times 10,000 words would be 160 MB of logits, and as much again for the gradient.

    Args:
        hidden: states of real target positions only.
        output_weight: the projection to the vocabulary; logits are hidden times its transpose, without a bias.
        targets: the token that each position must predict.
        smoothing: the mass spread over all tokens.
        chunk: positions projected at one time; changes speed and memory, and the result only by rounding.

    Under autocast the products run in its lower precision and everything else in float32.

    >>> hidden, weight = torch.randn(5, 8), torch.randn(11, 8)
    >>> targets = torch.tensor([4, 5, 6, 7, 8])
    >>> at_once = smoothed_cross_entropy(hidden @ weight.T, targets)
    >>> torch.testing.assert_close(chunked_linear_cross_entropy(hidden, weight, targets), at_once)
    """
    check_shapes(
        hidden=(hidden, "positions d_model"),
        output_weight=(output_weight, "vocab_size d_model"),
        targets=(targets, "positions"),
    )
    _check_smoothing(smoothing)
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1 position, got {chunk}")
    if len(targets) == 0:
        raise ValueError(f"every one of the 0 targets is padding (id {PAD_ID}): there is no loss to average")
    return _ProjectedCrossEntropy.apply(hidden, output_weight, targets, smoothing, chunk)


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Float[Tensor, ""]:
    """What the translator learns by; only real positions are projected to the vocabulary."""
    memory = model.encode(batch.source)
    hidden = model.decode(batch.target_in, memory, padding_mask(batch.source, PAD_ID))
    real = batch.target_out != PAD_ID
    return chunked_linear_cross_entropy(
        hidden[real], model.to_logits.weight, batch.target_out[real], smoothing=smoothing
    )


class _ProjectedCrossEntropy(torch.autograd.Function):
    r"""Loss and gradients in one sweep.

    The gradient of the loss by the logits is $p - q$. The three parts of $q$ are the same for every position, or touch
    one token of it, so only $p$ has to pass through the large products:

    $$\frac{\partial L}{\partial h} = p\,W - \epsilon\,\overline{W} - (1 - \epsilon)\,W_y$$
    """

    @staticmethod
    def forward(ctx, hidden, output_weight, targets, smoothing, chunk):
        device = hidden.device.type
        product_dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        with torch.autocast(device, enabled=False):
            loss, grad_hidden, grad_weight = _loss_and_gradients(
                hidden.to(product_dtype), output_weight.to(product_dtype), targets, smoothing, chunk
            )
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.dtypes = hidden.dtype, output_weight.dtype
        ctx.n_positions = len(hidden)
        return (loss / len(hidden)).to(output_weight.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        hidden_dtype, weight_dtype = ctx.dtypes
        grad_hidden, grad_weight = ctx.saved_tensors
        scale = grad_loss / ctx.n_positions
        return (grad_hidden * scale).to(hidden_dtype), (grad_weight * scale).to(weight_dtype), None, None, None


def _loss_and_gradients(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, chunk: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The summed loss, and its gradients by hidden states and weight, in float32 or wider.

    Both parts of $p - q$ meet the same rounded numbers, or they would not cancel where the model is right.
    """
    exact = torch.promote_types(hidden.dtype, torch.float32)
    log_normaliser, grad_hidden, grad_weight = _through_the_softmax(hidden, weight, chunk, exact)
    hidden, weight = hidden.to(exact), weight.to(exact)
    wanted = smoothing * weight.mean(dim=0) + (1 - smoothing) * weight[targets]
    grad_hidden -= wanted
    grad_weight -= smoothing / len(weight) * hidden.sum(dim=0)
    grad_weight.index_add_(0, targets, hidden, alpha=smoothing - 1)
    expected = einsum(hidden, wanted, "positions d_model, positions d_model ->")
    return log_normaliser.sum() - expected, grad_hidden, grad_weight


def _through_the_softmax(
    hidden: Tensor, weight: Tensor, chunk: int, exact: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Each position's logarithm of the softmax's denominator, and the summed one's gradients, which are sums of p."""
    (n_positions, d_model), vocab_size, block = hidden.shape, len(weight), BLOCK * chunk
    log_normaliser = hidden.new_empty(n_positions, dtype=exact)
    grad_hidden = hidden.new_empty(n_positions, d_model, dtype=exact)
    grad_weight = hidden.new_zeros(vocab_size, d_model, dtype=exact)
    logits = hidden.new_empty(min(chunk, n_positions), vocab_size)
    probabilities = hidden.new_empty(min(block, n_positions), vocab_size)
    transposed = rearrange(weight, "vocab_size d_model -> d_model vocab_size")
    for start in range(0, n_positions, block):
        end = min(start + block, n_positions)
        for first in range(start, end, chunk):
            rows = slice(first, min(first + chunk, end))
            z = torch.mm(hidden[rows], transposed, out=logits[: rows.stop - first])
            p = torch.softmax(z, dim=-1, out=probabilities[first - start : rows.stop - start])
            grad_hidden[rows] = p @ weight
            log_normaliser[rows] = z.amax(dim=-1).to(exact) - p.amax(dim=-1).to(exact).log()
        p = rearrange(probabilities[: end - start], "positions vocab_size -> vocab_size positions")
        grad_weight += p @ hidden[start:end]
    return log_normaliser, grad_hidden, grad_weight
