"""Attention rollout: follow the weights through all layers, from the last tokens down to the input."""

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.shapes import check_shapes


def attention_rollout(
    weights: Float[Tensor, "layers batch heads tokens tokens"],
) -> Float[Tensor, "batch tokens tokens"]:
    r"""How much of each input token reaches each output token, if layers did nothing but blend tokens.

    $$\tilde A = \tilde A_L \cdots \tilde A_2 \tilde A_1, \qquad \tilde A_l = \tfrac12 \bar A_l + \tfrac12 I$$

    with $\bar A_l$ the weights of layer $l$, averaged over its heads; the $I$ is the residual connection. Abnar and
    Zuidema (2020), section 3. Rows are outputs, columns inputs; where the weights of every row sum to one, so do the
    rows of the result. It is a heuristic: values, the feed-forward networks and the norms are left out.

    Args:
        weights: of all layers, the first layer first, as ``capture(...).stack()`` gives them.

    Example:
        >>> uniform = torch.full((1, 1, 2, 4, 4), 0.25)
        >>> attention_rollout(uniform)[0, 0]
        tensor([0.6250, 0.1250, 0.1250, 0.1250])
    """
    check_shapes(weights=(weights, "layers batch heads tokens tokens"))
    stay = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    blended = reduce(weights, "layers batch heads tokens keys -> layers batch tokens keys", "mean")
    rolled = stay.expand_as(blended[0])
    for layer in (blended + stay) / 2:
        rolled = einsum(layer, rolled, "batch tokens between, batch between inputs -> batch tokens inputs")
    return rolled
