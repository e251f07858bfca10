"""Sizes that a case draws: an answer that is made for the sizes of `check` meets others when it is graded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

__all__ = ["drawn", "one_of"]

Choice = TypeVar("Choice")


def drawn(generator: torch.Generator, least: int, most: int) -> int:
    """Draw a whole number between two, both included.

    >>> drawn(torch.Generator().manual_seed(0), 3, 3)
    3
    """
    return int(torch.randint(least, most + 1, (), generator=generator))


def one_of(generator: torch.Generator, choices: Sequence[Choice]) -> Choice:
    """Draw one of several.

    >>> one_of(torch.Generator().manual_seed(0), ["this"])
    'this'
    """
    return choices[drawn(generator, 0, len(choices) - 1)]
