r"""Multi-head latent attention: keys and values are made from one short vector for each token; only that is cached.

$$c_t = \mathrm{RMSNorm}(x_t W^{D}), \qquad k_{t,i} = [\,c_t W_i^{K};\; R_t\,x_t W^{R}\,], \qquad
  v_{t,i} = c_t W_i^{V}$$

DeepSeek-AI et al. (2024b), section 2.1.1. Grouped-query attention caches two vectors for each of its key/value heads;
this caches $c_t$ and one rotary key for all heads, and still every head has keys and values of its own. The rotary key
stands apart, since a rotation between $W_i^{K}$ and the query would forbid the second form below.
"""

import math
from collections.abc import Callable

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import KeyValueCache
from ttutor.layers import RMSNorm
from ttutor.masks import Mask
from ttutor.positions import Rotation
from ttutor.shapes import check_dtypes, check_shapes

__all__ = ["LatentAttention"]

ABSORB = "batch heads queries d_head, heads d_head d_latent -> batch heads queries d_latent"
EXPAND = "batch heads queries d_latent, heads d_value d_latent -> batch heads queries d_value"


class LatentAttention(nn.Module):
    r"""Self-attention over latent vectors, in two forms that give the same.

    The plain form makes every head's keys and values and attends as usual. The absorbed form, for decoding, makes none:
    as $q \cdot (c\,W^{K}) = (q\,W^{K\top}) \cdot c$, it takes the queries to the latent space, attends there with a
    single key head for all, and takes what comes out through $W^{V}$. A cached token then costs no projection.

    It stands where `ttutor.multihead.MultiHeadAttention` does self-attention, with the same cache, of which it fills
    ``d_latent + d_rotary`` numbers for each token.

    Args:
        d_model: width of what comes in and goes out.
        n_heads: number of heads.
        d_head: features of queries and keys that know no position.
        d_rotary: features that are turned, even; the keys' are shared by all heads.
        d_value: features of a value.
        d_latent: width of the vector that is cached.
        d_query_latent: width of a vector that queries are made from in the same way, which saves parameters; queries
            are made from the stream itself when left out.
        attend: the attention function.

    Example:
        >>> from ttutor.positions import RotaryPositions
        >>> latent = LatentAttention(d_model=12, n_heads=3, d_head=4, d_rotary=2, d_value=4, d_latent=6)
        >>> rotation = RotaryPositions(2, layout="interleaved")(torch.arange(5)[None])
        >>> latent(torch.randn(1, 5, 12), rotation=rotation).shape
        torch.Size([1, 5, 12])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int,
        d_rotary: int,
        d_value: int,
        d_latent: int,
        d_query_latent: int | None = None,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        self.d_model, self.n_heads, self.d_head, self.d_rotary = d_model, n_heads, d_head, d_rotary
        self.scale = 1 / math.sqrt(d_head + d_rotary)
        self.attend = attend
        self.to_query_latent: nn.Module = nn.Identity()
        if d_query_latent is not None:
            self.to_query_latent = nn.Sequential(
                nn.Linear(d_model, d_query_latent, bias=False), RMSNorm(d_query_latent)
            )
        self.to_query = nn.Linear(d_query_latent or d_model, n_heads * (d_head + d_rotary), bias=False)
        self.to_latent = nn.Sequential(nn.Linear(d_model, d_latent, bias=False), RMSNorm(d_latent))
        self.to_rotary_key = nn.Linear(d_model, d_rotary, bias=False)
        self.to_key = nn.Linear(d_latent, n_heads * d_head, bias=False)
        self.to_value = nn.Linear(d_latent, n_heads * d_value, bias=False)
        self.to_output = nn.Linear(n_heads * d_value, d_model, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(
        self,
        query: Float[Tensor, "batch queries d_model"],
        mask: Mask | Bool[Tensor, "..."] | None = None,
        cache: KeyValueCache | None = None,
        *,
        rotation: Rotation,
        absorbed: bool | None = None,
    ) -> Float[Tensor, "batch queries d_model"]:
        """Let each token look at those before it in the cache, and at those of this call.

        Args:
            query: the tokens.
            mask: bool tensor (True = may attend) or `Mask`, as for `ttutor.multihead.MultiHeadAttention`.
            cache: latent vectors and rotary keys of earlier calls; it is extended by this call's.
            rotation: turns the rotary features at the queries' positions; of width ``d_rotary``.
            absorbed: which form to compute; when left out the absorbed one where the cache holds earlier tokens.
        """
        check_shapes({"d_model": self.d_model}, query=(query, "batch queries d_model"))
        check_dtypes(self.to_query, query=query)
        absorbed = cache is not None and len(cache) > 0 if absorbed is None else absorbed
        q = rearrange(
            self.to_query(self.to_query_latent(query)),
            "batch queries (heads features) -> batch heads queries features",
            heads=self.n_heads,
        )
        plain, turned = q.split([self.d_head, self.d_rotary], dim=-1)
        turned = rotation(turned)
        latent = rearrange(self.to_latent(query), "batch keys d_latent -> batch 1 keys d_latent")
        rotary_key = rotation(rearrange(self.to_rotary_key(query), "batch keys d_rotary -> batch 1 keys d_rotary"))
        if cache is not None:
            latent, rotary_key = cache.append(latent, rotary_key)
        form = self._absorbed if absorbed else self._plain
        context = form(plain, turned, latent, rotary_key, mask)
        return self.to_output(rearrange(context, "batch heads queries d_value -> batch queries (heads d_value)"))

    def _plain(
        self,
        plain: Float[Tensor, "batch heads queries d_head"],
        turned: Float[Tensor, "batch heads queries d_rotary"],
        latent: Float[Tensor, "batch 1 keys d_latent"],
        rotary_key: Float[Tensor, "batch 1 keys d_rotary"],
        mask: Mask | Bool[Tensor, "..."] | None,
    ) -> Float[Tensor, "batch heads queries d_value"]:
        """Keys and values of every head, then attention."""
        split = "batch 1 keys (heads features) -> batch heads keys features"
        k = rearrange(self.to_key(latent), split, heads=self.n_heads)
        v = rearrange(self.to_value(latent), split, heads=self.n_heads)
        for_all = repeat(rotary_key, "batch 1 keys d_rotary -> batch heads keys d_rotary", heads=self.n_heads)
        return self._attend(torch.cat([plain, turned], dim=-1), torch.cat([k, for_all], dim=-1), v, mask)

    def _absorbed(
        self,
        plain: Float[Tensor, "batch heads queries d_head"],
        turned: Float[Tensor, "batch heads queries d_rotary"],
        latent: Float[Tensor, "batch 1 keys d_latent"],
        rotary_key: Float[Tensor, "batch 1 keys d_rotary"],
        mask: Mask | Bool[Tensor, "..."] | None,
    ) -> Float[Tensor, "batch heads queries d_value"]:
        """Attention among latent vectors, a single key head for all, then the values of what came out."""
        split = "(heads features) d_latent -> heads features d_latent"
        to_key = rearrange(self.to_key.weight, split, heads=self.n_heads)
        to_value = rearrange(self.to_value.weight, split, heads=self.n_heads)
        q = torch.cat([einsum(plain, to_key, ABSORB), turned], dim=-1)
        context = self._attend(q, torch.cat([latent, rotary_key], dim=-1), latent, mask)
        return einsum(context, to_value, EXPAND)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | Bool[Tensor, "..."] | None) -> Tensor:
        return self.attend(q, k, v, mask, scale=self.scale)
