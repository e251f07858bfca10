"""Two sentences in one input: does the second follow the first (BERT), and are they in order (ALBERT)?"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch

from ttutor.variants.objectives.chance import coins, number_below

Document = Sequence[Sequence[int]]


class SentencePair(NamedTuple):
    """Two sentences and a question about them.

    Attributes:
        token_ids: ``[CLS] first [SEP] second [SEP]``.
        segment_ids: 0 up to the first separator, 1 after it.
        label: True if the pair stands in a document just so.
    """

    token_ids: list[int]
    segment_ids: list[int]
    label: bool


def join_sentences(
    first: Sequence[int], second: Sequence[int], label: bool, *, cls_id: int, sep_id: int
) -> SentencePair:
    """Write two sentences as one input.

    Devlin et al. (2019), section 3 and figure 2.

    Example:
        >>> join_sentences([7, 8], [9], True, cls_id=2, sep_id=3)
        SentencePair(token_ids=[2, 7, 8, 3, 9, 3], segment_ids=[0, 0, 0, 0, 1, 1], label=True)
    """
    token_ids = [cls_id, *first, sep_id, *second, sep_id]
    return SentencePair(token_ids, [0] * (len(first) + 2) + [1] * (len(second) + 1), label)


def next_sentence_pairs(
    documents: Sequence[Document], *, cls_id: int, sep_id: int, generator: torch.Generator
) -> list[SentencePair]:
    """Each sentence with the one after it, or, half of the time, with some sentence of another document.

    Devlin et al. (2019), section 3.1, task 2. The other document is drawn first, then a sentence in it.

    Differs from the paper: there a "sentence" is as many sentences as fill 512 tokens. The label here is True for the
    next sentence; in their code that is class 0.

    Args:
        documents: documents as lists of sentences, which are lists of token ids.
        cls_id, sep_id: the tokens before the first sentence and after each.
        generator: where chance comes from.

    Example:
        >>> documents, generator = [[[10], [11], [12]], [[20], [21]]], torch.Generator().manual_seed(0)
        >>> pairs = next_sentence_pairs(documents, cls_id=2, sep_id=3, generator=generator)
        >>> [pair.token_ids[1] for pair in pairs]
        [10, 11, 20]
    """
    documents = [document for document in documents if document]
    if len(documents) < 2:
        raise ValueError(f"another document is needed to draw from, but {len(documents)} of them came with a sentence")
    pairs = []
    for number, document in enumerate(documents):
        neighbours = list(pairwise(document))
        for (first, following), is_next in zip(neighbours, coins(len(neighbours), 0.5, generator), strict=True):
            other = documents[(number + 1 + number_below(len(documents) - 1, generator)) % len(documents)]
            second = following if is_next else other[number_below(len(other), generator)]
            pairs.append(join_sentences(first, second, is_next, cls_id=cls_id, sep_id=sep_id))
    return pairs


def sentence_order_pairs(
    documents: Sequence[Document], *, cls_id: int, sep_id: int, generator: torch.Generator
) -> list[SentencePair]:
    """Each sentence with the one after it, half of the time the other way round.

    Lan et al. (2020), section 3.1. Both come from the same document, so that the subject gives nothing away: a model
    that only knows what a text is about solves next-sentence prediction, but not this.

    Args:
        documents, cls_id, sep_id, generator: as for `next_sentence_pairs`.

    Example:
        >>> pairs = sentence_order_pairs([[[10], [11]]], cls_id=2, sep_id=3, generator=torch.Generator().manual_seed(1))
        >>> pairs[0].label == (pairs[0].token_ids == [2, 10, 3, 11, 3])
        True
    """
    pairs = []
    for document in documents:
        neighbours = list(pairwise(document))
        for (first, second), in_order in zip(neighbours, coins(len(neighbours), 0.5, generator), strict=True):
            ordered = (first, second) if in_order else (second, first)
            pairs.append(join_sentences(*ordered, in_order, cls_id=cls_id, sep_id=sep_id))
    return pairs
