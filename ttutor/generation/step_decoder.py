"""A decoder for the steps of a search: the same layers, and what every layer would do again done once.

With a hundred rows the products of a layer take some hundred microseconds, and twice as much went into checks, views
and kernels that hardly do more than start. Here queries, keys and values are one product, the mask is drawn once for
all layers, and the scores of all heads and rows are one product of a batch of matrices.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ttutor.attention import scaled_dot_product_attention
from ttutor.cache import DecoderCache, KeyValueCache, layer_caches
from ttutor.decoder import Decoder, DecoderLayer
from ttutor.efficient import efficient_attention
from ttutor.generation.packed_weights import PackedLinear, can_be_packed, packed, with_packed_weights
from ttutor.layers import FeedForward, LayerNorm, PreNorm
from ttutor.masks import CAUSAL, Mask, both
from ttutor.multihead import MultiHeadAttention

FEWEST = 16
"""Keys that are always read, those that nobody sees included: kernels go through fewer of them number by number."""


def made_for_search(model: nn.Module) -> nn.Module:
    """The same model, for a search in float32 on a CPU with oneDNN; elsewhere the model itself.

    Its weights are packed, and its decoder is a `StepDecoder` where that computes the same. The given model stays as
    it is.
    """
    prepared, decoder = with_packed_weights(model), model._modules.get("decoder")
    if prepared is not model and type(decoder) is Decoder and all(map(_can_step, decoder.layers)):
        prepared._modules["decoder"] = StepDecoder(decoder)
    return prepared


class StepDecoder(nn.Module):
    """`Decoder` for inference with a cache of `StepCache`, in float32 on a CPU.

    Args:
        decoder: of plain pre-norm layers with cross-attention; it must not change from now on.
    """

    make_cache: Callable[..., KeyValueCache]

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.make_cache = StepCache
        self.layers = nn.ModuleList(StepLayer(cast(DecoderLayer, layer)) for layer in decoder.layers)
        self.final_norm = decoder.final_norm

    def forward(
        self,
        hidden: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        mask: Mask | Bool[Tensor, "..."] | None,
        memory_mask: Mask | Bool[Tensor, "..."] | None,
        cache: DecoderCache,
    ) -> Float[Tensor, "batch target d_model"]:
        """Send the stream through all layers; arguments as for `Decoder.forward`."""
        n_new, caches = hidden.shape[1], cast(list[Any], layer_caches(cache, len(self.layers)))
        sees = both(CAUSAL if n_new > 1 else None, mask)  # a single query is the last one and sees all keys
        table = _table(sees, n_new, len(caches[0].self_attention) + n_new)
        memory_table = _table(both(None, memory_mask), n_new, memory.shape[1])
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            hidden = layer(hidden, memory, table, memory_table, layer_cache.self_attention, layer_cache.cross_attention)
        return self.final_norm(hidden)


class StepLayer(nn.Module):
    """`DecoderLayer` with one product for all that is made of one input.

    Args:
        layer: what it computes; the scale of the scores goes into the weights of the queries.
    """

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        own, other = layer.self_attention, cast(MultiHeadAttention, layer.cross_attention)
        self.n_heads, scale = own.n_heads, 1 / math.sqrt(own.d_head)
        self.own_norm, self.memory_norm, self.network_norm = map(_norm, _connections(layer))
        self.to_query_key_value = _side_by_side((own.to_query, scale), (own.to_key, 1.0), (own.to_value, 1.0))
        self.to_query = _side_by_side((other.to_query, scale))
        self.to_key_value = _side_by_side((other.to_key, 1.0), (other.to_value, 1.0))
        self.from_own, self.from_memory = packed(own.to_output), packed(other.to_output)
        self.widen, self.narrow = packed(layer.feed_forward.widen), packed(layer.feed_forward.narrow)
        self.activation = layer.feed_forward.activation

    def forward(
        self,
        hidden: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        table: Float[Tensor, "..."] | None,
        memory_table: Float[Tensor, "..."] | None,
        own: "StepCache",
        other: "StepCache",
    ) -> Float[Tensor, "batch target d_model"]:
        """Look back, look over, transform; the tables are added to the scores of both attentions."""
        query, key, value = self._by_head(self.to_query_key_value(self.own_norm(hidden)), 3)
        hidden = hidden + self.from_own(_attend(query, *own.extend(key, value), table))
        if len(other) == 0:
            other.extend(*self._by_head(self.to_key_value(memory), 2))
        (query,) = self._by_head(self.to_query(self.memory_norm(hidden)), 1)
        hidden = hidden + self.from_memory(_attend(query, *other.with_spare(), memory_table))
        return hidden + self.narrow(self.activation(self.widen(self.network_norm(hidden))))

    def _by_head(
        self, side_by_side: Float[Tensor, "batch tokens width"], n_kinds: int
    ) -> Float[Tensor, "kinds tokens batch heads d_head"]:
        return rearrange(
            side_by_side,
            "batch tokens (kinds heads d_head) -> kinds tokens batch heads d_head",
            kinds=n_kinds,
            heads=self.n_heads,
        )


class StepCache(KeyValueCache):
    """A cache that is written and read as it lies, unchecked, and reads as at least `FEWEST` tokens.

    Tokens that have not come yet are zeros; a table must hide them.
    """

    least_room = FEWEST

    def extend(
        self, key: Float[Tensor, "tokens batch heads d_head"], value: Float[Tensor, "tokens batch heads d_head"]
    ) -> tuple[Tensor, Tensor]:
        """Take in new tokens; give all so far, as `with_spare` does."""
        self._write(key, value)
        self._clear_spare()
        return self.with_spare()

    def with_spare(self) -> tuple[Tensor, Tensor]:
        """Keys and values, ``tokens batch heads d_head``."""
        n_read, (key, value) = max(FEWEST, len(self)), self._buffers()
        return key[:n_read], value[:n_read]

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows of the batch, in this order."""
        super().select(rows)
        self._clear_spare()

    def select_tokens(self, rows: Int[Tensor, " rows"], places: Int[Tensor, "rows kept"]) -> None:
        """Keep these rows of the batch, and of each of them the tokens at these places."""
        super().select_tokens(rows, places)
        self._clear_spare()

    def _clear_spare(self) -> None:
        if len(self) < FEWEST:
            for kind in self._buffers():
                kind[len(self) : FEWEST] = 0.0


def _attend(
    query: Float[Tensor, "queries batch heads d_head"],
    key: Float[Tensor, "keys batch heads d_head"],
    value: Float[Tensor, "keys batch heads d_head"],
    table: Float[Tensor, "..."] | None,
) -> Float[Tensor, "batch queries d_model"]:
    """Attention of scaled queries, all heads of all rows as one batch of matrices."""
    batch = query.shape[1]
    query = rearrange(query, "queries batch heads d_head -> (batch heads) queries d_head")
    scores = torch.bmm(query, rearrange(key, "keys batch heads d_head -> (batch heads) d_head keys"))
    if table is not None:
        rearrange(scores, "(batch heads) queries keys -> batch heads queries keys", batch=batch).add_(table)
    value = rearrange(value, "keys batch heads d_head -> (batch heads) keys d_head")
    context = torch.bmm(scores.softmax(dim=-1), value)
    return rearrange(context, "(batch heads) queries d_head -> batch queries (heads d_head)", batch=batch)


def _table(mask: Mask, n_queries: int, n_keys: int) -> Float[Tensor, "..."] | None:
    """What is added to the scores: minus infinity where a query may not look, at spare keys too."""
    allowed = mask.materialise(n_queries, n_keys)
    if n_keys < FEWEST:
        allowed = torch.ones(1, n_keys, dtype=torch.bool) if allowed is None else allowed
        allowed = functional.pad(allowed.expand(*allowed.shape[:-1], n_keys), (0, FEWEST - n_keys), value=False)
    if allowed is None or allowed.all():
        return None
    return torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf)


def _norm(around: PreNorm) -> Callable[[Tensor], Tensor]:
    """The `LayerNorm` of a residual connection, without its check."""
    norm: Any = around.norm
    return partial(
        functional.layer_norm, normalized_shape=norm.gain.shape, weight=norm.gain, bias=norm.bias, eps=norm.eps
    )


def _side_by_side(*maps: tuple[nn.Linear, float]) -> PackedLinear:
    """Several linear maps of one input as one, each times a factor."""
    weight = torch.cat([linear.weight.detach() * factor for linear, factor in maps])
    biases = [linear.bias.detach() * factor for linear, factor in maps if linear.bias is not None]
    return PackedLinear(weight, torch.cat(biases) if biases else None)


def _connections(layer: DecoderLayer) -> tuple[Any, Any, Any]:
    return layer.around_self_attention, layer.around_cross_attention, layer.around_feed_forward


def _can_step(layer: nn.Module) -> bool:
    """Whether a layer is what `StepLayer` computes, and nobody watches its parts."""
    if type(layer) is not DecoderLayer or layer.cross_attention is None:
        return False
    parts = list(layer.modules())
    return (
        all(map(_is_plain, (layer.self_attention, layer.cross_attention)))
        and all(type(around) is PreNorm and type(around.norm) is LayerNorm for around in _connections(layer))
        and type(layer.feed_forward) is FeedForward
        and all(can_be_packed(part) for part in parts if isinstance(part, nn.Linear))
        and not any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    )


def _is_plain(attention: MultiHeadAttention) -> bool:
    """Whether an attention has a key and a value of its own for every head, and none of its other choices."""
    return (
        type(attention) is MultiHeadAttention
        and attention.n_kv_heads == attention.n_heads
        and attention.scale is None
        and type(attention.query_norm) is nn.Identity
        and attention.attend in (efficient_attention, scaled_dot_product_attention)
    )
