"""A beam as a tree: what the partial hypotheses of a sentence have in common is computed and kept once.

A beam search puts its hypotheses in another order at every step. Were each a row of the cache, all keys and values
would move with it. Here none moves: a sentence is one row, whatever its hypotheses fed stands there in the order in
which it came, and a mask says which of it each hypothesis sees, the tokens on its own way from the root. To the model
the hypotheses are queries of one row, and so they look at one memory.
"""

from collections.abc import Callable
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, KeyValueCache
from ttutor.decoder import DecoderLayer
from ttutor.generation.step_decoder import StepDecoder

SPARE = 1.25
"""How many times as many tokens as anybody sees may be kept, before those that nobody sees are dropped."""


class BranchingCache(DecoderCache):
    """A decoder's cache with a row for each sentence, in which every new token begins or goes on a branch.

    Args:
        n_layers: number of the decoder's layers.
        make_cache: makes the caches of each layer.

    Example:
        >>> cache = BranchingCache(n_layers=0)
        >>> _ = cache.extend(torch.tensor([[True]]))  # the start token
        >>> cache.branch(torch.tensor([0]), torch.tensor([[0, 0]]))
        >>> positions, sees = cache.extend(torch.tensor([[True, True]]))
        >>> positions.tolist(), sees.int().tolist()
        ([[1, 1]], [[[[1, 1, 0], [1, 0, 1]]]])
    """

    def __init__(self, n_layers: int, *, make_cache: Callable[..., KeyValueCache] = KeyValueCache) -> None:
        super().__init__(n_layers, make_cache=make_cache)
        self._depth = 0
        self._sees = torch.empty(0, 0, 0, dtype=torch.bool)  # batch branches tokens

    def length_with(self, n_new: int) -> int:
        """How many positions are taken once so many tokens more have come, one on each branch."""
        return self._depth + 1

    def extend(
        self, is_real: Bool[Tensor, "batch branches"]
    ) -> tuple[Int[Tensor, "batch branches"], Bool[Tensor, "batch 1 branches tokens"]]:
        """Announce a token for each branch; learn their positions and which tokens, old and new, each of them sees."""
        batch, n_branches = is_real.shape
        itself = torch.eye(n_branches, dtype=torch.bool, device=is_real.device).expand(batch, -1, -1)
        self._sees = torch.cat([self._sees, itself], dim=-1) if self._depth else itself
        positions = torch.full_like(is_real, self._depth, dtype=torch.long)
        self._depth += 1
        return positions, rearrange(self._sees, "batch branches tokens -> batch 1 branches tokens")

    def branch(self, rows: Int[Tensor, " kept"], branches: Int[Tensor, "kept branches"]) -> None:
        """Keep these sentences, and of each of them these branches; one may come more than once, and then parts.

        Tokens that no branch sees any more are dropped when there are many of them, or when a sentence leaves and the
        rest is copied anyway.
        """
        n_rows, _, n_tokens = self._sees.shape
        self._sees = self._sees[rows[:, None], branches]
        is_seen = self._sees.any(dim=1)
        n_seen = int(is_seen.sum(dim=-1).max())
        if len(rows) == n_rows and n_tokens <= SPARE * n_seen:
            return
        places = is_seen.int().argsort(dim=-1, descending=True, stable=True)[:, :n_seen]
        self._sees = self._sees.take_along_dim(places[:, None], dim=-1)
        for layer in self.layers:
            layer.self_attention.select_tokens(rows, places)
            if len(rows) < n_rows:
                layer.cross_attention.select(rows)


def can_branch(model: nn.Module) -> bool:
    """Whether the model's decoder looks wherever its cache says: it has no window, and no bias by the order of keys."""
    decoder: Any = model._modules.get("decoder")
    if type(decoder) is StepDecoder:
        return True
    layers = getattr(decoder, "layers", ())
    return len(layers) > 0 and all(type(layer) is DecoderLayer and layer.cross_attention for layer in layers)
