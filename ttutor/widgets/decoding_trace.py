"""What a beam search does, step by step, in a form that a figure can hold: who is kept, who drops out, who ends.

The search is `ttutor.generation.beam_search`, which tells what it sees; nothing of it is done again here. The decoder's
cross-attention is captured while it runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ttutor.generation import BeamStep, Hypothesis, beam_search, stream
from ttutor.inside import capture, intermediates

__all__ = ["CUT", "DROPPED", "FINISHED", "KEPT", "Names", "Speaker", "record_decoding"]

DROPPED, KEPT, FINISHED, CUT = range(4)
"""What becomes of a candidate; one that is cut was open when the limit came."""

_SHOWN = 24
"""So many source tokens have weights of their own."""

_CROSS = "cross_attention.weights"
_NEXT = 4


@dataclass(frozen=True)
class Speaker:
    """A model with its words.

    Attributes:
        model: an encoder-decoder of ours.
        bos_id, eos_id: what a target starts and ends with.
        read: from a sentence to the ids that the model reads, and their texts.
        written: the text of a token; a leading blank is "▁".
    """

    model: nn.Module
    bos_id: int
    eos_id: int
    read: Callable[[str], tuple[list[int], list[str]]]
    written: Callable[[int], str]


class Names:
    """Numbers the tokens that occur, so that each text is stored once; the end mark is 0 and has no text."""

    def __init__(self, speaker: Speaker) -> None:
        self.written = speaker.written
        self.texts = [""]
        self.places = {speaker.eos_id: 0}

    def __call__(self, token_id: int) -> int:
        if token_id not in self.places:
            self.places[token_id] = len(self.texts)
            self.texts.append(self.written(token_id))
        return self.places[token_id]


def record_decoding(
    speaker: Speaker, text: str, name: Callable[[int], int], *, beam_size: int, max_new_tokens: int
) -> dict[str, Any]:
    """Translate one sentence by beam search and by greedy search, and keep what they do.

    Args:
        speaker: an encoder-decoder of ours with its marks.
        text: the sentence.
        name: gives the number under which a token's text is stored.
        beam_size, max_new_tokens: as for `beam_search`.

    Returns:
        ``source`` and ``source_tokens``; of a long sentence the last entry stands for all others.
        ``candidates``: for each step the extensions that were ranked, best first: the place of the beginning that they
        extend, the token, their log probability, what became of them. Those that were kept are the next step's
        beginnings, in their order. ``attention``: for each step and beginning the cross-attention, the mean of all
        layers and heads. ``next``: for each the most probable next tokens with their probabilities. ``greedy``: the
        tokens of the greedy search, the end mark included, with their log probabilities.

    Raises:
        ValueError: the sentence is empty.
    """
    steps: list[BeamStep] = []
    ids, pieces = speaker.read(text)
    if len(ids) < 2:
        raise ValueError(f"{text!r} is no sentence: there is nothing to translate")
    source = torch.tensor([ids])
    model, eos_id = speaker.model, speaker.eos_id
    limits: dict[str, Any] = {"bos_id": speaker.bos_id, "eos_id": eos_id, "max_new_tokens": max_new_tokens}
    sites = [site for site in intermediates(model) if site.endswith(_CROSS)]
    with capture(model, *sites) as seen:
        (found,) = beam_search(model, source, beam_size=beam_size, watch=steps.append, **limits)
    beginnings = [_open(step) for step in steps]
    attention = []
    for at, open_ in enumerate(beginnings):
        layers = torch.stack([seen.calls(site)[at] for site in sites])
        attention.append(layers[:, 0, :, : len(open_)].float().mean(dim=(0, 1)))  # layers 1 heads beam source
    return {
        "source": text,
        "source_tokens": _shortened(pieces),
        "candidates": [_candidates(at, steps, beginnings, found, eos_id, name) for at in range(len(steps))],
        "attention": [_shown_weights(rows) for rows in attention],
        "next": [_next_tokens(step, len(open_), name) for step, open_ in zip(steps, beginnings, strict=True)],
        "greedy": [[name(new.token_id), _round(new.log_probability)] for new in stream(model, source, **limits)],
    }


def _open(step: BeamStep) -> list[tuple[int, ...]]:
    """The beginnings that are there (copies that wait at the first step are not)."""
    exists = (step.totals[0] > float("-inf")).tolist()
    return [tuple(ids) for ids, real in zip(step.tokens.tolist(), exists, strict=True) if real]


def _candidates(
    at: int,
    steps: list[BeamStep],
    beginnings: list[list[tuple[int, ...]]],
    found: list[Hypothesis],
    eos_id: int,
    name: Callable[[int], int],
) -> list[list]:
    """The ranked extensions of one step, and what became of each: the search's own next step and results tell."""
    step = steps[at]
    finished = {one.token_ids for one in found if one.is_finished}
    cut = {one.token_ids for one in found if not one.is_finished}
    following = set(beginnings[at + 1]) if at + 1 < len(steps) else set()
    listed = []
    for row, token, total in zip(
        step.rows[0].tolist(), step.new_tokens[0].tolist(), step.candidates[0].tolist(), strict=True
    ):
        before = beginnings[at][row] if row < len(beginnings[at]) else None
        if before is None or total == float("-inf"):
            continue
        if token == eos_id:
            fate = FINISHED if before in finished else DROPPED
        else:
            new = (*before, token)
            fate = KEPT if new in following else CUT if new in cut and at + 1 == len(steps) else DROPPED
        listed.append([row, name(token), _round(total), fate])
    return listed


def _next_tokens(step: BeamStep, n_rows: int, name: Callable[[int], int]) -> list:
    """The most probable next tokens of each beginning, and how probable."""
    n_shown = min(_NEXT, step.log_probabilities.shape[-1])
    probabilities, ids = step.log_probabilities[:n_rows].exp().topk(n_shown, dim=-1)
    return [
        [[name(token), _round(p)] for token, p in zip(row, shares, strict=True)]
        for row, shares in zip(ids.tolist(), probabilities.tolist(), strict=True)
    ]


def _round(value: float) -> float:
    return round(value, 4) + 0.0


def _shortened(pieces: list[str]) -> list[str]:
    n_hidden = len(pieces) - _SHOWN
    return pieces if n_hidden <= 0 else [*pieces[:_SHOWN], f"{n_hidden} more"]


def _shown_weights(rows: Tensor) -> list[list[float]]:
    """Rounded, and those of tokens that are not shown as one."""
    if rows.shape[1] > _SHOWN:
        rows = torch.cat([rows[:, :_SHOWN], rows[:, _SHOWN:].sum(dim=1, keepdim=True)], dim=1)
    return [[round(weight, 3) + 0.0 for weight in row] for row in rows.tolist()]
