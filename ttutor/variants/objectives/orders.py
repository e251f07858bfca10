"""Orders of prediction: tokens in any order at all."""

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.shapes import check_shapes


class PermutationMasks(NamedTuple):
    """Who may look at whom when tokens are predicted in some other order; True = may attend.

    Attributes:
        content: at itself and at what came earlier in the order, for the stream that knows its own token.
        query: only at what came earlier, for the stream that must predict its own token.
    """

    content: Bool[Tensor, "batch 1 queries keys"]
    query: Bool[Tensor, "batch 1 queries keys"]


def factorisation_order(n_rows: int, n_tokens: int, *, generator: torch.Generator) -> Int[Tensor, "batch tokens"]:
    """A random order for each row: entry t is the position that comes as the t-th.

    Example:
        >>> order = factorisation_order(2, 5, generator=torch.Generator().manual_seed(0))
        >>> order.sort(dim=-1).values.tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    return torch.rand(n_rows, n_tokens, generator=generator, device=generator.device).argsort(dim=-1)


def permutation_masks(order: Int[Tensor, "batch tokens"]) -> PermutationMasks:
    r"""Predict the tokens in a given order, without moving any: only what may be seen changes.

    $$\log p_z(x) = \sum_t \log p(x_{z_t} \mid x_{z_{<t}})$$

    Yang et al. (2019), equations 3 and 4 and figure 1. Two streams run side by side. The *query* stream of a position
    knows the position but not its token, since that is what it must predict; the *content* stream knows both, for the
    use of those that come later. Keys and values are the content stream's in both. The first position in the order may
    look at nothing, and its query receives zeros.

    Args:
        order: for each row, its positions in the order of prediction, as `factorisation_order` gives them.

    Example:
        >>> content, query = permutation_masks(torch.tensor([[2, 0, 1]]))
        >>> content.int()[0, 0]
        tensor([[1, 0, 1],
                [1, 1, 1],
                [0, 0, 1]], dtype=torch.int32)
        >>> query.int()[0, 0]
        tensor([[0, 0, 1],
                [1, 0, 1],
                [0, 0, 0]], dtype=torch.int32)
    """
    check_shapes(order=(order, "batch tokens"))
    in_place, step = order.sort(dim=-1)  # sorting a permutation gives its inverse: when each position's turn comes
    if (in_place != torch.arange(order.shape[-1], device=order.device)).any():
        raise ValueError(
            f"every row must hold each position from 0 to {order.shape[-1] - 1} once, but came {order.tolist()}"
        )
    turn_of_query = rearrange(step, "batch queries -> batch 1 queries 1")
    turn_of_key = rearrange(step, "batch keys -> batch 1 1 keys")
    return PermutationMasks(turn_of_key <= turn_of_query, turn_of_key < turn_of_query)
