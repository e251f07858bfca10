r"""What each piece of a Transformer costs: parameters, floating-point operations, bytes.

Every function here is one formula in whole numbers. A multiply-add counts as two operations, as hardware vendors count,
so a product of an $m \times k$ and a $k \times n$ matrix costs $2mkn$. Matrix products are all that is counted. Norms,
softmax, activations, biases, residual sums and lookups are left out: they cost a few operations for each value, where a
matrix costs two for each value and row.
"""

from typing import Any

import torch

__all__ = [
    "adam_bytes",
    "approximate_training_flops",
    "attention_flops",
    "attention_parameters",
    "attention_projection_flops",
    "cache_bytes",
    "crossover_length",
    "feed_forward_flops",
    "feed_forward_parameters",
    "latent_attention_parameters",
    "latent_cache_bytes",
    "norm_parameters",
    "projection_flops",
    "projection_parameters",
    "weights_bytes",
]


def projection_parameters(d_in: int, d_out: int, *, bias: bool = True) -> int:
    r"""A linear map: $d_\mathrm{in} d_\mathrm{out}$, and $d_\mathrm{out}$ more for its bias."""
    return d_in * d_out + (d_out if bias else 0)


def norm_parameters(d_model: int, *, rms: bool = False) -> int:
    """A norm's gain, and its bias unless it is an RMSNorm."""
    return d_model if rms else 2 * d_model


def attention_parameters(
    d_model: int, *, n_heads: int, d_head: int, n_kv_heads: int | None = None, bias: bool = True
) -> int:
    r"""The four projections of multi-head attention: $2 d\,(h + h_\mathrm{kv})\,d_\mathrm{head}$ and their biases.

    With $h\,d_\mathrm{head} = d$ and as many key/value heads this is the well-known $4d^2$.

    Args:
        d_model: the width $d$.
        n_heads: query heads $h$.
        d_head: width of a head.
        n_kv_heads: key/value heads; ``n_heads`` when left out.
        bias: whether the projections add a constant.

    Example:
        >>> attention_parameters(512, n_heads=8, d_head=64, bias=False) == 4 * 512**2
        True
    """
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    biases = (n_heads + 2 * n_kv_heads) * d_head + d_model if bias else 0
    return 2 * d_model * (n_heads + n_kv_heads) * d_head + biases


def latent_attention_parameters(
    d_model: int,
    *,
    n_heads: int,
    d_head: int,
    d_rotary: int,
    d_value: int,
    d_latent: int,
    d_query_latent: int | None = None,
) -> int:
    r"""The maps of multi-head latent attention, without the norms of its latent vectors.

    Keys and values need $d\,(d_c + d_R) + h\,d_c\,(d_\mathrm{head} + d_\mathrm{value})$, the output
    $h\,d_\mathrm{value}\,d$, and queries $h\,(d_\mathrm{head} + d_R)$ times the width that they are made from.

    Args:
        d_model: the width $d$.
        n_heads, d_head, d_rotary, d_value, d_latent, d_query_latent: as for `ttutor.variants.latent.LatentAttention`.

    Example:
        >>> sizes = {"d_head": 128, "d_rotary": 64, "d_value": 128, "d_latent": 512, "d_query_latent": 1536}
        >>> latent_attention_parameters(7168, n_heads=128, **sizes)  # DeepSeek-V3
        187105280
    """
    to_queries = n_heads * (d_head + d_rotary)
    queries = d_model * to_queries if d_query_latent is None else d_query_latent * (d_model + to_queries)
    keys_and_values = d_model * (d_latent + d_rotary) + d_latent * n_heads * (d_head + d_value)
    return queries + keys_and_values + n_heads * d_value * d_model


def feed_forward_parameters(d_model: int, d_ff: int, *, gated: bool = False, bias: bool = True) -> int:
    r"""A feed-forward network: $2\,d\,d_\mathrm{ff}$, or $3\,d\,d_\mathrm{ff}$ with a gate, and its biases.

    With $d_\mathrm{ff} = 4d$ this is the well-known $8d^2$.

    Example:
        >>> feed_forward_parameters(512, 2048, bias=False) == 8 * 512**2
        True
    """
    n_inward = 2 if gated else 1
    biases = n_inward * d_ff + d_model if bias else 0
    return (n_inward + 1) * d_model * d_ff + biases


def projection_flops(n_tokens: int, d_in: int, d_out: int) -> int:
    r"""A linear map of some tokens: $2\,n\,d_\mathrm{in} d_\mathrm{out}$, twice its parameters for each token."""
    return 2 * n_tokens * d_in * d_out


def attention_flops(n_queries: int, n_keys: int, *, n_heads: int, d_head: int, d_value: int | None = None) -> int:
    r"""Scores and blend of one attention layer: $4\,n_q\,n_k\,h\,d_\mathrm{head}$, half of it for each.

    This is the only cost of a Transformer that grows with the square of the length. A causal mask changes nothing in
    it: the plain implementation computes every score and hides half of them. A kernel that skips those needs half.

    Args:
        n_queries: tokens that look, $n_q$; 1 when the next token is generated with a cache.
        n_keys: tokens that are looked at, $n_k$.
        n_heads: query heads $h$.
        d_head: width of a head's queries and keys.
        d_value: width of its values, where it is another, as in latent attention.

    Example:
        >>> attention_flops(512, 512, n_heads=8, d_head=64)
        536870912
    """
    return 2 * n_queries * n_keys * n_heads * (d_head + (d_head if d_value is None else d_value))


def attention_projection_flops(
    n_queries: int, n_keys: int, *, d_model: int, n_heads: int, d_head: int, n_kv_heads: int | None = None
) -> int:
    r"""The four projections around it: $4\,d\,d_\mathrm{head}\,(n_q h + n_k h_\mathrm{kv})$.

    In self-attention, $n_q = n_k = n$, with as many key/value heads this is $8\,n\,d^2$.

    Example:
        >>> attention_projection_flops(7, 7, d_model=512, n_heads=8, d_head=64) == 8 * 7 * 512**2
        True
    """
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    return 4 * d_model * d_head * (n_queries * n_heads + n_keys * n_kv_heads)


def feed_forward_flops(n_tokens: int, *, d_model: int, d_ff: int, gated: bool = False) -> int:
    r"""A feed-forward network: $4\,n\,d\,d_\mathrm{ff}$, or $6\,n\,d\,d_\mathrm{ff}$ with a gate.

    Example:
        >>> feed_forward_flops(7, d_model=512, d_ff=2048) == 16 * 7 * 512**2
        True
    """
    return (6 if gated else 4) * n_tokens * d_model * d_ff


def crossover_length(
    *, d_model: int, n_heads: int, d_head: int, d_ff: int, n_kv_heads: int | None = None, gated: bool = False
) -> float:
    r"""The length at which scores and blend cost as much as all matrices of a layer; beyond it they cost more.

    With $h\,d_\mathrm{head} = d$ and $d_\mathrm{ff} = 4d$ it is $24\,n\,d^2 = 4\,n^2 d$, so $n = 6d$.

    Example:
        >>> crossover_length(d_model=12_288, n_heads=96, d_head=128, d_ff=4 * 12_288)  # GPT-3
        73728.0
    """
    heads: dict[str, Any] = {"d_model": d_model, "n_heads": n_heads, "d_head": d_head, "n_kv_heads": n_kv_heads}
    per_token = attention_projection_flops(1, 1, **heads) + feed_forward_flops(
        1, d_model=d_model, d_ff=d_ff, gated=gated
    )
    return per_token / attention_flops(1, 1, n_heads=n_heads, d_head=d_head)


def approximate_training_flops(n_parameters: int, n_tokens: int) -> int:
    r"""The rule of thumb $C \approx 6ND$ for training $N$ parameters on $D$ tokens.

    Each parameter takes part in one multiply-add for each token going forward, and in two going backward (the gradient
    of the input and that of the weight). Kaplan et al. (2020), section 2.1. It leaves the scores out, and counts tables
    that are only looked up.

    Example:
        >>> f"{approximate_training_flops(174_604_259_328, 300_000_000_000):.2e}"  # GPT-3's paper: 3.14e23, table D.1
        '3.14e+23'
    """
    return 6 * n_parameters * n_tokens


def cache_bytes(
    n_tokens: int,
    *,
    n_layers: int,
    n_kv_heads: int,
    d_head: int,
    dtype: torch.dtype = torch.float16,
) -> int:
    r"""Keys and values of all layers, kept for generation: $2\,L\,h_\mathrm{kv}\,d_\mathrm{head}\,n$ values a sequence.

    The heads are those of keys and values, not of queries: fewer of them make the cache smaller. Ours
    (`ttutor.cache.KeyValueCache`) reserves room for up to twice as many tokens as it holds.

    Example:
        >>> cache_bytes(4096, n_layers=80, n_kv_heads=8, d_head=128)  # Llama 3 70B: 1.34 GB
        1342177280
    """
    return 2 * n_layers * n_kv_heads * d_head * n_tokens * dtype.itemsize


def latent_cache_bytes(
    n_tokens: int, *, n_layers: int, d_latent: int, d_rotary: int, dtype: torch.dtype = torch.float16
) -> int:
    r"""The same with latent attention: one latent vector and one rotary key, $L\,(d_c + d_R)\,n$ values a sequence.

    Example:
        >>> latent_cache_bytes(1, n_layers=61, d_latent=512, d_rotary=64)  # DeepSeek-V3: 70 kB a token
        70272
    """
    return n_layers * (d_latent + d_rotary) * n_tokens * dtype.itemsize


def weights_bytes(
    n_queries: int,
    n_keys: int,
    *,
    n_heads: int,
    n_layers: int = 1,
    dtype: torch.dtype = torch.float32,
) -> int:
    r"""Attention weights, written out in full: $L\,h\,n_q\,n_k$ values a sequence.

    Layers need not keep theirs at the same time, unless a gradient is wanted; tiled kernels never write them out.

    Example:
        >>> weights_bytes(4096, 4096, n_heads=1, dtype=torch.float16)  # 32 MiB, or 33.6 MB
        33554432
    """
    return n_layers * n_heads * n_queries * n_keys * dtype.itemsize


def adam_bytes(n_parameters: int, *, dtype: torch.dtype = torch.float32) -> int:
    """Adam's memory: two running means for each parameter, of the gradient and of its square, in the weights' dtype.

    Kingma and Ba (2015), algorithm 1. Mixed-precision training keeps weights and both means in float32.

    Example:
        >>> adam_bytes(1_000_000)
        8000000
    """
    return 2 * n_parameters * dtype.itemsize
