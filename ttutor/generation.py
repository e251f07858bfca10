"""Generation: from next-token probabilities to sentences, by greedy choice or by beam search.

Both run on a `TranslationState`, which encodes the source once and keeps the decoder's cache, so that each step costs
one token of work.
"""

from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.cache import DecoderCache
from ttutor.masks import padding_mask
from ttutor.transformer import Transformer

__all__ = ["Hypothesis", "TranslationState", "beam_search", "greedy_search", "length_penalty"]


@dataclass(frozen=True)
class Hypothesis:
    """A generated sequence.

    Attributes:
        token_ids: the tokens, without those that mark start and end.
        log_probability: natural logarithm of the sequence's probability, the end mark's included if it came.
        is_finished: whether the end mark came; otherwise the limit cut the sequence off.
        score: what ranked it; the log probability, divided by the length penalty in beam search.
    """

    token_ids: tuple[int, ...]
    log_probability: float
    is_finished: bool
    score: float


class TranslationState:
    """A batch of translations under way: the memory, its mask, and the decoder's cache.

    Args:
        model: the translator.
        source_ids: the sentences to translate.
        copies: rows for each sentence (the width of the beam).
    """

    def __init__(self, model: Transformer, source_ids: Int[Tensor, "batch source"], copies: int = 1) -> None:
        self.model = model
        self.cache = DecoderCache(model.config.n_layers)
        memory, mask = model.encode(source_ids), padding_mask(source_ids, model.config.pad_id)
        self.memory = repeat(memory, "batch source d_model -> (batch copies) source d_model", copies=copies)
        self.memory_mask = repeat(mask, "batch 1 1 source -> (batch copies) 1 1 source", copies=copies)

    def next_log_probabilities(self, token_ids: Int[Tensor, " rows"]) -> Float[Tensor, "rows vocab_size"]:
        """Append one token to each row; give the distribution of the token after it.

        Raises:
            FloatingPointError: the distribution holds something that is no number.
        """
        new = rearrange(token_ids, "rows -> rows 1")
        hidden = self.model.decode(new, self.memory, self.memory_mask, self.cache)
        log_probabilities = self.model.project(hidden[:, -1]).float().log_softmax(dim=-1)
        if log_probabilities.isnan().any():
            raise FloatingPointError("the model's probabilities are NaN: its weights are damaged, or training diverged")
        return log_probabilities

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep these rows, in this order; a row may come more than once."""
        self.memory, self.memory_mask = self.memory.index_select(0, rows), self.memory_mask.index_select(0, rows)
        self.cache.select(rows)


@torch.inference_mode()
def greedy_search(
    model: Transformer,
    source_ids: Int[Tensor, "batch source"],
    *,
    bos_id: int,
    eos_id: int,
    max_new_tokens: int,
) -> list[Hypothesis]:
    """Take the most probable token at every step, until the end mark or the limit; finished rows leave the batch.

    Args:
        model: the translator; it is put into evaluation mode for the call and back afterwards.
        source_ids: the sentences, padded anywhere.
        bos_id: the token that starts every target.
        eos_id: the token that ends it.
        max_new_tokens: at most this many tokens, the end mark included; also no more than the model has positions for.

    Raises:
        ShapeError: the ids do not have the two axes batch and source.
        ValueError: ``max_new_tokens`` is not positive.
        FloatingPointError: the model's probabilities are not numbers.
    """
    limit = _token_limit(model, max_new_tokens)
    with _evaluation(model):
        state = TranslationState(model, source_ids)
        active = torch.arange(len(source_ids), device=source_ids.device)
        last = torch.full_like(active, bos_id)
        tokens: list[list[int]] = [[] for _ in source_ids]
        totals, finished = [0.0] * len(source_ids), [False] * len(source_ids)
        for _ in range(limit):
            log_probabilities, last = state.next_log_probabilities(last).max(dim=-1)
            for row, token, gain in zip(active.tolist(), last.tolist(), log_probabilities.tolist(), strict=True):
                totals[row] += gain
                finished[row] = token == eos_id
                if token != eos_id:
                    tokens[row].append(token)
            going_on = (last != eos_id).nonzero().flatten()
            if len(going_on) == 0:
                break
            if len(going_on) < len(last):
                state.select(going_on)
                active, last = active[going_on], last[going_on]
    return [
        Hypothesis(tuple(ids), total, done, total) for ids, total, done in zip(tokens, totals, finished, strict=True)
    ]


def length_penalty(n_tokens: int, alpha: float) -> float:
    r"""What a log probability is divided by, so that long sentences are not punished for their length.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$

    Wu et al. (2016), equation 14; the Transformer paper uses $\alpha = 0.6$ (section 6.1).

    Example:
        >>> length_penalty(1, 0.6), length_penalty(7, 1.0)
        (1.0, 2.0)
    """
    return ((5 + n_tokens) / 6) ** alpha


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source_ids: Int[Tensor, "batch source"],
    *,
    bos_id: int,
    eos_id: int,
    max_new_tokens: int,
    beam_size: int = 4,
    alpha: float = 0.6,
) -> list[list[Hypothesis]]:
    """Keep the best ``beam_size`` beginnings at every step; give each sentence's finished ones, best first.

    A sentence is done when ``beam_size`` hypotheses have finished, or at the limit, where the beginnings still open
    fill the places that are left, after the finished ones. Sentences that are done leave the batch. With a small
    vocabulary and a low limit there may be fewer than ``beam_size``.

    Args:
        model, source_ids, bos_id, eos_id, max_new_tokens: as for `greedy_search`.
        beam_size: how many beginnings are kept; 1 gives the greedy search.
        alpha: strength of the length penalty; 0 ranks by probability alone.

    Raises:
        ShapeError: the ids do not have the two axes batch and source.
        ValueError: ``max_new_tokens`` or ``beam_size`` is not positive, the beam is wider than half the vocabulary, or
            ``alpha`` is not between 0 and 10.
        FloatingPointError: the model's probabilities are not numbers.
    """
    limit = _token_limit(model, max_new_tokens)
    if not 0 <= alpha <= 10:
        raise ValueError(f"alpha must be between 0 (no length penalty) and 10, but is {alpha}")
    if not 1 <= beam_size <= model.config.vocab_size // 2:
        raise ValueError(
            f"beam_size must be between 1 and half the vocabulary ({model.config.vocab_size // 2}), but is {beam_size}"
        )
    with _evaluation(model):
        beams = _Beams(TranslationState(model, source_ids, copies=beam_size), len(source_ids), beam_size, alpha, eos_id)
        last = torch.full((len(source_ids) * beam_size,), bos_id, device=source_ids.device)
        for _ in range(limit):
            last = beams.step(last)
            if len(last) == 0:
                break
        return beams.results()


class _Beams:
    """The bookkeeping of `beam_search`: open beginnings as tensors, finished hypotheses as lists."""

    def __init__(self, state: TranslationState, n_sentences: int, beam_size: int, alpha: float, eos_id: int) -> None:
        self.state, self.beam_size, self.alpha, self.eos_id = state, beam_size, alpha, eos_id
        device = state.memory.device
        self.sentence = torch.arange(n_sentences, device=device)  # which sentence each group of open rows belongs to
        # All copies begin alike, so only the first may be extended at the first step.
        self.total = torch.full((n_sentences, beam_size), float("-inf"), device=device)
        self.total[:, 0] = 0.0
        self.tokens = torch.empty(n_sentences * beam_size, 0, dtype=torch.long, device=device)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]

    def step(self, last: Int[Tensor, " rows"]) -> Int[Tensor, " new_rows"]:
        """Extend every open beginning by its best tokens; give the last token of each that stays open."""
        log_probabilities = self.state.next_log_probabilities(last)
        # No more than 2 * beam_size extensions of one beginning can matter, so the rest need not be sorted together.
        gains, choices = log_probabilities.topk(2 * self.beam_size, dim=-1)
        gains = rearrange(gains, "(group beam) choices -> group beam choices", beam=self.beam_size)
        totals = rearrange(
            rearrange(self.total, "group beam -> group beam 1") + gains, "group beam choices -> group (beam choices)"
        )
        best, flat = totals.topk(2 * self.beam_size, dim=-1)
        parent = flat // (2 * self.beam_size)
        first_row = rearrange(torch.arange(len(totals), device=flat.device) * self.beam_size, "group -> group 1")
        token = rearrange(choices, "(group beam) choices -> group (beam choices)", beam=self.beam_size).gather(1, flat)
        ends = token == self.eos_id
        self._collect(best, parent + first_row, ends)
        return self._keep_open(best, parent + first_row, token, ends)

    def _collect(self, best: Float[Tensor, "group ranked"], row: Int[Tensor, "group ranked"], ends: Tensor) -> None:
        """Store the candidates that end within the best ``beam_size``."""
        n_tokens = self.tokens.shape[1] + 1  # the end mark counts
        for group, rank in ends[:, : self.beam_size].nonzero().tolist():
            sentence, total = int(self.sentence[group]), float(best[group, rank])
            if total > float("-inf") and len(self.finished[sentence]) < self.beam_size:
                ids = tuple(self.tokens[row[group, rank]].tolist())
                score = total / length_penalty(n_tokens, self.alpha)
                self.finished[sentence].append(Hypothesis(ids, total, True, score))

    def _keep_open(
        self,
        best: Float[Tensor, "group ranked"],
        row: Int[Tensor, "group ranked"],
        token: Int[Tensor, "group ranked"],
        ends: Tensor,
    ) -> Int[Tensor, " new_rows"]:
        """Go on with the best ``beam_size`` candidates that did not end, in the sentences that are not done."""
        is_open = [len(self.finished[sentence]) < self.beam_size for sentence in self.sentence.tolist()]
        groups = torch.tensor(is_open, device=best.device).nonzero().flatten()
        order = ends[groups].int().argsort(dim=-1, stable=True)[:, : self.beam_size]  # those that go on come first
        self.sentence = self.sentence[groups]
        self.total = best[groups].gather(1, order)
        rows = row[groups].gather(1, order).flatten()
        last = token[groups].gather(1, order).flatten()
        self.state.select(rows)
        self.tokens = torch.cat([self.tokens[rows], rearrange(last, "rows -> rows 1")], dim=1)
        return last

    def results(self) -> list[list[Hypothesis]]:
        """Each sentence's hypotheses: those that finished, best first, then beginnings still open, best first."""
        tokens = rearrange(self.tokens, "(group beam) tokens -> group beam tokens", beam=self.beam_size).tolist()
        for sentence, totals, beginnings in zip(self.sentence.tolist(), self.total.tolist(), tokens, strict=True):
            for total, ids in zip(totals, beginnings, strict=True):
                if total > float("-inf") and len(self.finished[sentence]) < self.beam_size:
                    score = total / length_penalty(max(len(ids), 1), self.alpha)
                    self.finished[sentence].append(Hypothesis(tuple(ids), total, False, score))
        return [sorted(found, key=lambda found: (not found.is_finished, -found.score)) for found in self.finished]


def _token_limit(model: Transformer, max_new_tokens: int) -> int:
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, but is {max_new_tokens}")
    return min(max_new_tokens, model.config.max_len)


class _evaluation:
    """Put a model into evaluation mode for a while."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.was_training = {module: module.training for module in model.modules()}

    def __enter__(self) -> None:
        self.model.eval()

    def __exit__(self, *_: object) -> None:
        for module, was_training in self.was_training.items():
            module.training = was_training
