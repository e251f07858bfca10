r"""A recurrence in RWKV's manner: a running weighted mean whose weights fade with time.

$$\mathrm{wkv}_t = \frac{\sum_{i<t} e^{-(t-1-i)w + k_i} \odot v_i + e^{u + k_t} \odot v_t}
                        {\sum_{i<t} e^{-(t-1-i)w + k_i} + e^{u + k_t}}$$

Peng et al. (2023), section 3. Each feature has its own decay $w \ge 0$ and its own bonus $u$ for the present token. A
loop with a small state computes it; so would a causal softmax over all pairs of tokens, without queries.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.shapes import check_shapes


class DecayState(NamedTuple):
    r"""What `decay_recurrent` remembers: both sums, divided by $e^m$, and $m$, the largest exponent met so far.

    All three are in float32 at least: in half precision the exponent would be rounded anew at every token.
    """

    weighted_sum: Float[Tensor, "batch d_model"]
    sum_of_weights: Float[Tensor, "batch d_model"]
    largest: Float[Tensor, "batch d_model"]


def decay_recurrent(
    key: Float[Tensor, "batch tokens d_model"],
    value: Float[Tensor, "batch tokens d_model"],
    decay: Float[Tensor, " d_model"],
    bonus: Float[Tensor, " d_model"],
    state: DecayState | None = None,
) -> tuple[Float[Tensor, "batch tokens d_model"], DecayState]:
    r"""The loop: constant memory, one step a token.

    Each exponential is taken relative to the largest exponent so far, as in the softmax, so that none overflows.
    Peng et al. (2023), appendix D.

    Args:
        key: $k$, how much each token's value counts, as a logarithm, feature by feature.
        value: $v$.
        decay: $w$, by how much the logarithm of every earlier weight falls at each step.
        bonus: $u$, added to the present token's key in its own step.
        state: of an earlier part of the same sequence; nothing came before when left out.

    Returns:
        The weighted mean at every token, and the state after the last.

    Example:
        >>> key, value = torch.zeros(1, 4, 1), torch.tensor([0.0, 2.0, 4.0, 6.0]).reshape(1, 4, 1)
        >>> mean, _ = decay_recurrent(key, value, torch.zeros(1), torch.zeros(1))  # no decay: the running mean
        >>> mean.flatten()
        tensor([0., 1., 2., 3.])
    """
    _check(key, value, decay, bonus)
    given = value.dtype
    exact = torch.promote_types(given, torch.float32)  # the exponents of all steps add up: so would their roundings
    key, value, decay, bonus = key.to(exact), value.to(exact), decay.to(exact), bonus.to(exact)
    if state is None:
        nothing = torch.zeros_like(value[:, 0])
        state = DecayState(nothing, nothing, torch.full_like(nothing, -torch.inf))
    weighted_sum, sum_of_weights, largest = state
    means = []
    for k, v in zip(key.unbind(dim=1), value.unbind(dim=1), strict=True):
        shift = torch.maximum(largest, k + bonus)
        past, present = torch.exp(largest - shift), torch.exp(k + bonus - shift)
        means.append((past * weighted_sum + present * v) / (past * sum_of_weights + present))
        shift = torch.maximum(largest - decay, k)
        past, present = torch.exp(largest - decay - shift), torch.exp(k - shift)
        weighted_sum, sum_of_weights = past * weighted_sum + present * v, past * sum_of_weights + present
        largest = shift
    mean = torch.stack(means, dim=1) if means else torch.zeros_like(value)  # of no tokens
    return mean.to(given), DecayState(weighted_sum, sum_of_weights, largest)


class DecayMixing(nn.Module):
    r"""RWKV's time mixing: a gated output of the decaying mean, with every token mixed with its predecessor first.

    $$r_t, k_t, v_t = \big(\mu \odot x_t + (1 - \mu) \odot x_{t-1}\big) W_{r,k,v}, \qquad
      y_t = \big(\sigma(r_t) \odot \mathrm{wkv}_t\big)\,W_o$$

    Peng et al. (2023), section 3; each of $r, k, v$ has its own $\mu$. There are no positions: the decay tells order.

    Args:
        d_model: width of what comes in and goes out.

    Differs from the paper: decays and $\mu$ start alike in every layer; the paper's starting values depend on depth.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.to_receptance = nn.Linear(d_model, d_model, bias=False)
        self.to_key = nn.Linear(d_model, d_model, bias=False)
        self.to_value = nn.Linear(d_model, d_model, bias=False)
        self.to_output = nn.Linear(d_model, d_model, bias=False)
        self.shares_of_now = nn.Parameter(torch.full((3, d_model), 0.5))
        self.log_decay = nn.Parameter(torch.linspace(-5.0, 3.0, d_model))  # w = exp(log_decay) stays positive
        self.bonus = nn.Parameter(torch.zeros(d_model))

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Mix each token with all that came before it."""
        check_shapes({"d_model": self.d_model}, hidden=(hidden, "batch tokens d_model"))
        previous = nn.functional.pad(hidden[:, :-1], (0, 0, 1, 0))  # torch counts axes from the last
        receptance, key, value = (
            project(share * hidden + (1 - share) * previous)
            for project, share in zip((self.to_receptance, self.to_key, self.to_value), self.shares_of_now, strict=True)
        )
        mean, _ = decay_recurrent(key, value, self.log_decay.exp(), self.bonus)
        return self.to_output(torch.sigmoid(receptance) * mean)


def _check(key: Tensor, value: Tensor, decay: Tensor, bonus: Tensor) -> None:
    axes = "batch tokens d_model"
    check_shapes(key=(key, axes), value=(value, axes), decay=(decay, "d_model"), bonus=(bonus, "d_model"))
