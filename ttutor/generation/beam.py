"""Beam search: several partial hypotheses at once, so that a token that looks poor now may pay off later."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ttutor.evaluating import evaluating
from ttutor.generation.hypothesis import Hypothesis
from ttutor.generation.next_token import new_token_limits, next_log_probabilities
from ttutor.generation.ranking import best_extensions
from ttutor.generation.stopping import Endings, as_end_ids
from ttutor.generation.streaming import check_max_new_tokens
from ttutor.generation.writer import Writer, WritingState, check_writes
from ttutor.names import answers_other_names


def length_penalty(n_tokens: int, alpha: float) -> float:
    r"""What a log probability is divided by, so that long sentences are not punished for their length.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha$$

    Wu et al. (2016), equation 14; the Transformer paper uses $\alpha = 0.6$ (section 6.1).

    Example:
        >>> length_penalty(1, 0.6), length_penalty(7, 1.0)
        (1.0, 2.0)
    """
    return ((5 + n_tokens) / 6) ** alpha


@dataclass(frozen=True, eq=False)
class BeamStep:
    """What one step of `beam_search` sees: the partial hypotheses, ``beam_size`` of each sentence, and what may follow.

    Attributes:
        sentences: which sentence of the batch each group of partial hypotheses belongs to.
        tokens: the new tokens of each partial hypothesis, one row each.
        totals: the log probability of each of them; minus infinity where a group has fewer than ``beam_size``.
        log_probabilities: of every token as the next one of each partial hypothesis.
        candidates: the log probability of each group's best extensions, best first.
        rows: which partial hypothesis each of them extends.
        new_tokens: by which token.
    """

    sentences: tuple[int, ...]
    tokens: Int[Tensor, "rows tokens"]
    totals: Float[Tensor, "group beam"]
    log_probabilities: Float[Tensor, "rows vocab_size"]
    candidates: Float[Tensor, "group ranked"]
    rows: Int[Tensor, "group ranked"]
    new_tokens: Int[Tensor, "group ranked"]


@answers_other_names
@torch.inference_mode()
def beam_search(
    model: nn.Module,
    token_ids: Int[Tensor, "batch tokens"],
    *,
    max_new_tokens: int,
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    bos_id: int | None = None,
    eos_id: int | Iterable[int] | None = None,
    beam_size: int = 4,
    alpha: float = 0.6,
    watch: Callable[[BeamStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """Keep the best ``beam_size`` partial hypotheses at every step; give each sequence's finished ones, best first.

    A sequence is done when ``beam_size`` hypotheses have finished, or at the limit, where the partial hypotheses
    fill the places that are left, after the finished ones. Sequences that are done leave the batch. With a small
    vocabulary and a low limit there may be fewer than ``beam_size``.

    Args:
        model, token_ids, max_new_tokens, is_real, bos_id, eos_id: as for `greedy_search`.
        beam_size: how many partial hypotheses are kept; 1 gives the greedy search.
        alpha: strength of the length penalty; 0 ranks by probability alone.
        watch: told of every step before it is taken; it changes nothing.

    Raises:
        ValueError: the beam is wider than half the vocabulary (with several end marks, a third or less), ``alpha`` is
            not between 0 and 10, or an argument does not suit the model.
        FloatingPointError: the model's probabilities are not numbers.
    """
    check_max_new_tokens(max_new_tokens)
    writer = check_writes(model)
    vocab_size = writer.config.vocab_size
    endings = Endings(as_end_ids(eos_id, vocab_size), (), max_new_tokens)
    _check_beam(beam_size, alpha, len(endings.eos_ids), vocab_size)
    with evaluating(model):
        state, last = writer.start(token_ids, is_real=is_real, bos_id=bos_id)
        beams = _Beams(writer, state, endings, beam_size, alpha, watch)
        while len(last) > 0:
            last = beams.step(last)
    return beams.results()


class _Beams:
    """The bookkeeping of `beam_search`: partial hypotheses as tensors, finished hypotheses as lists."""

    def __init__(
        self,
        model: Writer,
        state: WritingState,
        endings: Endings,
        beam_size: int,
        alpha: float,
        watch: Callable[[BeamStep], None] | None = None,
    ) -> None:
        self.model, self.state, self.endings, self.watch = model, state, endings, watch
        self.beam_size, self.alpha = beam_size, alpha
        # A hypothesis can end in as many ways as there are end marks, so among this many candidates, and among this
        # many extensions of one hypothesis, there are always enough that go on.
        self.n_candidates = (1 + len(endings.eos_ids)) * beam_size
        self.limits = new_token_limits(model, state, endings.max_new_tokens)
        n_sentences, device = len(self.limits), state.history.device
        self.eos_ids = torch.tensor(endings.eos_ids, dtype=torch.long, device=device)
        self.sentence = list(range(n_sentences))  # which sentence each group of open rows belongs to
        # Before the first step a sentence has one partial hypothesis, the empty one; from then on beam_size of them.
        self.total = torch.zeros(n_sentences, 1, device=device)
        self.tokens = torch.empty(n_sentences, 0, dtype=torch.long, device=device)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]

    def step(self, last: Int[Tensor, " rows"]) -> Int[Tensor, " new_rows"]:
        """Extend every partial hypothesis by its best tokens; give the last token of each that stays open."""
        n_beams, found, seen = self.total.shape[1], [], []
        for rows, log_probabilities in next_log_probabilities(self.model, self.state, last, group_size=n_beams):
            totals = self.total[rows.start // n_beams : rows.stop // n_beams]
            best, row, token = best_extensions(log_probabilities, totals, self.n_candidates)
            found.append((best, row + rows.start, token))
            seen += [log_probabilities] if self.watch is not None else []
        best, row, token = map(torch.cat, zip(*found, strict=True))
        if self.watch is not None:
            self.watch(self._seen(torch.cat(seen), best, row, token))
        ends = torch.isin(token, self.eos_ids)
        self._collect_finished(best, row, ends)
        return self._go_on(best, row, token, ends)

    def _seen(
        self,
        log_probabilities: Float[Tensor, "rows vocab_size"],
        best: Float[Tensor, "group ranked"],
        row: Int[Tensor, "group ranked"],
        token: Int[Tensor, "group ranked"],
    ) -> BeamStep:
        """The step as a watcher gets it: with ``beam_size`` rows for each sentence, at the first step too."""
        n_missing = self.beam_size - self.total.shape[1]
        return BeamStep(
            sentences=tuple(self.sentence),
            tokens=repeat(self.tokens, "rows tokens -> (rows copies) tokens", copies=1 + n_missing),
            totals=functional.pad(self.total, (0, n_missing), value=float("-inf")),
            log_probabilities=repeat(log_probabilities, "rows vocab -> (rows copies) vocab", copies=1 + n_missing),
            candidates=best,
            rows=row * (1 + n_missing),
            new_tokens=token,
        )

    def _collect_finished(
        self, best: Float[Tensor, "group ranked"], row: Int[Tensor, "group ranked"], ends: Bool[Tensor, "group ranked"]
    ) -> None:
        """Store the candidates that end within the best ``beam_size``."""
        n_tokens = self.tokens.shape[1] + 1  # the end mark counts
        group, rank = ends[:, : self.beam_size].nonzero(as_tuple=True)
        ids, totals = self.tokens[row[group, rank]].tolist(), best[group, rank].tolist()
        for place, hypothesis, total in zip(group.tolist(), ids, totals, strict=True):
            self._store(self.sentence[place], hypothesis, total, n_tokens, "eos_id")

    def _go_on(
        self,
        best: Float[Tensor, "group ranked"],
        row: Int[Tensor, "group ranked"],
        token: Int[Tensor, "group ranked"],
        ends: Bool[Tensor, "group ranked"],
    ) -> Int[Tensor, " new_rows"]:
        """Go on with the best ``beam_size`` candidates that did not end, in the sentences that are not done."""
        order = ends.int().argsort(dim=-1, stable=True)[:, : self.beam_size]  # those that go on come first
        total, row, token = best.gather(1, order), row.gather(1, order), token.gather(1, order)
        is_possible = (total[:, 0] > float("-inf")).tolist()
        open_groups = []
        for group, sentence in enumerate(self.sentence):
            if self.tokens.shape[1] + 1 == self.limits[sentence]:
                self._collect_cut(sentence, total[group], row[group], token[group])
            elif len(self.finished[sentence]) < self.beam_size and is_possible[group]:
                open_groups.append(group)
        kept = torch.tensor(open_groups, dtype=torch.long, device=best.device)
        self.sentence, self.total = [self.sentence[group] for group in open_groups], total[kept]
        rows, last = row[kept].flatten(), token[kept].flatten()
        self.tokens = torch.cat([self.tokens[rows], rearrange(last, "rows -> rows 1")], dim=1)
        if open_groups:
            self.state.select(rows)
        return last

    def _collect_cut(
        self, sentence: int, total: Float[Tensor, " beam"], row: Int[Tensor, " beam"], token: Int[Tensor, " beam"]
    ) -> None:
        """Store the partial hypotheses of a sentence that has come to its limit."""
        limit = self.limits[sentence]
        hypotheses = torch.cat([self.tokens[row], rearrange(token, "beam -> beam 1")], dim=1)
        for ids, one in zip(hypotheses.tolist(), total.tolist(), strict=True):
            self._store(sentence, ids, one, limit, self.endings.cut(limit))

    def _store(self, sentence: int, ids: list[int], total: float, n_tokens: int, ended_by: str) -> None:
        """Take in a hypothesis if there is a place left, and if it is one at all."""
        if total > float("-inf") and len(self.finished[sentence]) < self.beam_size:
            score = total / length_penalty(n_tokens, self.alpha)
            self.finished[sentence].append(Hypothesis(tuple(ids), total, ended_by == "eos_id", score, ended_by))

    def results(self) -> list[list[Hypothesis]]:
        """Each sentence's hypotheses: those that finished, best first, then those that were cut off, best first."""
        return [sorted(found, key=lambda found: (not found.is_finished, -found.score)) for found in self.finished]


def _check_beam(beam_size: int, alpha: float, n_ends: int, vocab_size: int) -> None:
    if not 0 <= alpha <= 10:
        raise ValueError(f"alpha must be between 0 (no length penalty) and 10, but is {alpha}")
    widest = vocab_size // (1 + n_ends)
    if type(beam_size) is not int or not 1 <= beam_size <= widest:
        share = {0: "the vocabulary", 1: "half the vocabulary"}.get(n_ends, f"the vocabulary over {1 + n_ends}")
        raise ValueError(f"beam_size must be between 1 and {share} ({widest}), but is {beam_size}")
