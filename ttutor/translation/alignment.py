"""Which words of a sentence a translation looked at: the decoder's cross-attention, and the links that it suggests.

A row of the attention belongs to the token that it helped to predict. Attention is no explanation, but for translation
it is a good guide to which word became which.

Which layer? Garg et al. (2019), "Jointly Learning to Align and Translate with Transformer Models", find the layer
before the last best, in models of six. On the embedded corpus, whose word order is known from its grammar, the first of
two layers is clearly worse than the last, and the mean of all layers and heads about as good as the last or better. So
`CrossAttention.links` takes the mean, which needs no choice. There, too, the row of the token predicted is right
(nearly all words), and that of the token read is wrong (about one word in ten).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float
from torch import Tensor

from ttutor.inside import capture
from ttutor.masks import padding_mask
from ttutor.tokenization import BOS_ID, PAD_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import pad
from ttutor.transformer import Transformer
from ttutor.translation.interlinear import interlinear
from ttutor.translation.words import Word, find_words


class Link(NamedTuple):
    """A word of the translation, the source word that it looked at most, and the share of its weight that it gave."""

    target: Word
    source: Word
    weight: float


@dataclass(frozen=True, eq=False)
class CrossAttention:
    """How a translation looked at its source, all layers and heads.

    Attributes:
        source_tokens: what the model read, with the end mark.
        target_tokens: what it wrote; with the end mark, unless the translation was cut off before.
        weights: for each token written, how its weight was spread over the tokens read; adds up to one.

    >>> weights = torch.tensor([[[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]]])
    >>> print(CrossAttention(("▁red", "▁cars", "<eos>"), ("▁voitures", "▁rouges"), weights.flip(2)))
    voitures  rouges
    cars      red
    0.80      0.70
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    weights: Float[Tensor, "layers heads target source"]

    @cached_property
    def source_words(self) -> list[Word]:
        """The words of the source as the model read it."""
        return find_words(self.source_tokens)

    @cached_property
    def target_words(self) -> list[Word]:
        """The words of the translation as the model wrote it."""
        return find_words(self.target_tokens)

    def mean(self, layer: int | None = None) -> Float[Tensor, "target source"]:
        """The mean over the heads of one layer, or of all."""
        n_layers = len(self.weights)
        if layer is not None and not 0 <= layer < n_layers:
            raise IndexError(f"this model's decoder has layers 0 to {n_layers - 1}, but layer {layer} was asked for")
        chosen = self.weights if layer is None else self.weights[layer : layer + 1]
        return reduce(chosen, "layers heads target source -> target source", "mean")

    def by_word(self, layer: int | None = None) -> Float[Tensor, "target_words source_words"]:
        """The same between words: the sum over a source word's tokens, the mean over a target word's.

        A row adds up to one less what fell on the end mark.
        """
        weights = self.mean(layer)
        read = _membership(self.source_words, len(self.source_tokens)).to(weights)
        written = _membership(self.target_words, len(self.target_tokens)).to(weights)
        written = written / written.sum(dim=0)
        pattern = "target source, target target_words, source source_words -> target_words source_words"
        return einsum(weights, written, read, pattern)

    def links(self) -> list[Link]:
        """For each word of the translation the source word that it looked at most, in the translation's order.

        A word that looked more at the end mark than at any word has no link.
        """
        if not self.source_words:
            return []
        found = []
        for word, row in zip(self.target_words, self.by_word(), strict=True):
            weight, best = row.max(dim=0)
            if weight > 1 - row.sum():
                found.append(Link(word, self.source_words[int(best)], float(weight)))
        return found

    def as_dict(self) -> dict:
        """For JSON: tokens, mean weights and links."""
        return {
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "weights": [[round(weight, 4) for weight in row] for row in self.mean().tolist()],
            "links": [
                {"target": link.target._asdict(), "source": link.source._asdict(), "weight": round(link.weight, 4)}
                for link in self.links()
            ],
        }

    def lines(self, width: int = 100) -> Iterator[str]:
        """Below each word of the translation the source word that it looked at, and with what weight ("-": none).

        Args:
            width: the longest line; longer sentences are continued below an empty line.
        """
        linked = {link.target: link for link in self.links()}
        columns = []
        for word in self.target_words:
            link = linked.get(word)
            columns.append((word.text, link.source.text, f"{link.weight:.2f}") if link else (word.text, "-", "-"))
        return interlinear(columns, width)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def cross_attention(
    model: Transformer,
    tokenizer: SubwordTokenizer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
) -> list[CrossAttention]:
    """Run the model once over sources and their translations, all at a time, and record where the decoder looks.

    Args:
        model: in evaluation mode, so that nothing is dropped.
        tokenizer: the model's.
        sources: token ids of each sentence, its end mark included.
        targets: token ids of each translation, the end mark included where it has one.
    """
    device = next(model.parameters()).device
    source, inputs = (pad(rows).to(device) for rows in (sources, [[BOS_ID, *target[:-1]] for target in targets]))
    lengths = rearrange(torch.tensor([len(target) for target in targets], device=device), "batch -> batch 1")
    # A token that the model wrote counts, even if it is the padding id.
    is_real = torch.arange(inputs.shape[1], device=device) < lengths
    with torch.inference_mode(), capture(model, "decoder.layers.*.cross_attention.weights") as seen:
        model.decode(inputs, model.encode(source), padding_mask(source, PAD_ID), is_real=is_real)
    weights = rearrange(seen.stack().cpu(), "layers batch heads target source -> batch layers heads target source")
    return [
        CrossAttention(
            tuple(tokenizer.pieces(read)),
            tuple(tokenizer.pieces(written)),
            own[..., : len(written), : len(read)].clone(),
        )
        for own, read, written in zip(weights, sources, targets, strict=True)
    ]


def _membership(words: Sequence[Word], n_tokens: int) -> Float[Tensor, "tokens words"]:
    """One where a token belongs to a word."""
    belongs = torch.zeros(n_tokens, len(words))
    for number, word in enumerate(words):
        belongs[word.start : word.end, number] = 1
    return belongs
