"""A translator's model for searches on a CPU: what every layer and step would do again is done once.

With a hundred rows the products of a layer take some hundred microseconds, and twice as much went into checks, views
and kernels that hardly do more than start. Here the weights lie as the products read them, queries, keys and values are
one product, the mask is drawn once for all layers, and the scores of all heads and rows are one product of a batch of
matrices.

The partial hypotheses of a sentence are branches of one row. A beam search puts them in another order at every step,
and were each a row of the cache, all keys and values would move with it. Here none moves: the tokens of all branches
stand in one row in the order in which they came, and a mask says which of them each branch sees, those on its own way
from the root. So all branches of a sentence look at one memory, too.
"""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import efficient_attention
from ttutor.generation import Prompt, WritingState
from ttutor.layers.unfilled import Unfilled
from ttutor.multihead import MultiHeadAttention
from ttutor.transformer import Transformer, TransformerConfig

__all__ = ["FastTransformer", "can_be_fast"]

MIN_KEYS = 16
"""Keys that are always read, those that nobody sees included: kernels go through fewer of them number by number."""

MAX_SLACK = 1.25
"""How many times as many tokens as anybody sees may be kept, before those that nobody sees are dropped."""


WORTH_ROUNDING = 2**23
"""Multiplications below which a product in half precision takes longer than in float32, since oneDNN prepares each."""


def can_be_fast(model: Transformer) -> bool:
    """Whether a model is what its config says, in float32 on a CPU, and nobody watches its parts or has changed one."""
    parts = list(model.modules())
    return (
        _parts_of(model) == _parts_as_built(model.config)
        and all(weight.is_cpu and weight.dtype == torch.float32 for weight in model.parameters())
        and all(
            part.attend in (efficient_attention, scaled_dot_product_attention)
            for part in parts
            if isinstance(part, MultiHeadAttention)
        )
        and not any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    )


@cache
def _parts_as_built(config: TransformerConfig) -> list[tuple[str, type]]:
    """The parts that a model of this config is made of."""
    with torch.device("meta"), Unfilled():
        return _parts_of(Transformer(config))


def _parts_of(model: nn.Module) -> list[tuple[str, type]]:
    return [(name, type(part)) for name, part in model.named_modules()]


class FastTransformer(nn.Module):
    """A `Writer` that writes what a `Transformer` does, for inference on a CPU.

    Args:
        model: in float32, as its config says; its weights must not change from now on.
        dtype: the number format of the matrix products; small ones stay in float32, where they are faster.
    """

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.model, self.config = model, model.config
        layers: Any = model.decoder.layers
        self.fast_layers = [FastLayer(layer, dtype) for layer in layers]
        self.to_logits = _product(dtype, model.to_logits)

    def start(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        *,
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        bos_id: int | None = None,
        prefix: Prompt | None = None,
    ) -> tuple["BranchingState", Int[Tensor, " batch"]]:
        """Encode the sources; arguments and errors as for `ttutor.generation.EncoderDecoder.start`."""
        state, first = self.model.start(token_ids, is_real=is_real, bos_id=bos_id, prefix=prefix)
        n_more = max(0, MIN_KEYS - token_ids.shape[1])
        branching = BranchingState(
            state.history,
            state.cache,
            memory_mask=functional.pad(cast(Tensor, state.memory_mask), (0, n_more), value=False),
            sees=torch.zeros(len(token_ids), 1, 0, dtype=torch.bool),
        )
        for layer in self.fast_layers:
            branching.own.append(KeysAndValues())
            branching.of_memory.append(KeysAndValues())
            branching.of_memory[-1].extend(layer.read_memory(cast(Tensor, state.memory)))
        return branching, first

    def step(
        self,
        state: "BranchingState",
        token_ids: Int[Tensor, "rows 1"],
        is_real: Bool[Tensor, "rows 1"] | None = None,
    ) -> Float[Tensor, "rows 1 d_model"]:
        """Append a token to each branch; give a hidden vector for each."""
        sees = state.extend(token_ids)
        token_ids = rearrange(token_ids, "(batch branches) 1 -> batch branches", batch=len(sees))
        positions = torch.full_like(token_ids, state.history.shape[1] - 1)
        hidden = self.model.target_embeddings(token_ids, positions)
        table, memory_table = _scores_to_add(sees), _scores_to_add(state.memory_mask)
        for layer, own, of_memory in zip(self.fast_layers, state.own, state.of_memory, strict=True):
            hidden = layer.step(hidden, own, of_memory, table, memory_table)
        return rearrange(self.model.decoder.final_norm(hidden), "batch branches d_model -> (batch branches) 1 d_model")

    def project(self, hidden: Float[Tensor, "rows d_model"]) -> Float[Tensor, "rows vocab_size"]:
        """Logits of the token after each hidden vector."""
        return self.to_logits(hidden)


@dataclass
class BranchingState(WritingState):
    """A row for each sentence, on which its partial hypotheses are branches; as many of every sentence.

    Attributes:
        history: the tokens of each branch; those of a sentence stand together.
        memory_mask: which tokens of the memory are real; a sentence has one row.
        sees: which of its sentence's tokens, in the order in which they came, each branch sees.
        own: keys and values of these tokens, in each layer.
        of_memory: keys and values of the memory, in each layer.
    """

    sees: Bool[Tensor, "batch branches tokens"] = field(kw_only=True)
    own: list["KeysAndValues"] = field(default_factory=list)
    of_memory: list["KeysAndValues"] = field(default_factory=list)

    def extend(self, token_ids: Int[Tensor, "rows 1"]) -> Bool[Tensor, "batch 1 branches keys"]:
        """Take in a token for each branch; give which keys each of them sees, at least `MIN_KEYS` of them."""
        self.history = torch.cat([self.history, token_ids], dim=1)
        batch, n_branches, n_tokens = self.sees.shape
        itself = torch.eye(n_branches, dtype=torch.bool).expand(batch, -1, -1)
        self.sees = torch.cat([self.sees, itself], dim=-1)
        n_more = max(0, MIN_KEYS - n_tokens - n_branches)
        return rearrange(
            functional.pad(self.sees, (0, n_more), value=False), "batch branches keys -> batch 1 branches keys"
        )

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these branches, in this order; every remaining sentence keeps the same number.

        Tokens that no branch sees any more are dropped when there are many of them, or when a sentence leaves or moves
        and the rest is copied anyway.
        """
        n_sentences, n_branches, n_tokens = self.sees.shape
        self.history = self.history.index_select(0, rows)
        kept = (rows // n_branches).unique_consecutive()
        branches = rearrange(rows % n_branches, "(kept branches) -> kept branches", kept=len(kept))
        self.sees = self.sees[kept[:, None], branches]
        is_seen = self.sees.any(dim=1)
        n_seen = int(is_seen.sum(dim=-1).max())
        is_as_before = torch.equal(kept, torch.arange(n_sentences))
        if is_as_before and n_tokens <= MAX_SLACK * n_seen:
            return
        places = is_seen.int().argsort(dim=-1, descending=True, stable=True)[:, :n_seen]
        self.sees = self.sees.take_along_dim(places[:, None], dim=-1)
        for own in self.own:
            own.select_tokens(kept, places)
        if not is_as_before and self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, kept)
            for of_memory in self.of_memory:
                of_memory.select(kept)


class KeysAndValues:
    """The keys and values of an attention, as the products give and read them.

    At least `MIN_KEYS` tokens are read; those that have not come are zeros, and a mask must hide them.
    """

    def __init__(self) -> None:
        self.n_tokens = 0
        self.buffer: Tensor | None = None  # two tokens batch heads d_head, with spare room

    def extend(self, new: Float[Tensor, "two tokens batch heads d_head"]) -> None:
        """Take in new tokens; the room is doubled when it runs out."""
        start, end = self.n_tokens, self.n_tokens + new.shape[1]
        if self.buffer is None or end > self.buffer.shape[1]:
            old, self.buffer = self.buffer, _with_room(new, max(end, 2 * start))
            if old is not None:
                self.buffer[:, :start] = old[:, :start]
        self.buffer[:, start:end] = new
        self.n_tokens = end

    def read(self) -> Float[Tensor, "two keys batch heads d_head"]:
        """The keys and values of all tokens."""
        return cast(Tensor, self.buffer)[:, : max(MIN_KEYS, self.n_tokens)]

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows of the batch."""
        self.buffer = self.read().index_select(2, rows)

    def select_tokens(self, rows: Int[Tensor, " kept"], places: Int[Tensor, "kept tokens"]) -> None:
        """Keep these rows of the batch, and of each of them the tokens at these places."""
        old, self.n_tokens = cast(Tensor, self.buffer), places.shape[1]
        flat = rearrange(places * old.shape[2] + rows[:, None], "kept tokens -> (tokens kept)")
        self.buffer = _with_room(old[:, :, : len(rows)], old.shape[1])
        for kind, kept in zip(old, self.buffer, strict=True):
            torch.index_select(kind.flatten(0, 1), 0, flat, out=kept[: self.n_tokens].flatten(0, 1))


class FastLayer:
    """`ttutor.decoder.DecoderLayer` with one product for all that is made of one input.

    Args:
        layer: what it computes; the scale of the scores goes into the weights of the queries.
        dtype: the number format of the matrix products.
    """

    def __init__(self, layer: Any, dtype: torch.dtype) -> None:
        own, other, network = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.n_heads, scale = own.n_heads, 1 / math.sqrt(own.d_head)
        self.around_own, self.around_other = layer.around_self_attention, layer.around_cross_attention
        self.around_network, self.activation = layer.around_feed_forward, network.activation
        self.to_query_key_value = _product(dtype, own.to_query, own.to_key, own.to_value, scale=scale)
        self.to_query = _product(dtype, other.to_query, scale=scale)
        self.to_key_value = _product(dtype, other.to_key, other.to_value)
        self.from_own, self.from_other = _product(dtype, own.to_output), _product(dtype, other.to_output)
        self.widen, self.narrow = _product(dtype, network.widen), _product(dtype, network.narrow)

    def read_memory(
        self, memory: Float[Tensor, "batch source d_model"]
    ) -> Float[Tensor, "two source batch heads d_head"]:
        """The keys and values of the memory."""
        return self._by_head(self.to_key_value(memory), 2)

    def step(
        self,
        hidden: Float[Tensor, "batch branches d_model"],
        own: KeysAndValues,
        of_memory: KeysAndValues,
        table: Float[Tensor, "batch 1 branches keys"] | None,
        memory_table: Float[Tensor, "batch 1 1 source"] | None,
    ) -> Float[Tensor, "batch branches d_model"]:
        """Look back, look over, transform; the tables are added to the scores of both attentions."""

        def look_back(stream: Tensor) -> Tensor:
            query, *key_value = self._by_head(self.to_query_key_value(stream), 3).split((1, 2))
            own.extend(key_value[0])
            return self.from_own(_attend(query[0], own.read(), table))

        def look_over(stream: Tensor) -> Tensor:
            (query,) = self._by_head(self.to_query(stream), 1)
            return self.from_other(_attend(query, of_memory.read(), memory_table))

        hidden = self.around_other(self.around_own(hidden, look_back), look_over)
        return self.around_network(hidden, lambda stream: self.narrow(self.activation(self.widen(stream))))

    def _by_head(
        self, side_by_side: Float[Tensor, "batch tokens width"], n_kinds: int
    ) -> Float[Tensor, "kinds tokens batch heads d_head"]:
        return rearrange(
            side_by_side,
            "batch tokens (kinds heads d_head) -> kinds tokens batch heads d_head",
            kinds=n_kinds,
            heads=self.n_heads,
        )


def _attend(
    query: Float[Tensor, "queries batch heads d_head"],
    key_value: Float[Tensor, "two keys batch heads d_head"],
    table: Float[Tensor, "..."] | None,
) -> Float[Tensor, "batch queries d_model"]:
    """Attention of scaled queries, all heads of all rows as one batch of matrices."""
    (key, value), batch = key_value, query.shape[1]
    query = rearrange(query, "queries batch heads d_head -> (batch heads) queries d_head")
    scores = torch.bmm(query, rearrange(key, "keys batch heads d_head -> (batch heads) d_head keys"))
    if table is not None:
        rearrange(scores, "(batch heads) queries keys -> batch heads queries keys", batch=batch).add_(table)
    value = rearrange(value, "keys batch heads d_head -> (batch heads) keys d_head")
    context = torch.bmm(scores.softmax(dim=-1), value)
    return rearrange(context, "(batch heads) queries d_head -> batch queries (heads d_head)", batch=batch)


def _scores_to_add(allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "..."] | None:
    """Minus infinity where a query may not look; nothing at all where it may look at everything."""
    if allowed is None or allowed.all():
        return None
    return torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf)


def _with_room(like: Tensor, n_tokens: int) -> Float[Tensor, "two room batch heads d_head"]:
    """A buffer for so many tokens, the first `MIN_KEYS` of them zeros."""
    kinds, _, *rest = like.shape
    buffer = like.new_empty(kinds, max(n_tokens, MIN_KEYS), *rest)
    buffer[:, :MIN_KEYS] = 0.0
    return buffer


def _product(dtype: torch.dtype, *maps: nn.Linear, scale: float = 1.0) -> Any:
    """Several linear maps of one input as one, the first times a scale; the weights lie as the product reads them."""
    factors = [scale] + [1.0] * (len(maps) - 1)
    weight = torch.cat([linear.weight.detach() * factor for linear, factor in zip(maps, factors, strict=True)])
    biases = [
        linear.bias.detach() * factor for linear, factor in zip(maps, factors, strict=True) if linear.bias is not None
    ]
    bias = torch.cat(biases) if biases else None
    by_column = weight.t().contiguous().t()
    if dtype == torch.float32:
        return lambda hidden: functional.linear(hidden, by_column, bias)
    rounded, rounded_bias = by_column.to(dtype), bias if bias is None else bias.to(dtype)

    def multiply(hidden: Tensor) -> Tensor:
        if len(rounded) * hidden.numel() < WORTH_ROUNDING:
            return functional.linear(hidden, by_column, bias)
        return functional.linear(hidden.to(dtype), rounded, rounded_bias).float()

    return multiply
