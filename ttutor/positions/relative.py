"""A learned number for each distance, with one bucket for many far distances, as in T5."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.shapes import check_shapes


def relative_bucket(
    offset: Int[Tensor, "..."], *, n_buckets: int = 32, max_distance: int = 128, is_bidirectional: bool = True
) -> Int[Tensor, "..."]:
    r"""Sort offsets (key position minus query position) into buckets: near ones apart, far ones together.

    $$\mathrm{bucket}(n) = \begin{cases} n & n < e \\
      \min\!\Big(b - 1,\; e + \Big\lfloor (b - e)\, \frac{\ln(n/e)}{\ln(m/e)} \Big\rfloor\Big) & n \ge e \end{cases}$$

    for a distance of $n$ tokens, with $b$ buckets on this side, $e = b/2$ of them exact, and $m$ the ``max_distance``:
    the exact buckets hold one distance each, the others grow in width up to $m$, from which on all share the last.

    Raffel et al. (2020), section 2.1, tell it in words; the formula is that of their code.

    Args:
        offset: key position minus query position.
        n_buckets: how many buckets there are, both sides together.
        max_distance: $m$.
        is_bidirectional: whether keys ahead of the query have the second half of the buckets for themselves; otherwise
            they fall into bucket 0, where a causal mask hides them.

    Example:
        >>> relative_bucket(torch.tensor([0, -1, -2, -20, -100, -500]), is_bidirectional=False)
        tensor([ 0,  1,  2, 17, 30, 31])
    """
    per_side = n_buckets // 2 if is_bidirectional else n_buckets
    n_exact = per_side // 2
    if n_exact < 1 or max_distance <= n_exact:
        raise ValueError(
            f"n_buckets must be at least {4 if is_bidirectional else 2} and max_distance above {max(n_exact, 1)}, "
            f"but n_buckets={n_buckets} and max_distance={max_distance}"
        )
    distance = offset.abs() if is_bidirectional else (-offset).clamp(min=0)
    # In float32, as the published models were trained: in float64 a few distances would fall into the next bucket.
    logarithm = (distance.clamp(min=1).float() / n_exact).log() / math.log(max_distance / n_exact)
    far = (n_exact + (logarithm * (per_side - n_exact)).long()).clamp(max=per_side - 1)
    bucket = torch.where(distance < n_exact, distance, far)
    return bucket + (offset > 0) * per_side if is_bidirectional else bucket


class RelativePositions(nn.Module):
    r"""A learned bias for each head and bucket of distances: $b_{hij} = T_{h,\,\mathrm{bucket}(p_j - p_i)}$.

    Raffel et al. (2020), section 2.1. All layers of a stack share one table.

    Args:
        n_heads: number of heads.
        n_buckets, max_distance, is_bidirectional: as for `relative_bucket`.
    """

    def __init__(
        self, n_heads: int, *, n_buckets: int = 32, max_distance: int = 128, is_bidirectional: bool = True
    ) -> None:
        super().__init__()
        self.n_buckets, self.max_distance, self.is_bidirectional = n_buckets, max_distance, is_bidirectional
        self.bucket(torch.tensor(0))  # complains now, not at the first call, if the sizes do not fit
        self.table = nn.Embedding(n_buckets, n_heads)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(
        self, query_positions: Int[Tensor, "batch queries"], key_positions: Int[Tensor, "batch keys"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """The bias of each score."""
        check_shapes(query_positions=(query_positions, "batch queries"), key_positions=(key_positions, "batch keys"))
        offset = rearrange(key_positions, "batch keys -> batch 1 keys") - rearrange(
            query_positions, "batch queries -> batch queries 1"
        )
        return rearrange(self.table(self.bucket(offset)), "batch queries keys heads -> batch heads queries keys")

    def bucket(self, offset: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The bucket of each offset, by this module's sizes."""
        return relative_bucket(
            offset,
            n_buckets=self.n_buckets,
            max_distance=self.max_distance,
            is_bidirectional=self.is_bidirectional,
        )
