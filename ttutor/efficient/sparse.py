r"""Sparse attention: a window, a few tokens that everyone sees, and blocks of keys drawn at random.

Query $i$ may see key $j$ if they stand near each other, if either is one of the first ``n_global`` tokens, or if the
block of $j$ was drawn for the block of $i$. Window and global tokens are Longformer's (Beltagy et al. 2020, section
3.1); the random blocks are BigBird's (Zaheer et al. 2020, section 2): with them every token is reached in few hops.

It is exact softmax attention over fewer keys, hence another function than attention over all of them. What each block
of queries may see is gathered, as in `ttutor.efficient.window`, so that work and memory grow linearly with the length;
only the global queries look at everything, ``n_global x keys``.

Differs from the papers: global tokens have no projections of their own; one draw of blocks holds for all heads.
"""

from collections.abc import Callable

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.efficient.attention_call import check_tensors
from ttutor.efficient.eager import eager_attention
from ttutor.efficient.padding import is_same_for_all_queries, real_keys
from ttutor.efficient.sdpa import sdpa_attention
from ttutor.efficient.sparse_masks import NO_BLOCK, check_sizes
from ttutor.efficient.window import block_kernel
from ttutor.errors import SettingError
from ttutor.masks import Mask, combine_masks


def sparse_attention(
    query: Float[Tensor, "batch heads queries d_head"],
    key: Float[Tensor, "batch kv_heads keys d_head"],
    value: Float[Tensor, "batch kv_heads keys d_value"],
    mask: Mask | Bool[Tensor, "..."] | None = None,
    *,
    window: int,
    n_global: int = 0,
    random_blocks: Int[Tensor, "blocks n_random"] | None = None,
    block_size: int = 64,
    causal: bool = False,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads queries d_value"]:
    """Attention under the mask of `ttutor.efficient.sparse_masks.sparse_mask`, in work and memory linear in the length.

    Args:
        query, key, value, scale, dropout: as for `ttutor.attention.scaled_dot_product_attention`.
        mask: hides keys besides: `Mask` with causal and key lengths, or a bool tensor that is the same for all queries
            and heads, as `ttutor.masks.padding_mask` gives it.
        window: keys nearer than this are seen.
        n_global: so many tokens at the beginning see all keys and are seen by all queries.
        random_blocks: for each block of queries the blocks of keys that it sees, from `draw_random_blocks`.
        block_size: of the random blocks; queries are cut into blocks of this size in any case.
        causal: look at no key after the query, global or not.
        bias: part of the protocol; must be left out.

    Example:
        >>> from ttutor.efficient.sparse_masks import draw_random_blocks
        >>> tokens = torch.randn(1, 2, 1000, 8)
        >>> blocks = draw_random_blocks(1000, block_size=64, n_random=2, generator=torch.Generator().manual_seed(0))
        >>> sparse_attention(tokens, tokens, tokens, window=32, n_global=4, random_blocks=blocks).shape
        torch.Size([1, 2, 1000, 8])
    """
    structure = combine_masks(mask, Mask(causal=causal))
    if structure.window is not None or bias is not None or not is_same_for_all_queries(structure.dense):
        raise SettingError(
            "sparse attention builds its own mask: it takes causal masks and padding besides, but no second window, "
            "bias or mask that differs between queries or heads; eager_attention takes them together with "
            f"sparse_mask(...). Came: window={structure.window}, bias: {bias is not None}, "
            f"mask: {None if structure.dense is None else tuple(structure.dense.shape)}"
        )
    check_tensors(query, key, value, structure)
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    check_sizes(n_keys, window, n_global, random_blocks, block_size)
    if 0 in (len(query), n_queries, n_keys):  # nothing to be cut into blocks
        return eager_attention(query, key, value)
    is_real = real_keys(structure, key)
    pattern = _Pattern(query, key, is_real, structure.causal, window, n_global, random_blocks, block_size)
    attend = block_kernel(query)
    context = pattern.run(attend, query, key, value, scale=scale, dropout=dropout)
    first = min(n_queries, max(0, n_queries - n_keys))  # the query at key position 0
    last = min(n_queries, max(first, n_global + n_queries - n_keys))
    if structure.causal or first == last:  # a global query that may not look ahead sees only global keys
        return context
    padding = structure if structure.dense is None else Mask(dense=rearrange(is_real, "batch keys -> batch 1 1 keys"))
    everything = sdpa_attention(query[..., first:last, :], key, value, padding, scale=scale, dropout=dropout)
    return torch.cat([context[..., :first, :], everything, context[..., last:, :]], dim=-2)


class _Pattern:
    """Which keys are gathered for each block of queries, and which of them each query sees.

    A key that may be seen for more than one reason is counted for the first only: as a global key, as one of a random
    block, as one in the window.
    """

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        is_real: Tensor | None,
        causal: bool,
        window: int,
        n_global: int,
        random_blocks: Tensor | None,
        block_size: int,
    ) -> None:
        n_queries, n_keys = query.shape[-2], key.shape[-2]
        self.n_queries, self.n_keys, self.is_real, self.causal = n_queries, n_keys, is_real, causal
        self.window = min(window, max(n_queries, n_keys) + 1)  # a wider one hides nothing more
        self.n_global, self.size = min(n_global, n_keys), block_size
        first = n_keys - n_queries  # where the first query stands; blocks begin at multiples of their size
        self.before = first % block_size
        self.n_blocks = -(-(self.before + n_queries) // block_size)
        self.block = torch.arange(self.n_blocks, device=query.device) + first // block_size
        self.drawn = self._drawn_for(random_blocks)

    def _drawn_for(self, random_blocks: Tensor | None) -> Int[Tensor, "blocks n_random"]:
        """The random blocks of each block of queries; queries that stand before all keys have none."""
        block = rearrange(self.block, "blocks -> blocks 1")
        if random_blocks is None:
            return block[:, :0]
        drawn = random_blocks.to(block)[self.block.clamp(min=0)].masked_fill(block < 0, NO_BLOCK)
        same = rearrange(drawn, "blocks n -> blocks n 1") == rearrange(drawn, "blocks n -> blocks 1 n")
        return drawn.masked_fill(same.tril(-1).any(dim=-1), NO_BLOCK)  # in case a block was given twice

    def run(
        self, attend: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, **options: object
    ) -> Tensor:
        """All blocks in one call, as if each were a row of a batch."""
        after = self.n_blocks * self.size - self.before - self.n_queries
        filled = torch.nn.functional.pad(query, (0, 0, self.before, after))
        blocks = rearrange(
            filled, "batch heads (blocks queries) d_head -> (blocks batch) heads queries d_head", queries=self.size
        )
        place, counts = self.gathered()
        allowed = self.allowed(place, counts, query.shape[0])
        place = place.clamp(0, self.n_keys - 1)
        context = attend(blocks, self.take(key, place), self.take(value, place), allowed, **options)
        context = rearrange(
            context, "(blocks batch) heads queries d_value -> batch heads (blocks queries) d_value", batch=len(query)
        )
        return context[:, :, self.before : self.before + self.n_queries]

    def take(self, tensor: Tensor, place: Int[Tensor, "blocks slots"]) -> Float[Tensor, "rows heads slots width"]:
        """The keys or values at these places, copied together for each block of queries."""
        gathered = tensor.index_select(2, rearrange(place, "blocks slots -> (blocks slots)"))
        return rearrange(
            gathered, "batch heads (blocks slots) width -> (blocks batch) heads slots width", blocks=self.n_blocks
        )

    def gathered(self) -> tuple[Int[Tensor, "blocks slots"], list[int]]:
        """Places of the keys that some query of each block may see, and how many come for each of the three reasons.

        A place outside the sequence stands for no key.
        """
        inside = torch.arange(self.size, device=self.block.device)
        start = rearrange(self.block, "blocks -> blocks 1") * self.size
        everyones = repeat(
            torch.arange(self.n_global, device=inside.device), "keys -> blocks keys", blocks=self.n_blocks
        )
        drawn = rearrange(self.drawn, "blocks n_random -> blocks n_random 1") * self.size + inside
        drawn = rearrange(drawn, "blocks n_random inside -> blocks (n_random inside)")
        reach = self.window - 1
        near = start + torch.arange(-reach, self.size + (0 if self.causal else reach), device=inside.device)
        parts = [everyones, drawn, near]
        return torch.cat(parts, dim=-1), [part.shape[-1] for part in parts]

    def allowed(
        self, place: Int[Tensor, "blocks slots"], counts: list[int], batch: int
    ) -> Bool[Tensor, "rows 1 queries slots"]:
        """Which of the gathered keys each query sees."""
        n_everyones, n_drawn, _ = counts
        is_here = (place >= 0) & (place < self.n_keys)
        is_new = torch.ones_like(place, dtype=torch.bool)
        is_new[:, n_everyones:] = place[:, n_everyones:] >= self.n_global
        block = rearrange(place[:, n_everyones + n_drawn :] // self.size, "blocks slots -> blocks slots 1")
        is_new[:, n_everyones + n_drawn :] &= (block != rearrange(self.drawn, "blocks n -> blocks 1 n")).all(dim=-1)
        inside = torch.arange(self.size, device=place.device)
        own = rearrange(self.block, "blocks -> blocks 1 1") * self.size + rearrange(inside, "queries -> queries 1")
        distance = own - rearrange(place, "blocks keys -> blocks 1 keys")
        is_near = distance.abs() < self.window
        is_near[..., : n_everyones + n_drawn] = True
        allowed = is_near & rearrange(is_here & is_new, "blocks keys -> blocks 1 keys")
        allowed = allowed & (distance >= 0) if self.causal else allowed
        allowed = repeat(allowed, "blocks queries keys -> blocks batch queries keys", batch=batch)
        if self.is_real is not None:
            is_real = self.is_real[:, place.clamp(0, self.n_keys - 1)]
            allowed = allowed & rearrange(is_real, "batch blocks keys -> blocks batch 1 keys")
        return rearrange(allowed, "blocks batch queries keys -> (blocks batch) 1 queries keys")
