"""Span corruption: pieces of a text are taken out and numbered; the model writes the pieces (T5)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ttutor.variants.objectives.chance import random_parts


class CorruptedSpans(NamedTuple):
    """A text in two halves that complete each other.

    Attributes:
        inputs: the text, with a sentinel in the place of each span that was taken out.
        targets: each sentinel followed by its span, and one more sentinel at the end.
    """

    inputs: list[int]
    targets: list[int]


MEAN_LENGTH = 3.0


def span_corruption(
    token_ids: Sequence[int],
    *,
    sentinel_ids: Sequence[int],
    generator: torch.Generator,
    rate: float = 0.15,
) -> CorruptedSpans:
    """Take some spans out of a text, each replaced by a sentinel of its own; the target is the spans.

    "The old cat slept on a warm roof." may become "The <X> on a warm <Y>." with the target "<X> old cat slept <Y> roof
    <Z>". Only what was taken out is written, so that training costs less than writing the whole text again.

    Raffel et al. (2020), figure 2 and section 3.3.4. The number of tokens taken out is the share of the length,
    rounded, at least one and never all; the number of spans is a third of that. Spans never touch.

    Differs from the paper's code: there the last token of a text always belongs to a span; here any may.

    Args:
        token_ids: one text, without marks for start and end.
        sentinel_ids: the sentinels in the order of their use (T5 has 100).
        generator: where chance comes from.
        rate: share of tokens that are taken out.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> span_corruption(range(20), sentinel_ids=[90, 91, 92], generator=generator, rate=0.25)
        CorruptedSpans(inputs=[...], targets=[90, ...])
    """
    token_ids, sentinel_ids = _numbers(token_ids), _numbers(sentinel_ids)
    if not 0 < rate < 1:
        raise ValueError(f"rate must lie between 0 and 1, but is {rate}")
    if len(token_ids) < 2:
        raise ValueError(f"a text needs 2 tokens, one to take out and one to keep, but has {len(token_ids)}")
    n_taken = min(max(round(len(token_ids) * rate), 1), len(token_ids) - 1)
    n_kept = len(token_ids) - n_taken
    n_spans = min(max(round(n_taken / MEAN_LENGTH), 1), n_kept + 1)
    _check_sentinels(token_ids, sentinel_ids, n_spans + 1)
    lengths = random_parts(n_taken, n_spans, generator)
    gaps = random_parts(n_kept + 2, n_spans + 1, generator)
    gaps[0] -= 1  # spans do not touch, but before the first and after the last nothing need be left
    inputs, targets, place = [], [], 0
    for gap, length, sentinel in zip(gaps, lengths, sentinel_ids, strict=False):
        start = place + gap
        inputs += [*token_ids[place:start], sentinel]
        targets += [sentinel, *token_ids[start : start + length]]
        place = start + length
    return CorruptedSpans([*inputs, *token_ids[place:]], [*targets, sentinel_ids[n_spans]])


def restore_spans(inputs: Sequence[int], targets: Sequence[int], *, sentinel_ids: Sequence[int]) -> list[int]:
    """Put the spans back where their sentinels stand: the inverse of `span_corruption`.

    Args:
        inputs: a text with sentinels.
        targets: sentinels, each followed by its span; the last may close the list with no span.
        sentinel_ids: which tokens are sentinels.

    Example:
        >>> restore_spans([7, 90, 8, 91], [90, 1, 2, 91, 3, 92], sentinel_ids=[90, 91, 92])
        [7, 1, 2, 8, 3]
    """
    inputs, targets, sentinel_ids = _numbers(inputs), _numbers(targets), _numbers(sentinel_ids)
    spans: dict[int, list[int]] = {}
    for token_id in targets:
        if token_id in sentinel_ids:
            if token_id in spans:
                raise ValueError(f"sentinel {token_id} comes twice in the targets")
            spans[token_id] = current = []
        elif not spans:
            raise ValueError(f"targets must start with a sentinel, but start with {token_id}")
        else:
            current.append(token_id)
    missing = [token_id for token_id in inputs if token_id in sentinel_ids and token_id not in spans]
    surplus = [sentinel for sentinel, span in spans.items() if span and sentinel not in inputs]
    if missing or surplus:
        raise ValueError(f"inputs and targets do not belong together: no span for {missing}, no place for {surplus}")
    return [restored for token_id in inputs for restored in spans.get(token_id, [token_id])]


def _numbers(token_ids: Sequence[int]) -> list[int]:
    """Plain numbers, also of a tensor, whose elements are equal to none of another tensor in a set or dictionary."""
    return [int(token_id) for token_id in token_ids]


def _check_sentinels(token_ids: list[int], sentinel_ids: Sequence[int], n_needed: int) -> None:
    """Refuse sentinels that are too few, not different, or tokens of the text."""
    if len(sentinel_ids) < n_needed or len(set(sentinel_ids)) < len(sentinel_ids):
        raise ValueError(
            f"{len(token_ids)} tokens need {n_needed} different sentinels, but {len(set(sentinel_ids))} came; "
            "cut the text into shorter ones, or give more"
        )
    both = sorted(set(sentinel_ids) & set(token_ids))
    if both:
        raise ValueError(f"the text contains {both}, which are sentinels")
