"""Sliding-window attention by banded blocks: work and memory linear in the length.

The queries are cut into blocks. All keys that some query of a block may see stand together: its own stretch, widened by
the window. So each block is an ordinary attention over few keys, and the blocks go through one kernel side by side, as
if they were rows of a batch. The stretches of keys overlap; they are views of one tensor, not copies.

Beltagy et al. (2020), section 3.1 and its sliding chunks.
"""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.efficient.attention_call import HALF, AttentionCall
from ttutor.efficient.eager import eager_attention
from ttutor.efficient.sdpa import sdpa_attention
from ttutor.errors import SettingError
from ttutor.masks import Mask, combine_masks


def unsupported_reason(call: AttentionCall) -> str | None:
    """Why this backend cannot run such a call; None if it can."""
    if call.window is None:
        return "there is no window"
    if call.has_dense:
        return "a mask that comes as a tensor is no band"
    if call.has_bias:
        return "a bias is a table of queries x keys, which this backend never builds"
    return None


def window_attention(
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
    """Attention by the protocol of `ttutor.attention.scaled_dot_product_attention`, where there is a window."""
    structure = combine_masks(mask, Mask(causal=causal, window=window))
    if structure.window is None or structure.dense is not None or bias is not None:
        raise SettingError(
            "window attention needs a window, and takes neither a dense mask nor a bias, but "
            f"window={structure.window}, dense mask: {structure.dense is not None}, bias: {bias is not None}"
        )
    if query.shape[0] == 0 or query.shape[-2] == 0:  # nothing to be cut into blocks
        return eager_attention(query, key, value)
    band = _Band(query.shape[-2], key.shape[-2], structure.window, structure.causal)
    attend = block_kernel(query)
    if structure.key_lengths is None:
        return band.run(attend, query, key, value, band.allowed(None, query.device), scale=scale, dropout=dropout)
    rows = []
    for row, n_real in enumerate(structure.key_lengths):  # rows of different lengths have different masks
        q, k, v = (tensor[row : row + 1] for tensor in (query, key, value))
        rows.append(band.run(attend, q, k, v, band.allowed(n_real, query.device), scale=scale, dropout=dropout))
    return torch.cat(rows)


def block_kernel(query: Tensor) -> Callable[..., Tensor]:
    """What runs the blocks: PyTorch's kernel, but plain products where its backward pass is slow."""
    is_slow = query.device.type == "cpu" and query.dtype in HALF and query.requires_grad and torch.is_grad_enabled()
    return eager_attention if is_slow else sdpa_attention


class _Band:
    """How the queries are cut into blocks, and which stretch of keys belongs to each."""

    def __init__(self, n_queries: int, n_keys: int, window: int, causal: bool) -> None:
        window = min(window, max(n_queries, n_keys) + 1)  # a wider one hides nothing more
        self.n_queries, self.n_keys, self.window, self.causal = n_queries, n_keys, window, causal
        self.size = min(n_queries, max(64, window // 4))  # small blocks compute less beside the band, large ones faster
        self.n_blocks = -(-n_queries // self.size)
        self.before = window - 1
        self.width = self.before + self.size + (0 if self.causal else self.before)
        self.offset = n_keys - n_queries  # query i stands at key position i + offset

    def run(
        self,
        attend: Callable[..., Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        allowed: Tensor,
        **options: object,
    ) -> Tensor:
        """All blocks in one call, as if each were a row of a batch."""
        batch = query.shape[0]
        filled = torch.nn.functional.pad(query, (0, 0, 0, self.n_blocks * self.size - self.n_queries))
        blocks = rearrange(
            filled, "batch heads (blocks queries) d_head -> blocks (batch heads) queries d_head", blocks=self.n_blocks
        )
        context = attend(blocks, self.stretches(key), self.stretches(value), allowed, **options)
        context = rearrange(
            context, "blocks (batch heads) queries d_value -> batch heads (blocks queries) d_value", batch=batch
        )
        return context[:, :, : self.n_queries]

    def stretches(
        self, tensor: Float[Tensor, "batch kv_heads keys width"]
    ) -> Float[Tensor, "blocks rows stretch width"]:
        """The keys or values that the queries of each block may see, overlapping views of one padded tensor."""
        left = self.before - self.offset
        right = (self.n_blocks - 1) * self.size + self.width - left - self.n_keys
        padded = torch.nn.functional.pad(tensor, (0, 0, left, right))  # a negative number cuts off instead
        rows = rearrange(padded, "batch kv_heads keys width -> (batch kv_heads) keys width")
        return rearrange(
            rows.unfold(1, self.width, self.size), "rows blocks width stretch -> blocks rows stretch width"
        )

    def allowed(
        self, n_real: Int[Tensor, ""] | None = None, device: torch.device | None = None
    ) -> Bool[Tensor, "blocks 1 queries stretch"]:
        """Which keys of its stretch each query may see, where the first ``n_real`` keys are no padding."""
        query = torch.arange(self.size, device=device)
        key = torch.arange(self.width, device=device)
        distance = rearrange(query, "queries -> queries 1") + self.before - key
        band = distance.abs() < self.window
        band = band & (distance >= 0) if self.causal else band
        start = torch.arange(self.n_blocks, device=device) * self.size + self.offset - self.before
        place = rearrange(start, "blocks -> blocks 1") + key
        exists = (place >= 0) & (place < self.n_keys)
        exists = exists if n_real is None else exists & (place < n_real)
        return band & rearrange(exists, "blocks keys -> blocks 1 1 keys")
