"""What a model offers to whoever writes with it, and the two kinds of model that do.

A `Writer` starts from token ids and then takes step after step. What it remembers in between is a `WritingState`, an
argument of every call and never a state of the model, so that one model writes many texts at once.
"""

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, check_is_real
from ttutor.generation.stopping import check_token_id
from ttutor.names import AnsweringModel
from ttutor.shapes import check_shapes


@dataclass
class WritingState:
    """What a model remembers of the texts that it is writing, one a row.

    Attributes:
        history: the tokens that it has read of each row, -1 where a row has none.
        cache: the keys and values of these tokens.
        memory: an encoder's output; None in a decoder-only model.
        memory_mask: which of the memory's tokens are real.
    """

    history: Int[Tensor, "rows tokens"]
    cache: DecoderCache
    memory: Float[Tensor, "rows source d_model"] | None = None
    memory_mask: Bool[Tensor, "rows 1 1 source"] | None = None

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may come more than once.

        When the longest rows have left, the padding that they forced on the others goes too: a model that counts its
        cache would otherwise run out of room for a row earlier in a batch than alone.
        """
        has_shrunk = len(rows) < len(self.history)
        self.history = self.history.index_select(0, rows)
        self.cache.select(rows)
        if self.memory is not None and self.memory_mask is not None:
            self.memory, self.memory_mask = self.memory.index_select(0, rows), self.memory_mask.index_select(0, rows)
        if has_shrunk and self.cache.n_tokens > 0:
            self.keep_tokens(self.cache.is_real)

    def keep_tokens(self, is_kept: Bool[Tensor, "rows tokens"]) -> None:
        """Keep these tokens of each row, with all padding on the left, and no more of it than the longest row needs."""
        n_used = int(is_kept.any(dim=0).nonzero().max()) + 1
        self.cache.forget(is_kept.shape[1] - n_used)  # what no row keeps at the end, which is all that one row drops
        self.history, is_kept = self.history[:, :n_used], is_kept[:, :n_used]
        if is_kept.all():
            return
        order = _padding_first(is_kept)
        shorter = DecoderCache(len(self.cache.layers))
        shorter.extend(is_kept.gather(1, order))
        for old, new in zip(self.cache.layers, shorter.layers, strict=True):
            places = rearrange(order, "rows tokens -> rows 1 tokens 1")
            new.self_attention.append(*(kind.take_along_dim(places, dim=2) for kind in old.self_attention.read()))
        self.history = self.history.gather(1, order).masked_fill(~is_kept.gather(1, order), -1)
        self.cache = shorter


class Prompt(NamedTuple):
    """A beginning that a model has read already and that many texts may go on from; `read_prompt` makes one.

    Attributes:
        token_ids: its tokens.
        cache: what the model remembers of them.
    """

    token_ids: Int[Tensor, "1 tokens"]
    cache: DecoderCache


@runtime_checkable
class Writer(Protocol):
    """A model that writes.

    Attributes:
        config: has ``vocab_size``, and ``max_len`` in a model with a last position.
    """

    config: Any

    def start(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        *,
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        bos_id: int | None = None,
        prefix: Prompt | None = None,
    ) -> tuple[WritingState, Int[Tensor, " batch"]]:
        """Read what there is to read; give the state, and the token with which the first step begins each row.

        Args:
            token_ids: the sentences to read, or the prompts to continue.
            is_real: which tokens of a prompt are no padding.
            bos_id: the token that starts every target of an encoder-decoder.
            prefix: what all prompts of a decoder-only model go on from.
        """
        ...

    def step(
        self,
        state: WritingState,
        token_ids: Int[Tensor, "rows new"],
        is_real: Bool[Tensor, "rows new"] | None = None,
    ) -> Float[Tensor, "rows new d_model"]:
        """Append tokens to each row of the state; give a hidden vector for each.

        Args:
            state: what is remembered of the rows; it is extended.
            token_ids: the next tokens.
            is_real: which of them are no padding; all when left out, also those that are a model's padding token, with
                which T5 and Marian start a target.
        """
        ...

    def project(self, hidden: Float[Tensor, "rows d_model"]) -> Float[Tensor, "rows vocab_size"]:
        """Logits of the token after each hidden vector."""
        ...


def check_writes(model: nn.Module) -> Writer:
    """Refuse a model that cannot write; give one that can."""
    if not isinstance(model, Writer):
        raise TypeError(
            "generation needs a model with start, step and project, as EncoderDecoder and DecoderOnly of "
            f"ttutor.generation give them, but {type(model).__name__} is none"
        )
    return model


class EncoderDecoder(AnsweringModel, nn.Module):
    """A `Writer` that reads a source and begins its target with a start token.

    What inherits from it has a ``config``, ``encode``, ``decode`` and ``project``.
    """

    config: Any
    encode: Any
    decode: Any

    def start(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        *,
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        bos_id: int | None = None,
        prefix: Prompt | None = None,
    ) -> tuple[WritingState, Int[Tensor, " batch"]]:
        """Encode the sources, in which tokens equal to the config's ``pad_id`` count as nothing."""
        if bos_id is None:
            raise ValueError("an encoder-decoder begins its target with a start token: give its id as bos_id")
        if prefix is not None:
            raise ValueError("an encoder-decoder begins each target anew: only a decoder-only model takes a prefix")
        if is_real is not None:
            raise ValueError(
                "an encoder-decoder knows padding by its config's pad_id: use that id, and leave is_real out"
            )
        check_token_id("bos_id", bos_id, self.config.vocab_size)
        state = WritingState(
            token_ids.new_zeros(len(token_ids), 0),
            DecoderCache(self.config.n_layers),
            self.encode(token_ids),
            rearrange(token_ids != self.config.pad_id, "batch source -> batch 1 1 source"),
        )
        return state, token_ids.new_full((len(token_ids),), bos_id)

    def step(
        self,
        state: WritingState,
        token_ids: Int[Tensor, "rows new"],
        is_real: Bool[Tensor, "rows new"] | None = None,
    ) -> Float[Tensor, "rows new d_model"]:
        """Decode the next tokens of each target."""
        is_real = _announce(state, token_ids, is_real)
        return self.decode(token_ids, state.memory, state.memory_mask, state.cache, is_real=is_real)


class DecoderOnly(AnsweringModel, nn.Module):
    """A `Writer` that goes on from a prompt.

    What inherits from it has a ``config``, ``decode`` and ``project``.
    """

    config: Any
    decode: Any

    def start(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        *,
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        bos_id: int | None = None,
        prefix: Prompt | None = None,
    ) -> tuple[WritingState, Int[Tensor, " batch"]]:
        """Read the prompts but for their last tokens, with which the first step begins.

        Every prompt is pushed against the right edge, wherever its padding stood, so that the last tokens stand in one
        column, and the cache is no longer than the longest prompt.
        """
        if bos_id is not None:
            raise ValueError("a decoder-only model goes on from its prompt: put the start token there, not in bos_id")
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        check_is_real(is_real)
        check_shapes(token_ids=(token_ids, "batch tokens"), is_real=(is_real, "batch tokens"))
        n_before = 0 if prefix is None else prefix.token_ids.shape[-1]
        check_prompts(is_real.sum(dim=-1).tolist(), max_len(self.config) - n_before)
        order = _padding_first(is_real)
        token_ids, is_real = token_ids.gather(1, order), is_real.gather(1, order)
        state = WritingState(token_ids.new_zeros(len(token_ids), 0), DecoderCache(self.config.n_layers))
        if prefix is not None:
            state = WritingState(prefix.token_ids, copy.deepcopy(prefix.cache))
            state.select(torch.zeros(len(token_ids), dtype=torch.long, device=token_ids.device))
        if token_ids.shape[-1] > 1:
            self.step(state, token_ids[:, :-1], is_real[:, :-1])
        return state, token_ids[:, -1]

    def step(
        self,
        state: WritingState,
        token_ids: Int[Tensor, "rows new"],
        is_real: Bool[Tensor, "rows new"] | None = None,
    ) -> Float[Tensor, "rows new d_model"]:
        """Read the next tokens of each text."""
        return self.decode(token_ids, _announce(state, token_ids, is_real), state.cache)


def max_len(config: Any) -> int | float:
    """How many positions a model has; infinity for one that knows no last one."""
    last = getattr(config, "max_len", None)
    return math.inf if last is None else last


def check_prompts(n_prompt: list[int], longest: int | float) -> None:
    """Refuse prompts without a token, and those that are too long."""
    for row, n_tokens in enumerate(n_prompt):
        if n_tokens == 0:
            raise ValueError(f"prompt {row} has no real token: a decoder-only model needs one to go on from")
        if n_tokens > longest:
            raise ValueError(f"prompt {row} has {n_tokens} tokens, more than the {longest} positions this model knows")


def _announce(
    state: WritingState, token_ids: Int[Tensor, "rows new"], is_real: Bool[Tensor, "rows new"] | None
) -> Bool[Tensor, "rows new"]:
    """Write tokens into the history; give which of them are real."""
    is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
    state.history = torch.cat([state.history, token_ids.masked_fill(~is_real, -1)], dim=1)
    return is_real


def _padding_first(is_real: Bool[Tensor, "rows tokens"]) -> Int[Tensor, "rows fewer"]:
    """Each row's places, padding first and no more of it than needed; real tokens stay in their order."""
    n_columns = int(is_real.sum(dim=-1).max()) if len(is_real) else 1
    return is_real.int().argsort(dim=-1, stable=True)[:, is_real.shape[-1] - n_columns :]
