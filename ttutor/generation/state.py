"""Sequences under way: what a model must remember between one token and the next.

Both states speak one language. `next_log_probabilities` feeds a token of each row and gives the distribution of the
token after it; `select` keeps some rows. Generated tokens always count as real, also where a model uses its padding
token to start a target, as T5 and Marian do.
"""

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.cache import DecoderCache, KeyValueCache, check_is_real
from ttutor.efficient.attention_call import find_lengths
from ttutor.evaluating import evaluating
from ttutor.generation.branches import BranchingCache, can_branch
from ttutor.generation.stopping import check_token_id
from ttutor.masks import Mask
from ttutor.shapes import check_shapes

PART = 2**19
"""How many logits a CPU makes at a time."""


class DecodingState:
    """What the two states share: the cache, and what was fed so far.

    Args:
        model: what predicts.
        history: the tokens of each row that the cache holds, -1 where a row has none.
        n_prompt: for each sequence how many of the model's positions are taken once the first token is fed.
    """

    def __init__(self, model: Any, history: Int[Tensor, "rows tokens"], n_prompt: list[int]) -> None:
        self.model = model
        self.history = history
        self.n_prompt = n_prompt
        self.cache = DecoderCache(model.config.n_layers, make_cache=_make_cache(model))

    def next_log_probabilities(self, token_ids: Int[Tensor, " rows"]) -> Float[Tensor, "rows vocab_size"]:
        """Append one token to each row; give the distribution of the token after it."""
        return torch.cat([log_probabilities for _, log_probabilities in self.next_in_parts(token_ids)])

    def next_in_parts(
        self, token_ids: Int[Tensor, " rows"], together: int = 1
    ) -> Iterator[tuple[slice, Float[Tensor, "some vocab_size"]]]:
        """The same, some rows at a time, so that a CPU ranks their numbers while they are in its cache.

        Args:
            token_ids: the token to append to each row.
            together: how many neighbouring rows always come together, as those of a beam.

        Yields:
            Which rows they are, and their distributions.
        """
        new = rearrange(token_ids, "rows -> rows 1")
        self.history = torch.cat([self.history, new], dim=1)
        hidden = self._decode(new, torch.ones_like(new, dtype=torch.bool))[:, -1]
        n_groups = max(1, PART // (together * self.model.config.vocab_size)) if hidden.is_cpu else len(hidden)
        for start in range(0, len(hidden), n_groups * together):
            logits = self.model.project(hidden[start : start + n_groups * together])
            precise = torch.promote_types(logits.dtype, torch.float32)  # bfloat16 cannot sum over a vocabulary
            log_probabilities = logits.to(precise).log_softmax(dim=-1)
            if log_probabilities[:, 0].isnan().any():  # one that is no number makes its whole row none
                raise FloatingPointError(
                    "the model's probabilities are NaN: its weights are damaged, or training diverged"
                )
            yield slice(start, start + len(logits)), log_probabilities

    def _decode(self, token_ids: Int[Tensor, "rows new"], is_real: Bool[Tensor, "rows new"]) -> Tensor:
        raise NotImplementedError("a state says how its model decodes")

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may come more than once."""
        self.history = self.history.index_select(0, rows)
        self.cache.select(rows)

    def limits(self, max_new_tokens: int) -> list[int]:
        """How many tokens each sequence may get: so many, or as many as the model has positions left for.

        The last token needs no position, since nothing is asked after it.
        """
        max_len = _max_len(self.model)
        return [int(min(max_new_tokens, max_len - n + 1)) for n in self.n_prompt]


class TranslationState(DecodingState):
    """A batch of translations under way: the memory, its mask, and the decoder's cache.

    Args:
        model: an encoder-decoder, with ``encode``, ``decode`` and ``project``.
        source_ids: the sentences to translate; those equal to the config's ``pad_id`` count as nothing.
    """

    def __init__(self, model: nn.Module, source_ids: Int[Tensor, "batch source"]) -> None:
        super().__init__(model, source_ids.new_zeros(len(source_ids), 0), n_prompt=[1] * len(source_ids))
        self._look_at(self.model.encode(source_ids), source_ids != self.model.config.pad_id)

    def _look_at(self, memory: Float[Tensor, "batch source d_model"], is_real: Bool[Tensor, "batch source"]) -> None:
        self.memory, self.is_real = memory, is_real
        # Which tokens are real, as lengths where that says it: found out once, not in every layer.
        mask = Mask(dense=rearrange(is_real, "batch source -> batch 1 1 source"))
        self.memory_mask = find_lengths(mask, rearrange(memory, "batch source d_model -> batch 1 source d_model"))

    def _decode(self, token_ids: Int[Tensor, "rows new"], is_real: Bool[Tensor, "rows new"]) -> Tensor:
        return self.model.decode(token_ids, self.memory, self.memory_mask, self.cache, is_real=is_real)

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may come more than once."""
        super().select(rows)
        self._look_at(self.memory.index_select(0, rows), self.is_real.index_select(0, rows))


class BeamState(TranslationState):
    """The same for a beam search, whose partial hypotheses of a sentence are branches of one row of the cache.

    They stand together, as many of each sentence, and sentences leave but never change their order.

    Args:
        model: an encoder-decoder that `ttutor.generation.branches.can_branch`.
        source_ids: as for `TranslationState`.
    """

    def __init__(self, model: nn.Module, source_ids: Int[Tensor, "batch source"]) -> None:
        super().__init__(model, source_ids)
        self.cache: BranchingCache = BranchingCache(self.model.config.n_layers, make_cache=_make_cache(self.model))

    def _decode(self, token_ids: Int[Tensor, "rows 1"], is_real: Bool[Tensor, "rows 1"]) -> Tensor:
        n_sentences = len(self.memory)
        token_ids, is_real = (
            rearrange(of_rows, "(sentence branches) 1 -> sentence branches", sentence=n_sentences)
            for of_rows in (token_ids, is_real)
        )
        hidden = super()._decode(token_ids, is_real)
        return rearrange(hidden, "sentence branches d_model -> (sentence branches) 1 d_model")

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these branches, of each sentence that stays as many as of the others."""
        n_sentences, n_branches = len(self.memory), len(self.history) // len(self.memory)
        self.history = self.history.index_select(0, rows)
        sentence = (rows // n_branches).unique_consecutive()
        self.cache.branch(
            sentence, rearrange(rows % n_branches, "(kept branches) -> kept branches", kept=len(sentence))
        )
        if len(sentence) < n_sentences:
            self._look_at(self.memory.index_select(0, sentence), self.is_real.index_select(0, sentence))


class Prompt(NamedTuple):
    """A beginning that a model has read already and that many texts may go on from; `read_prompt` makes one.

    Attributes:
        token_ids: its tokens.
        cache: what the model remembers of them.
    """

    token_ids: Int[Tensor, "1 tokens"]
    cache: DecoderCache


@torch.inference_mode()
def read_prompt(model: nn.Module, token_ids: Int[Tensor, "1 tokens"], *, chunk_size: int = 512) -> Prompt:
    """Let a decoder-only model read a text once, to generate ``after`` it as often as one likes.

    It is read in chunks, each looking at those before it in the cache, so that the table of scores is no larger than
    ``chunk_size`` times the text: chunked prefill, Agrawal et al. (2023).

    Args:
        model: the model.
        token_ids: the text.
        chunk_size: how many tokens are read at a time.

    Example:
        >>> from ttutor.generation import greedy_search
        >>> from ttutor.variants.gpt import GPT, GPTConfig
        >>> model = GPT(GPTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> rules = read_prompt(model, torch.tensor([[3, 1, 4, 1, 5]]), chunk_size=2)
        >>> questions = torch.tensor([[7, 8], [9, 2]])
        >>> len(greedy_search(model, questions, max_new_tokens=4, after=rules))
        2
    """
    check_shapes(token_ids=(token_ids, "1 tokens"))
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but is {chunk_size}")
    cache, reader = DecoderCache(check_decodes(model).n_layers), cast(Any, model)
    with evaluating(model):
        for chunk in token_ids.split(chunk_size, dim=1):
            reader.decode(chunk, None, cache)
    return Prompt(token_ids, cache)


class ContinuationState(DecodingState):
    """A batch of prompts being continued by a decoder-only model.

    The cache is filled with the prompts but for their last tokens, which are to be fed first: `first`. For that every
    prompt is pushed against the right edge, wherever its padding stood, so that the last tokens stand in one column,
    and the cache is no longer than the longest prompt.

    Args:
        model: a decoder-only model, with ``decode`` and ``project``.
        token_ids: the prompts.
        is_real: which of their tokens count; all when left out.
        copies: rows for each prompt.
        after: what all prompts go on from, if the model has read it already; it can be used again.
    """

    def __init__(
        self,
        model: nn.Module,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        copies: int = 1,
        after: Prompt | None = None,
    ) -> None:
        check_shapes(token_ids=(token_ids, "batch tokens"))
        is_real = torch.ones_like(token_ids, dtype=torch.bool) if is_real is None else is_real
        check_is_real(is_real)
        check_shapes(token_ids=(token_ids, "batch tokens"), is_real=(is_real, "batch tokens"))
        n_before = 0 if after is None else after.token_ids.shape[-1]
        n_prompt = is_real.sum(dim=-1).tolist()
        check_prompts(n_prompt, _max_len(model) - n_before)
        token_ids, is_real = _pushed_right(token_ids, is_real)
        token_ids, self.first = token_ids[:, :-1], repeat(token_ids[:, -1], "batch -> (batch copies)", copies=copies)
        is_real = is_real[:, :-1]
        history = token_ids.masked_fill(~is_real, -1)
        super().__init__(model, history, [n_before + n for n in n_prompt])
        if after is not None:
            self.history = torch.cat([after.token_ids.expand(len(history), -1), history], dim=1)
            self.cache = copy.deepcopy(after.cache)
            self.cache.select(torch.zeros(len(history), dtype=torch.long, device=history.device))
        if token_ids.shape[-1] > 0:
            self._decode(token_ids, is_real)
        rows = torch.arange(len(token_ids), device=token_ids.device)
        super().select(repeat(rows, "batch -> (batch copies)", copies=copies))

    def _decode(self, token_ids: Int[Tensor, "rows new"], is_real: Bool[Tensor, "rows new"]) -> Tensor:
        return self.model.decode(token_ids, is_real, self.cache)

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may come more than once.

        When the longest rows have left, the padding that they forced on the others goes too: a model that counts its
        cache would otherwise run out of room for a row earlier in a batch than alone.
        """
        has_shrunk = len(rows) < len(self.history)
        super().select(rows)
        if has_shrunk and self.cache.n_tokens > 0:
            self.cache = pushed_right(self.cache, self.cache.is_real)
            self.history = self.history[:, self.history.shape[1] - self.cache.n_tokens :]


def begin(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    bos_id: int | None = None,
    after: Prompt | None = None,
    has_beams: bool = False,
) -> tuple[DecodingState, Int[Tensor, " rows"]]:
    """The state that suits the model and the search, and the token to feed each row first.

    A model with ``encode`` is an encoder-decoder: it reads the ids and starts with ``bos_id``. One without is
    decoder-only: the ids are its prompt.
    """
    config = check_decodes(model)
    if not hasattr(model, "encode"):
        if bos_id is not None:
            raise ValueError("a decoder-only model goes on from its prompt: put the start token there, not in bos_id")
        state = ContinuationState(model, token_ids, is_real, after=after)
        return state, state.first
    if bos_id is None:
        raise ValueError("an encoder-decoder begins its target with a start token: give its id as bos_id")
    if after is not None:
        raise ValueError("an encoder-decoder begins each target anew: only a decoder-only model goes on after a prompt")
    if is_real is not None:
        raise ValueError("an encoder-decoder knows padding by its config's pad_id: use that id, and leave is_real out")
    check_token_id("bos_id", bos_id, config.vocab_size)
    kind = BeamState if has_beams and can_branch(model) else TranslationState
    return kind(model, token_ids), token_ids.new_full((len(token_ids),), bos_id)


def check_decodes(model: nn.Module) -> Any:
    """Refuse a model that cannot write; of one that can, give the config, whichever family it is of."""
    for method in ("decode", "project"):
        if not hasattr(model, method):
            raise TypeError(
                f"generation needs a model with decode and project, but {type(model).__name__} has no {method}"
            )
    return model.config


def _make_cache(model: Any) -> Callable[..., KeyValueCache]:
    """What makes the caches of each layer: a decoder may have a kind of its own."""
    return getattr(model._modules.get("decoder"), "make_cache", KeyValueCache)


def _max_len(model: nn.Module) -> int | float:
    """How many positions the model has; infinity for those that know no last one."""
    max_len = getattr(model.config, "max_len", None)
    return math.inf if max_len is None else max_len


def check_prompts(n_prompt: list[int], max_len: int | float) -> None:
    """Refuse prompts without a token, and those that are too long."""
    for row, n_tokens in enumerate(n_prompt):
        if n_tokens == 0:
            raise ValueError(f"prompt {row} has no real token: a decoder-only model needs one to go on from")
        if n_tokens > max_len:
            raise ValueError(f"prompt {row} has {n_tokens} tokens, more than the {max_len} positions this model knows")


def _pushed_right(
    token_ids: Int[Tensor, "batch tokens"], is_real: Bool[Tensor, "batch tokens"]
) -> tuple[Int[Tensor, "batch fewer"], Bool[Tensor, "batch fewer"]]:
    """The same rows with all padding on the left, and no more of it than the longest row needs."""
    order = _padding_first(is_real)
    return token_ids.gather(1, order), is_real.gather(1, order)


def pushed_right(cache: DecoderCache, is_kept: Bool[Tensor, "batch keys"]) -> DecoderCache:
    """A cache of these tokens of each row, with all padding on the left, and no more of it than the longest needs."""
    if is_kept.all():
        return cache
    order = _padding_first(is_kept)
    shorter = DecoderCache(len(cache.layers))
    shorter.extend(is_kept.gather(1, order))
    for old, new in zip(cache.layers, shorter.layers, strict=True):
        key, value = (
            kind.take_along_dim(rearrange(order, "batch keys -> batch 1 keys 1"), dim=2)
            for kind in old.self_attention.read()
        )
        new.self_attention.append(key, value)
    return shorter


def _padding_first(is_real: Bool[Tensor, "batch tokens"]) -> Int[Tensor, "batch fewer"]:
    """Each row's places, padding first and no more of it than needed; real tokens stay in their order."""
    n_columns = int(is_real.sum(dim=-1).max()) if len(is_real) else 1
    return is_real.int().argsort(dim=-1, stable=True)[:, is_real.shape[-1] - n_columns :]
