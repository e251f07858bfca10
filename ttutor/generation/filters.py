r"""Filters: from one next-token distribution to another, before a token is drawn from it.

Each takes natural logarithms of probabilities and gives such logarithms, renormalised over what is left:

$$p'_i = \frac{w_i\,p_i}{\sum_j w_j\,p_j}$$

with $w_i$ either 0 or 1 (`top_k_only`, `top_p_only`, `min_p_only`); `with_temperature` bends all of them instead. They
compose, and the order matters: top-p after a temperature cuts another distribution than before it.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional


def renormalised(
    log_probabilities: Float[Tensor, "... vocab_size"], is_dropped: Bool[Tensor, "... vocab_size"]
) -> Float[Tensor, "... vocab_size"]:
    """Give the tokens that are dropped probability zero, and their share to the others."""
    return log_probabilities.masked_fill(is_dropped, -math.inf).log_softmax(dim=-1)


def with_temperature(
    log_probabilities: Float[Tensor, "... vocab_size"], temperature: float
) -> Float[Tensor, "... vocab_size"]:
    r"""Sharpen the distribution (below 1) or flatten it (above 1).

    $$p'_i \propto p_i^{1/\tau}$$

    Ackley, Hinton and Sejnowski (1985), section 2. Towards $\tau = 0$ all probability goes to the best token, towards
    infinity it is shared evenly among those that had any.

    Raises:
        ValueError: the temperature is not positive and finite; 0 would be no distribution but a choice, which
            `greedy_search` makes.

    Example:
        >>> import torch
        >>> with_temperature(torch.tensor([0.8, 0.2]).log(), 0.5).exp()  # 0.64 to 0.04
        tensor([0.9412, 0.0588])
    """
    if temperature == 0:
        raise ValueError("temperature 0 means to take the best token always: use greedy_search, which draws nothing")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, but is {temperature}")
    # Relative to the best token, whose quotient stays 0 however small the temperature; a dtype's own limits bound both.
    limits = torch.finfo(log_probabilities.dtype)
    behind = log_probabilities - log_probabilities.amax(dim=-1, keepdim=True)
    return (behind / min(max(temperature, limits.tiny), limits.max)).log_softmax(dim=-1)


def top_k_only(log_probabilities: Float[Tensor, "... vocab_size"], k: int) -> Float[Tensor, "... vocab_size"]:
    r"""Keep the ``k`` most probable tokens.

    $$w_i = [\,p_i \ge p_{(k)}\,]$$

    with $p_{(k)}$ the ``k``-th largest probability. Fan, Lewis and Dauphin (2018), section 5.4 (there with $k = 10$).
    Tokens exactly as probable as the ``k``-th are all kept, so that no order of ids decides. With ``k`` at or above the
    size of the vocabulary nothing is dropped.

    Example:
        >>> import torch
        >>> top_k_only(torch.tensor([0.5, 0.1, 0.3, 0.1]).log(), 2).exp()
        tensor([0.6250, 0.0000, 0.3750, 0.0000])
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, or no token is left, but is {k}")
    best = log_probabilities.topk(min(k, log_probabilities.shape[-1]), dim=-1).values
    return renormalised(log_probabilities, log_probabilities < best[..., -1:])


def top_p_only(log_probabilities: Float[Tensor, "... vocab_size"], p: float) -> Float[Tensor, "... vocab_size"]:
    r"""Keep the nucleus: the smallest set of most probable tokens that together have probability ``p`` or more.

    $$w_i = \Big[\sum_{j \text{ before } i} p_j < p\Big]$$

    with the tokens in order of falling probability. Holtzman et al. (2020), section 3.1. The token that crosses the
    threshold belongs to the nucleus, so the best one is always kept; where the sum meets the threshold exactly, the
    next token is out. Of tokens exactly as probable as each other the lower ids come first. ``p=1`` keeps everything.

    Example:
        >>> import torch
        >>> top_p_only(torch.tensor([0.1, 0.5, 0.1, 0.3]).log(), 0.7).exp()
        tensor([0.0000, 0.6250, 0.0000, 0.3750])
    """
    if not 0 < p <= 1:
        raise ValueError(f"top-p's p must be above 0 and at most 1, but is {p}")
    if p == 1:  # not left to the sum, whose rounding could drop the rarest tokens
        return log_probabilities.log_softmax(dim=-1)
    ranked, order = log_probabilities.sort(dim=-1, descending=True, stable=True)
    sum_before = functional.pad(ranked.softmax(dim=-1).cumsum(dim=-1)[..., :-1], (1, 0))
    p = max(p, torch.finfo(sum_before.dtype).tiny)  # or the best token, before which the sum is 0, could go too
    is_dropped = (sum_before >= p).gather(-1, order.argsort(dim=-1))  # back to the order of ids
    return renormalised(log_probabilities, is_dropped)


def min_p_only(log_probabilities: Float[Tensor, "... vocab_size"], p: float) -> Float[Tensor, "... vocab_size"]:
    r"""Keep the tokens that are at least ``p`` times as probable as the best one.

    $$w_i = [\,p_i \ge p \cdot \max_j p_j\,]$$

    Nguyen et al. (2024), section 3. A sure model keeps few tokens, an unsure one many.

    Example:
        >>> import torch
        >>> min_p_only(torch.tensor([0.5, 0.1, 0.25, 0.15]).log(), 0.5).exp()
        tensor([0.6667, 0.0000, 0.3333, 0.0000])
    """
    if not 0 < p <= 1:
        raise ValueError(f"p must be above 0 and at most 1, but is {p}")
    probabilities = log_probabilities.softmax(dim=-1)
    return renormalised(log_probabilities, probabilities < p * probabilities.amax(dim=-1, keepdim=True))
