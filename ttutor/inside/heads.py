r"""What does a head look at? Numbers that describe attention weights, one for each head.

All but two are one number: the mean, over the queries, of the weight that falls on the keys of interest,

$$\mathrm{score} = \frac{1}{|Q|} \sum_{i \in Q} \sum_{j} A_{ij}\,[\,j \text{ is of interest to } i\,],$$

where queries without any such key do not count. Weights have the axes ``batch heads queries keys``, with any axes
before them, such as ``layers``.
"""

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.shapes import check_shapes

SquareWeights = Float[Tensor, "... batch heads tokens tokens"]


def weight_on(
    weights: Float[Tensor, "... batch heads queries keys"], wanted: Bool[Tensor, "batch queries keys"]
) -> Float[Tensor, "... heads"]:
    """The mean weight that each head puts on the wanted keys; queries that want no key do not count.

    Args:
        weights: attention weights.
        wanted: for each query, the keys of interest. With ``token_ids == sep_id``, say, repeated for each query, it is
            how much goes to separators (Clark et al. 2019, section 3.2).

    Example:
        >>> weights = torch.tensor([[[[1.0, 0.0], [0.4, 0.6]]]])
        >>> weight_on(weights, torch.tensor([[[False, False], [True, False]]]))
        tensor([0.4000])
    """
    check_shapes(weights=(weights, "... batch heads queries keys"), wanted=(wanted, "batch queries keys"))
    landed = einsum(
        weights, wanted.to(weights.dtype), "... batch heads queries keys, batch queries keys -> ... batch heads queries"
    )
    return _mean_over_queries(landed, wanted.any(dim=-1))


def previous_token_score(weights: SquareWeights) -> Float[Tensor, "... heads"]:
    """How much each head looks at the token before: one part of an induction circuit (Elhage et al. 2021).

    Example:
        >>> previous_token_score(torch.eye(5).roll(-1, dims=1).expand(1, 1, 5, 5))
        tensor([1.])
    """
    position = _positions(weights)
    wanted = rearrange(position, "queries -> queries 1") - 1 == position
    return weight_on(weights, wanted.expand(weights.shape[-4], *wanted.shape))


def induction_score(weights: SquareWeights, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "... heads"]:
    """How much each head looks at what came after the current token when it occurred before.

    In ``A B ... A`` the query is the second ``A`` and the wanted key is ``B``: a model that looks there can copy what
    it finds. Olsson et al. (2022) call it prefix matching and measure it on random tokens that repeat.
    """
    check_shapes(weights=(weights, "... batch heads tokens tokens"), token_ids=(token_ids, "batch tokens"))
    position = _positions(weights)
    before = token_ids.roll(1, dims=1)  # the token in front of each key; the first key has none
    same = rearrange(token_ids, "batch queries -> batch queries 1") == rearrange(before, "batch keys -> batch 1 keys")
    earlier = (position <= rearrange(position, "queries -> queries 1")) & (position > 0)
    return weight_on(weights, same & earlier)


def first_token_score(
    weights: SquareWeights, is_real: Bool[Tensor, "batch tokens"] | None = None
) -> Float[Tensor, "... heads"]:
    """How much each head looks at the first token, where heads with nothing to do often rest.

    Xiao et al. (2024) call it an attention sink; Clark et al. (2019) found the same for [SEP]. The first query counts
    too; in a causal model it has no choice and adds ``1 / tokens``.
    """
    position = _positions(weights)
    if is_real is None:
        return weight_on(weights, (position == 0).expand(weights.shape[-4], len(position), -1))
    check_shapes(weights=(weights, "... batch heads tokens tokens"), is_real=(is_real, "batch tokens"))
    first = is_real & (is_real.cumsum(dim=-1) == 1)  # the first real token of each row, wherever the padding stands
    wanted = rearrange(first, "batch keys -> batch 1 keys") & rearrange(is_real, "batch queries -> batch queries 1")
    return weight_on(weights, wanted)


def attention_entropy(
    weights: Float[Tensor, "... batch heads queries keys"], is_real: Bool[Tensor, "batch queries"] | None = None
) -> Float[Tensor, "... heads"]:
    r"""How spread out each head looks: the mean of $-\sum_j A_{ij} \ln A_{ij}$ over the queries, in nats.

    Zero if all weight is on one key, $\ln n$ if it is even over $n$; $e^H$ is an effective number of keys.

    Args:
        weights: attention weights, of cross-attention too.
        is_real: which queries count; all when left out.

    Example:
        >>> attention_entropy(torch.full((1, 1, 3, 4), 0.25)).exp()
        tensor([4.])
    """
    return _mean_over_queries(torch.special.entr(weights).sum(dim=-1), _counted(weights, is_real))


def attention_distance(weights: SquareWeights) -> Float[Tensor, "... heads"]:
    r"""How far each head looks, in tokens: the mean of $\sum_j A_{ij} |i - j|$ over the queries.

    Dosovitskiy et al. (2021), section 4.5, measure it for the patches of an image.

    Example:
        >>> attention_distance(torch.full((1, 1, 3, 3), 1 / 3))  # (1 + 2 + 1 + 1 + 2 + 1) / 9
        tensor([0.8889])
    """
    position = _positions(weights)
    distance = (rearrange(position, "queries -> queries 1") - position).abs().to(weights.dtype)
    travelled = einsum(weights, distance, "... queries keys, queries keys -> ... queries")
    return _mean_over_queries(travelled, _counted(weights, None))


def _positions(weights: Tensor) -> Int[Tensor, " tokens"]:
    """The positions 0, 1, 2, ... of the tokens, once it is certain that queries and keys are the same tokens."""
    check_shapes(weights=(weights, "... batch heads tokens tokens"))
    return torch.arange(weights.shape[-1], device=weights.device)


def _counted(weights: Tensor, is_real: Bool[Tensor, "batch queries"] | None) -> Bool[Tensor, "batch queries"]:
    check_shapes(weights=(weights, "... batch heads queries keys"))
    if is_real is None:
        return weights.new_ones(weights.shape[-4], weights.shape[-2], dtype=torch.bool)
    check_shapes(weights=(weights, "... batch heads queries keys"), is_real=(is_real, "batch queries"))
    return is_real


def _mean_over_queries(
    values: Float[Tensor, "... batch heads queries"], counted: Bool[Tensor, "batch queries"]
) -> Float[Tensor, "... heads"]:
    if not counted.any():
        raise ValueError("there is nothing to average: no query counts, or none has a key of the wanted kind")
    kept = torch.where(rearrange(counted, "batch queries -> batch 1 queries"), values, 0.0)
    return reduce(kept, "... batch heads queries -> ... heads", "sum") / counted.sum()
