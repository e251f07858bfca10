"""A text with holes, which the model then writes as it was (BART).

Lewis et al. (2020), section 2.2, who try four more. Their large model was trained with 30 % of the tokens infilled and
all sentences permuted (section 5.1).
"""

from collections.abc import Sequence

import torch

from ttutor.variants.objectives.chance import check_rate, number_below


def text_infilling(
    token_ids: Sequence[int],
    *,
    mask_id: int,
    generator: torch.Generator,
    rate: float = 0.3,
) -> list[int]:
    """Replace spans by one mask each, however long they are: how much is missing must be found out.

    Lengths come from a Poisson distribution of mean 3; a span of length 0 puts a mask where nothing is missing. Lengths
    are drawn until the spans together hold the share of the text that ``rate`` says, rounded; the last is cut to fit.
    Each span lies, independently, at one of the places between the tokens that stay; two may lie at the same, as two
    masks.

    Args:
        token_ids: one text.
        mask_id: what replaces a span.
        generator: where chance comes from.
        rate: share of tokens that disappear.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> damaged = text_infilling(range(10, 20), mask_id=4, generator=generator)
        >>> sum(token_id != 4 for token_id in damaged)
        7
    """
    check_rate("rate", rate)
    n_hidden = round(len(token_ids) * rate)
    lengths = _poisson_lengths(n_hidden, 3.0, generator)
    places = sorted(number_below(len(token_ids) - n_hidden + 1, generator) for _ in lengths)
    damaged: list[int] = []
    start = n_gone = 0
    for place, length in zip(places, lengths, strict=True):
        damaged += [*token_ids[start : place + n_gone], mask_id]
        n_gone += length
        start = place + n_gone
    return [*damaged, *token_ids[start:]]


def _poisson_lengths(total: int, mean: float, generator: torch.Generator) -> list[int]:
    """Draw lengths until they add up to a total, the last one cut to fit."""
    lengths: list[int] = []
    while total > 0:
        drawn = torch.poisson(torch.tensor(float(mean), device=generator.device), generator=generator)
        lengths.append(min(int(drawn), total))
        total -= lengths[-1]
    return lengths
