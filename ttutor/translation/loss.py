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
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ttutor.shapes import check_shapes
from ttutor.translation.tokenizer import PAD_ID

CHUNK = 256
"""Positions whose logits stand in memory at one time; 256 rows of 10,000 words stay in a processor's cache."""


def smoothed_cross_entropy(
    logits: Float[Tensor, "positions vocab_size"],
    targets: Int[Tensor, " positions"],
    *,
    smoothing: float = 0.1,
    pad_id: int = PAD_ID,
) -> Float[Tensor, ""]:
    """Mean label-smoothed cross-entropy per real target token, in nats, written out from the definition.

    Raises:
        ShapeError: the two tensors differ in their positions.
        ValueError: smoothing is not in [0, 1), or every target is padding.

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
    smoothed[torch.arange(len(smoothed)), targets[real]] += 1 - smoothing
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


def projected_cross_entropy(
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
        targets: the token that each position shall predict.
        smoothing: the mass spread over all tokens.
        chunk: positions projected at one time; changes speed and memory, and the result only by rounding.

    Raises:
        ShapeError: the tensors differ in positions or width.
        ValueError: smoothing is not in [0, 1), there is no position, or `chunk` is below 1.

    Under autocast the products run in its lower precision and everything else in float32.

    >>> hidden, weight = torch.randn(5, 8), torch.randn(11, 8)
    >>> targets = torch.tensor([4, 5, 6, 7, 8])
    >>> at_once = smoothed_cross_entropy(hidden @ weight.T, targets)
    >>> torch.testing.assert_close(projected_cross_entropy(hidden, weight, targets), at_once)
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


class _ProjectedCrossEntropy(torch.autograd.Function):
    r"""Loss and gradients in one sweep; the gradient of the loss by the logits is $\mathrm{softmax}(z) - q$."""

    @staticmethod
    def forward(ctx, hidden, output_weight, targets, smoothing, chunk):
        device = hidden.device.type
        product_dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        with torch.autocast(device, enabled=False):
            hidden_low, weight_low = hidden.to(product_dtype), output_weight.to(product_dtype)
            grad_hidden = torch.empty_like(hidden_low)
            grad_weight = torch.zeros_like(output_weight)
            total = torch.zeros((), dtype=output_weight.dtype, device=hidden.device)
            for start in range(0, len(hidden), chunk):
                rows = slice(start, start + chunk)
                total += _chunk_loss(
                    hidden_low[rows], weight_low, targets[rows], smoothing, grad_hidden[rows], grad_weight
                )
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.hidden_dtype = hidden.dtype
        ctx.n_positions = len(hidden)
        return total / len(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        grad_hidden, grad_weight = ctx.saved_tensors
        scale = grad_loss / ctx.n_positions
        return (grad_hidden * scale).to(ctx.hidden_dtype), grad_weight * scale, None, None, None


def _chunk_loss(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, grad_hidden: Tensor, grad_weight: Tensor
) -> Tensor:
    """Summed loss of some positions; writes their gradient into `grad_hidden` and adds to `grad_weight`.

    The logits of one chunk are overwritten step by step: shifted logits, their exponentials, probabilities, gradient.
    """
    vocab_size, every = weight.shape[0], torch.arange(len(targets), device=targets.device)
    logits = nn.functional.linear(hidden, weight).to(grad_weight.dtype)
    expected = (1 - smoothing) * logits[every, targets] + smoothing * logits.mean(dim=-1)
    largest = logits.amax(dim=-1, keepdim=True)
    exponentials = logits.sub_(largest).exp_()
    normaliser = exponentials.sum(dim=-1, keepdim=True)
    loss = (normaliser.log() + largest).sum() - expected.sum()

    grad_logits = exponentials.mul_(1 / normaliser).sub_(smoothing / vocab_size)
    grad_logits[every, targets] -= 1 - smoothing
    grad_logits = grad_logits.to(hidden.dtype)
    grad_hidden.copy_(grad_logits @ weight)
    grad_weight += rearrange(grad_logits, "positions vocab_size -> vocab_size positions") @ hidden
    return loss
