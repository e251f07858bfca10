r"""Multi-head attention: several lookups at once, each in a space of its own.

$$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\,W^O, \qquad
  \mathrm{head}_i = \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)$$

Vaswani et al. (2017), section 3.2.2.
"""

from collections.abc import Callable

from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import KeyValueCache
from ttutor.errors import ShapeError
from ttutor.masks import Mask, as_mask
from ttutor.names import AnsweringLayer, answer_other_names
from ttutor.positions import Rotation
from ttutor.shapes import check_dtypes, check_shapes

__all__ = ["AttentionHead", "MultiHeadAttention"]


class AttentionHead(AnsweringLayer, nn.Module):
    """One head of attention: project to queries, keys and values, and look up.

    Args:
        d_model: width of what comes in.
        d_head: width of queries, keys and values.
        bias: whether the projections add a constant.

    Example:
        >>> import torch
        >>> head = AttentionHead(d_model=8, d_head=4)
        >>> head(torch.randn(2, 5, 8), causal=True).shape
        torch.Size([2, 5, 4])
    """

    def __init__(self, d_model: int, d_head: int, *, bias: bool = False) -> None:
        super().__init__()
        self.d_model = d_model
        self.to_query = nn.Linear(d_model, d_head, bias=bias)
        self.to_key = nn.Linear(d_model, d_head, bias=bias)
        self.to_value = nn.Linear(d_model, d_head, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        key: Float[Tensor, "batch keys d_model"] | None = None,
        value: Float[Tensor, "batch keys d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch queries d_head"]:
        """Let each query look at the keys; without a key, at the queries' own sequence (self-attention)."""
        key = query if key is None else key
        value = key if value is None else value
        check_shapes(
            {"d_model": self.d_model},
            query=(query, "batch queries d_model"),
            key=(key, "batch keys d_model"),
            value=(value, "batch keys d_model"),
        )
        check_dtypes(self.to_query, query=query, key=key, value=value)
        q, k, v = self.to_query(query), self.to_key(key), self.to_value(value)
        return scaled_dot_product_attention(q, k, v, mask, causal=causal)


class MultiHeadAttention(AnsweringLayer, nn.Module):
    r"""Several heads side by side, their results merged and projected back to the model's width.

    Self-attention when only a query is given, cross-attention with a key. With fewer key/value heads than query heads
    it is grouped-query attention (Ainslie et al. 2023), with a single one multi-query attention (Shazeer 2019).

    Args:
        d_model: width of what comes in and goes out.
        n_heads: number of query heads.
        n_kv_heads: number of key/value heads, a divisor of ``n_heads``; as many as query heads when left out.
        d_head: width of a head; ``d_model / n_heads`` when left out.
        bias: whether the four projections add a constant.
        dropout: probability of dropping an attention weight while training.
        scale: the factor of the scores; $1/\sqrt{d_\mathrm{head}}$ when left out.
        make_norm: makes from ``d_head`` a norm for the queries and one for the keys of every head, applied before any
            rotation; none when left out. A score is then bounded, however large the projections grow (Henry et al.
            2020; with `ttutor.layers.RMSNorm` as in Qwen 3).
        attend: the attention function; whole models give `ttutor.efficient.efficient_attention`, which is faster.

    Differs from the paper: its formula has no bias in the projections; we have one by default, as torch does.

    Example:
        >>> import torch
        >>> attention = MultiHeadAttention(d_model=8, n_heads=2)
        >>> words, memory = torch.randn(1, 5, 8), torch.randn(1, 7, 8)
        >>> attention(words).shape, attention(words, memory).shape
        (torch.Size([1, 5, 8]), torch.Size([1, 5, 8]))
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        d_head: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        make_norm: Callable[[int], nn.Module] | None = None,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or d_model < 1:
            raise ValueError(f"both must be at least 1, but d_model={d_model} and n_heads={n_heads}")
        if d_head is None and d_model % n_heads:
            raise ValueError(
                f"d_model must be a multiple of n_heads, but d_model={d_model} and n_heads={n_heads}; "
                "give d_head for heads of another width"
            )
        if d_head is not None and d_head < 1:
            raise ValueError(f"d_head must be at least 1, but is {d_head}")
        if n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(f"n_heads must be a multiple of n_kv_heads, but {n_heads} is none of {n_kv_heads}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, but is {dropout}")
        d_head = d_model // n_heads if d_head is None else d_head
        self.d_model, self.n_heads, self.n_kv_heads, self.d_head = d_model, n_heads, n_kv_heads, d_head
        self.dropout, self.scale = dropout, scale
        self.attend = attend
        self.to_query = nn.Linear(d_model, n_heads * d_head, bias=bias)
        self.to_key = nn.Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.to_value = nn.Linear(d_model, n_kv_heads * d_head, bias=bias)
        self.to_output = nn.Linear(n_heads * d_head, d_model, bias=bias)
        self.query_norm = nn.Identity() if make_norm is None else make_norm(d_head)
        self.key_norm = nn.Identity() if make_norm is None else make_norm(d_head)
        for projection in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        key: Float[Tensor, "batch keys d_model"] | None = None,
        value: Float[Tensor, "batch keys d_model"] | None = None,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: KeyValueCache | None = None,
        *,
        bias: Float[Tensor, "..."] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "batch queries d_model"]:
        """Let each query look at the keys, in every head.

        Args:
            query: what looks.
            key: what is looked at; the queries' own sequence when left out.
            value: what is handed over, one for each key; the keys' own vectors when left out.
            mask: bool tensor (True = may attend) or `Mask`, broadcastable to ``batch heads queries keys``: with the two
                axes ``queries keys``, or with all four.
            cache: keys and values of earlier calls. They are extended by this call's, or, in a fixed cache that is
                filled, used instead of them: a new memory needs a new cache, and only its size is compared.
            bias: added to the scores, as `ttutor.positions.AlibiPositions` gives it for all keys, cached ones included.
            rotation: turns queries and new keys, as `ttutor.positions.RotaryPositions` gives it for the queries'
                positions; for self-attention only.
        """
        if key is not None and rotation is not None:
            raise ValueError("a rotation belongs to self-attention: the key's positions are not those of the query")
        if key is None and value is not None:
            raise ValueError("a value needs a key to be found by: give both, or the key alone")
        dense = as_mask(mask).dense
        if dense is not None and dense.ndim == 3:
            raise ShapeError(
                f"a mask of three axes, {tuple(dense.shape)}, could mean the batch or the heads; "
                "write it as `batch 1 queries keys` or `1 heads queries keys`"
            )
        key = query if key is None else key
        value = key if value is None else value
        check_shapes(
            {"d_model": self.d_model},
            query=(query, "batch queries d_model"),
            key=(key, "batch keys d_model"),
            value=(value, "batch keys d_model"),
        )
        check_dtypes(self.to_query, query=query, key=key, value=value)
        split = "batch queries (heads d_head) -> batch heads queries d_head"
        q = self.query_norm(rearrange(self.to_query(query), split, heads=self.n_heads))
        q = q if rotation is None else rotation(q)
        k, v = self._keys_and_values(key, value, cache, rotation)
        dropout = self.dropout if self.training else 0.0
        context = self.attend(q, k, v, mask, bias=bias, scale=self.scale, dropout=dropout)
        return self.to_output(rearrange(context, "batch heads queries d_head -> batch queries (heads d_head)"))

    def _keys_and_values(
        self,
        key: Float[Tensor, "batch keys d_model"],
        value: Float[Tensor, "batch keys d_model"],
        cache: KeyValueCache | None,
        rotation: Rotation | None,
    ) -> tuple[Tensor, Tensor]:
        """Keys and values by head, those in the cache included."""
        if cache is not None and cache.is_fixed and len(cache):
            k, v = cache.read()
            if (k.shape[0], k.shape[2]) != tuple(key.shape[:2]):
                raise ValueError(
                    f"this cache holds a memory of {k.shape[0]} rows and {k.shape[2]} tokens, but the key has "
                    f"{key.shape[0]} rows and {key.shape[1]} tokens: begin a new cache for another memory"
                )
            return k, v
        split = "batch keys (kv_heads d_head) -> batch kv_heads keys d_head"
        k = self.key_norm(rearrange(self.to_key(key), split, kv_heads=self.n_kv_heads))
        v = rearrange(self.to_value(value), split, kv_heads=self.n_kv_heads)
        k = k if rotation is None else rotation(k)
        return (k, v) if cache is None else cache.append(k, v)


answer_other_names(__name__)
