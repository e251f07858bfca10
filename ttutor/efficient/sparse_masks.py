"""The masks of sparse attention: a window, tokens that everyone sees, and blocks of keys drawn at random.

`ttutor.efficient.sparse` says where they come from, and attends under them without drawing them.
"""

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

NO_BLOCK = -1
"""Stands in a draw where there was no further block."""


def draw_random_blocks(
    n_tokens: int, *, block_size: int, n_random: int, generator: torch.Generator, causal: bool = False
) -> Int[Tensor, "blocks n_random"]:
    """Draw for each block of queries the blocks of keys that it may see, none twice.

    Zaheer et al. (2020), appendix D. The draw is an argument of the attention, not made in it: training, decoding and
    the mask that is drawn for the eye must all use the same.

    Args:
        n_tokens: length of the longest sequence.
        block_size: tokens in a block.
        n_random: how many blocks each block of queries gets.
        generator: where the chance comes from.
        causal: draw only blocks up to the queries' own. The first ones then get fewer; -1 stands for none.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> draw_random_blocks(12, block_size=4, n_random=2, generator=generator, causal=True)[0]
        tensor([ 0, -1])
    """
    if n_tokens < 1 or block_size < 1 or n_random < 0:
        raise ValueError(f"a draw needs tokens and blocks, but {n_tokens=}, {block_size=}, {n_random=}")
    n_blocks = -(-n_tokens // block_size)
    lots = torch.rand(n_blocks, n_blocks, generator=generator, device=generator.device)
    if causal:
        lots = lots.masked_fill(torch.ones_like(lots, dtype=torch.bool).triu(1), -1.0)
    best, drawn = lots.topk(min(n_random, n_blocks), dim=-1)
    drawn = drawn.masked_fill(best < 0, NO_BLOCK)
    return torch.nn.functional.pad(drawn, (0, n_random - drawn.shape[-1]), value=NO_BLOCK)


def sparse_mask(
    n_queries: int,
    n_keys: int | None = None,
    *,
    window: int,
    n_global: int = 0,
    random_blocks: Int[Tensor, "blocks n_random"] | None = None,
    block_size: int = 64,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "queries keys"]:
    """The mask of `ttutor.efficient.sparse.sparse_attention`, drawn: for the eye, for counting, and for proof.

    Args:
        n_queries, n_keys: as for `ttutor.masks.causal_mask`; the last query is aligned with the last key.
        window, n_global, random_blocks, block_size, causal: as for `ttutor.efficient.sparse.sparse_attention`.
        device: where the mask is made.

    Example:
        >>> sparse_mask(5, window=1, n_global=1).int()
        tensor([[1, 1, 1, 1, 1],
                [1, 1, 0, 0, 0],
                [1, 0, 1, 0, 0],
                [1, 0, 0, 1, 0],
                [1, 0, 0, 0, 1]], dtype=torch.int32)
    """
    n_keys = n_queries if n_keys is None else n_keys
    check_sizes(n_keys, window, n_global, random_blocks, block_size)
    key = torch.arange(n_keys, device=device)
    place = rearrange(torch.arange(n_keys - n_queries, n_keys, device=device), "queries -> queries 1")
    allowed = (place - key).abs() < window
    allowed = allowed | (key < n_global) | ((place >= 0) & (place < n_global))
    if random_blocks is not None:
        n_blocks = -(-n_keys // block_size)
        drawn = rearrange(random_blocks.to(key), "blocks n_random -> blocks n_random 1")
        by_block = (drawn == torch.arange(n_blocks, device=device)).any(dim=1)
        allowed = allowed | (by_block[(place // block_size).clamp(min=0), key // block_size] & (place >= 0))
    return allowed & (place >= key) if causal else allowed


def check_sizes(n_keys: int, window: int, n_global: int, random_blocks: Tensor | None, block_size: int) -> None:
    """Refuse a pattern with a size out of range, or with too few random blocks for so many keys."""
    if window < 1 or n_global < 0 or block_size < 1:
        raise ValueError(
            "window and block_size must be at least 1 and n_global at least 0, but "
            f"{window=}, {block_size=}, {n_global=}"
        )
    n_blocks = -(-n_keys // block_size)
    if random_blocks is not None and random_blocks.shape[0] < n_blocks:
        raise ValueError(
            f"random_blocks has {random_blocks.shape[0]} rows, but {n_keys} keys are {n_blocks} blocks of "
            f"{block_size}: draw_random_blocks(...) for the longest sequence"
        )
