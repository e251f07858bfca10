"""ALiBi: the farther a key, the lower its score, by a slope of each head's own."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.names import Answering
from ttutor.shapes import check_shapes


def alibi_slopes(n_heads: int) -> Float[Tensor, " heads"]:
    r"""The slope of each head, a geometric sequence: $m_a = 2^{-8a/h}$ for heads $a = 1, \dots, h$.

    Press et al. (2022), section 3. Where $n$ is no power of two, the authors' code takes the sequence of the largest
    power of two below $n$, and then every other slope of the sequence of twice as many heads; so do we.

    Args:
        n_heads: $n$, the number of heads.

    Example:
        >>> alibi_slopes(4)
        tensor([0.2500, 0.0625, 0.0156, 0.0039])
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be at least 1, but is {n_heads}")
    whole = 2 ** int(math.log2(n_heads))
    slopes = [2.0 ** (-8 * i / whole) for i in range(1, whole + 1)]
    finer = [2.0 ** (-8 * i / (2 * whole)) for i in range(1, 2 * whole + 1, 2)]
    return torch.tensor(slopes + finer[: n_heads - whole], dtype=torch.float32, device="cpu")


class AlibiPositions(Answering, nn.Module):
    r"""Attention with linear biases: $b_{aij} = -m_a \, |p_i - p_j|$, added to the scaled scores.

    Here $p_i$ and $p_j$ are the positions of query and key, and $m_a$ is the slope of the head (`alibi_slopes`). Press
    et al. (2022), section 3. Nothing is learned, and the same rule serves distances never seen in training: the paper's
    aim is to run a model on longer texts than it was trained on.

    Differs from the paper: there the model is causal and no key lies ahead; we take the distance without its sign, so
    that it serves an encoder too.

    Args:
        n_heads: number of heads.

    Example:
        >>> positions = torch.tensor([[0, 1, 2]])
        >>> AlibiPositions(n_heads=8)(positions, positions)[0, 0]
        tensor([[ 0.0000, -0.5000, -1.0000],
                [-0.5000,  0.0000, -0.5000],
                [-1.0000, -0.5000,  0.0000]])
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.slopes = alibi_slopes(n_heads)  # no buffer, as in SinusoidalPositions

    def forward(
        self, query_positions: Int[Tensor, "batch queries"], key_positions: Int[Tensor, "batch keys"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The bias of each score, in float32."""
        check_shapes(query_positions=(query_positions, "batch queries"), key_positions=(key_positions, "batch keys"))
        distance = (
            rearrange(query_positions, "batch queries -> batch 1 queries 1")
            - rearrange(key_positions, "batch keys -> batch 1 1 keys")
        ).abs()
        return rearrange(self.slopes.to(distance.device), "heads -> 1 heads 1 1") * -distance
