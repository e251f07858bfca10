"""The recurrence that need not be sequential: linear steps compose, so a whole sequence takes a few parallel rounds."""

from jaxtyping import Float
from torch import Tensor, nn

from ttutor.shapes import check_shapes


def linear_scan(
    factor: Float[Tensor, "batch tokens d_model"], inputs: Float[Tensor, "batch tokens d_model"]
) -> tuple[Float[Tensor, "batch tokens d_model"], int]:
    r"""Solve $h_t = a_t \odot h_{t-1} + b_t$ (with nothing before the first token) in $\lceil \log_2 T \rceil$ rounds.

    The step $(a_1, b_1)$ and after it $(a_2, b_2)$ are together the step $(a_2 a_1,\; a_2 b_1 + b_2)$. So in each round
    every token joins the steps it has covered with those of the token that stands as far back as they reach, and covers
    twice as many. All tokens do so at once. Hillis and Steele (1986); for recurrences, Blelloch (1990), section 1.4.

    Args:
        factor: $a_t$, what remains of the state at each step.
        inputs: $b_t$, what is added.

    Returns:
        $h_t$ for every token, and how many rounds it took.

    Example:
        >>> import torch
        >>> half, ones = torch.full((1, 5, 1), 0.5), torch.ones(1, 5, 1)
        >>> hidden, n_rounds = linear_scan(half, ones)
        >>> hidden.flatten(), n_rounds
        (tensor([1.0000, 1.5000, 1.7500, 1.8750, 1.9375]), 3)
    """
    check_shapes(factor=(factor, "batch tokens d_model"), inputs=(inputs, "batch tokens d_model"))
    hidden, covered, n_rounds = inputs, 1, 0
    while covered < inputs.shape[1]:
        hidden = hidden + factor * _earlier(hidden, covered)
        factor = factor * _earlier(factor, covered)
        covered, n_rounds = 2 * covered, n_rounds + 1
    return hidden, n_rounds


def _earlier(tensor: Float[Tensor, "batch tokens d_model"], distance: int) -> Float[Tensor, "batch tokens d_model"]:
    """What stood this many tokens earlier, and zeros where there was no token yet."""
    kept = tensor[:, : tensor.shape[1] - distance]
    return nn.functional.pad(kept, (0, 0, distance, 0))  # torch counts axes from the last: features, tokens
