"""Rows that share a memory: however wide a beam, a sentence's keys and values are computed and kept once.

The partial hypotheses of a sentence stand in neighbouring rows and look at the same memory. To cross-attention they can
be one row with as many more queries, since no query of it looks at another.
"""

import copy
from typing import Any

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.cache import KeyValueCache
from ttutor.masks import Mask
from ttutor.multihead import MultiHeadAttention


class SharedMemoryAttention(nn.Module):
    """Cross-attention in which ``copies`` neighbouring rows look at one row of the memory.

    Args:
        attention: a model's cross-attention.
        copies: how many rows share a memory.
    """

    def __init__(self, attention: MultiHeadAttention, copies: int) -> None:
        super().__init__()
        self.attention, self.copies = attention, copies

    def forward(
        self,
        query: Float[Tensor, "rows queries d_model"],
        key: Float[Tensor, "rows keys d_model"],
        *,
        mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "rows queries d_model"]:
        """Make the rows that share a memory one row, look, and part them again; mask and cache are of memories."""
        together = "(memory copies) queries d_model -> memory (copies queries) d_model"
        apart = "memory (copies queries) d_model -> (memory copies) queries d_model"
        query, key = rearrange(query, together, copies=self.copies), key[:: self.copies]
        return rearrange(self.attention(query, key, mask=mask, cache=cache), apart, copies=self.copies)


def can_share_memory(model: nn.Module) -> bool:
    """Whether the model is built so that `with_shared_memory` finds its cross-attention."""
    layers = getattr(model._modules.get("decoder"), "layers", ())
    return len(layers) > 0 and all(
        isinstance(getattr(layer, "cross_attention", None), MultiHeadAttention) for layer in layers
    )


def with_shared_memory(model: nn.Module, copies: int) -> nn.Module:
    """The same model with the same parameters, in which ``copies`` neighbouring rows of the target share a memory.

    It is a copy of the containers alone; the given model stays as it is and may be at work elsewhere.
    """
    if copies == 1:
        return model
    decoder: Any = model.decoder
    layers = [
        _with_parts(layer, cross_attention=SharedMemoryAttention(layer.cross_attention, copies))
        for layer in decoder.layers
    ]
    return _with_parts(model, decoder=_with_parts(decoder, layers=nn.ModuleList(layers)))


def _with_parts(module: nn.Module, **parts: nn.Module) -> nn.Module:
    """A shallow copy of a module in which some submodules are others."""
    changed = copy.copy(module)
    changed._modules = {**module._modules, **parts}
    return changed
