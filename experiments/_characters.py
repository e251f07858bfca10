"""The task that several experiments share: the next character of a corpus's sentences, written one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

N_TOKENS, BATCH = 64, 16


@dataclass(frozen=True)
class Characters:
    """A text to learn from, and pieces of two others to choose and to measure by.

    Attributes:
        text: the training text, one number a character.
        validation, test: pieces of `N_TOKENS` + 1 characters each.
    """

    text: Tensor
    validation: Tensor
    test: Tensor

    def batches(self, steps: int) -> Iterator[Tensor]:
        """Pieces that begin anywhere in the text, by torch's global generator."""
        starts = torch.randint(len(self.text) - N_TOKENS - 1, (steps, BATCH))
        return (torch.stack([self.text[start : start + N_TOKENS + 1] for start in row]) for row in starts.tolist())

    def frequency_loss(self, n_characters: int) -> float:
        """The loss of who knows how frequent each character is, and nothing else."""
        share = (torch.bincount(self.text, minlength=n_characters) + 1) / (len(self.text) + n_characters)
        return round(-share[self.test[:, 1:]].log().mean().item(), 4)


def characters_of(
    corpus: object, read: Callable[[tuple[str, str]], str] = lambda pair: pair[0], alphabet: str | None = None
) -> tuple[Characters, str]:
    """The task for one side of a corpus, and its alphabet."""
    splits = ("train", "validation", "test")
    texts = {split: "\n".join(read(pair) for pair in getattr(corpus, split)) for split in splits}
    alphabet = "".join(sorted(set("".join(texts.values())))) if alphabet is None else alphabet
    index_of = {character: index for index, character in enumerate(alphabet)}
    ids = {split: torch.tensor([index_of[character] for character in texts[split]]) for split in splits}
    pieces = {split: ids[split][: 256 * (N_TOKENS + 1)].reshape(256, N_TOKENS + 1) for split in splits[1:]}
    return Characters(ids["train"], pieces["validation"], pieces["test"]), alphabet


def next_character_loss(model: nn.Module, pieces: Tensor) -> Tensor:
    """Mean cross-entropy, in nats per character."""
    return functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())


@torch.no_grad()
def loss_on(model: nn.Module, pieces: Tensor) -> float:
    """The same, as a number to be stored."""
    model.eval()
    return round(next_character_loss(model, pieces).item(), 4)
