r"""What today's models do to the scores of attention: a soft cap, and a sink that takes what no key deserves.

Each is an attention function made out of another one, by the protocol of
`ttutor.attention.scaled_dot_product_attention`: give it to `ttutor.multihead.MultiHeadAttention` as ``attend``. Neither
takes a softmax of its own. The cap is a bias, and the sink one more key. The third such change, a norm of queries and
keys, is the ``make_norm`` of `ttutor.multihead.MultiHeadAttention`.
"""

import math
from collections.abc import Callable

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from ttutor.attention import scaled_dot_product_attention
from ttutor.masks import Mask, combine_masks
from ttutor.shapes import check_broadcasts

__all__ = ["AttentionSinks", "SoftCap", "soft_cap"]


def soft_cap(scores: Float[Tensor, "..."], cap: float) -> Float[Tensor, "..."]:
    r"""Keep scores or logits between $-c$ and $c$, nearly unchanged where they are small: $c\,\tanh(s / c)$.

    The report of Gemma 2 (2024), section 2, has $c = 50$ in attention and $c = 30$ for the logits of the next token.

    Args:
        scores: $s$.
        cap: $c$.

    Example:
        >>> soft_cap(torch.tensor([1.0, 50.0, 500.0]), 50.0)
        tensor([ 0.9999, 38.0797, 50.0000])
    """
    if not 0 < cap < math.inf:
        raise ValueError(f"cap must be positive and finite, but is {cap}")
    return cap * (scores / cap).tanh()


class SoftCap(nn.Module):
    r"""Attention whose scaled scores pass through `soft_cap` before mask and bias.

    $$A = \mathrm{softmax}\big(c\,\tanh(s\,QK^\top / c) + B\big)$$

    The report of Gemma 2 (2024), section 2. What the cap takes away is given to ``attend`` as a bias, so every score is
    computed twice, and the whole table of them exists.

    Args:
        cap: $c$.
        attend: the attention function that takes the softmax.

    Example:
        >>> query, key, value = torch.tensor([[[[100.0]]]]), torch.tensor([[[[1.0], [0.0]]]]), torch.eye(2)[None, None]
        >>> SoftCap(2.0)(query, key, value)
        tensor([[[[0.8808, 0.1192]]]])
    """

    def __init__(self, cap: float, *, attend: Callable[..., Tensor] = scaled_dot_product_attention) -> None:
        super().__init__()
        soft_cap(torch.zeros(()), cap)  # refuses what is no cap
        self.cap, self.attend = cap, attend

    def forward(
        self,
        query: Float[Tensor, "batch heads queries d_head"],
        key: Float[Tensor, "batch kv_heads keys d_head"],
        value: Float[Tensor, "batch kv_heads keys d_value"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        window: int | None = None,
        bias: Float[Tensor, "..."] | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> Float[Tensor, "batch heads queries d_value"]:
        """The blend of values; arguments as for `ttutor.attention.scaled_dot_product_attention`."""
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        of_group = repeat(
            key,
            "batch kv_heads keys d_head -> batch (kv_heads group) keys d_head",
            group=query.shape[1] // key.shape[1],
        )
        scores = einsum(
            query * scale, of_group, "batch heads queries d_head, batch heads keys d_head -> batch heads queries keys"
        )
        taken = soft_cap(scores, self.cap) - scores
        bias = taken if bias is None else taken + bias
        return self.attend(
            query, key, value, mask, causal=causal, window=window, bias=bias, scale=scale, dropout=dropout
        )


class AttentionSinks(nn.Module):
    r"""Attention in which a head may look at nothing: a learned score for each head takes part in the softmax.

    $$A_{ij} = \frac{e^{S_{ij}}}{e^{\sigma_h} + \sum_k e^{S_{ik}}}$$

    So the weights of a row sum to less than one. Without it a head that finds nothing must look somewhere, and looks at
    the first token: Xiao et al. (2024), section 3, who also try a sink of this kind. As in gpt-oss: OpenAI et al.
    (2025), section 2.

    The sink is one more key in front of the others, whose value is zero and whose score is $\sigma_h$.

    Args:
        n_heads: number of query heads.
        attend: the attention function that takes the softmax.

    Example:
        >>> sinks = AttentionSinks(n_heads=1)  # starts with a score of zero, as that of a key that says nothing
        >>> sinks(torch.zeros(1, 1, 1, 2), torch.randn(1, 1, 3, 2), torch.ones(1, 1, 3, 1))
        tensor([[[[0.7500]]]], grad_fn=...)
    """

    def __init__(self, n_heads: int, *, attend: Callable[..., Tensor] = scaled_dot_product_attention) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.zeros(n_heads))
        self.attend = attend

    def forward(
        self,
        query: Float[Tensor, "batch heads queries d_head"],
        key: Float[Tensor, "batch kv_heads keys d_head"],
        value: Float[Tensor, "batch kv_heads keys d_value"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        window: int | None = None,
        bias: Float[Tensor, "..."] | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> Float[Tensor, "batch heads queries d_value"]:
        """The blend of values; arguments as for `ttutor.attention.scaled_dot_product_attention`."""
        n_queries, n_keys = query.shape[-2], key.shape[-2]
        allowed = combine_masks(mask, Mask(causal=causal, window=window)).materialise(
            n_queries, n_keys, device=query.device
        )
        if allowed is not None:  # everybody sees the sink, however far the window reaches
            check_broadcasts("mask", allowed, (*query.shape[:-1], n_keys))
            allowed = _with_column(allowed.expand(*allowed.shape[:-1], n_keys), True)
        sink = functional.pad(rearrange(self.sinks, "heads -> 1 heads 1 1"), (0, n_keys))
        if bias is not None:
            check_broadcasts("bias", bias, (*query.shape[:-1], n_keys))
            sink = sink + _with_column(bias.expand(*bias.shape[:-1], n_keys), 0.0)
        return self.attend(
            query, _with_row(key), _with_row(value), allowed, bias=sink.to(query.dtype), scale=scale, dropout=dropout
        )


def _with_column(table: Tensor, value: bool | float) -> Tensor:
    """A table of queries and keys with one more key in front."""
    return functional.pad(table, (1, 0), value=value)


def _with_row(vectors: Tensor) -> Tensor:
    """Keys or values with a zero vector in front."""
    return functional.pad(vectors, (0, 0, 1, 0))
