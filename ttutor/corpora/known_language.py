"""A small English-like language of which every probability is known, to measure language models against the truth.

"The" may be followed by an adjective, of which purple is rare; a noun may stand near another; and the verb agrees with
the first of the two: the old cat near the dogs sleeps. All its sentences can be listed, so that entropy, the true
distribution after any beginning and the distance of a model from the language are computed and not estimated.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["ADJECTIVES", "BOS", "EOS", "NOUNS", "PAD", "VERBS", "KnownLanguage"]

PAD, UNKNOWN, BOS, EOS = range(4)
ADJECTIVES = {"": 0.5, "small": 0.25, "old": 0.15, "red": 0.08, "purple": 0.02}
"""How often each stands between "the" and its noun; the empty one says that none does."""
NOUNS = ("cat", "dog", "goat", "bird", "cook", "king")
VERBS = ("sleep", "sing", "wait", "dance", "run", "fall")


class KnownLanguage:
    """Every sentence of the language with its probability.

    Attributes:
        probability: of each sentence, a tuple of words.
        vocabulary: all tokens, the four marks first.
        texts: the token ids of all sentences, with start and end mark, padded on the right.
        shares: the sentences' probabilities, in the order of ``texts``.
        entropy: the lowest expected loss of whoever does not see the answer, in nats a token.

    >>> language = KnownLanguage()
    >>> len(language.probability), round(language.entropy, 3)
    (21960, 1.296)
    >>> language.next_words("the cats near the king")["sleep"]  # one of six verbs
    0.16666666666666666
    """

    def __init__(self) -> None:
        self.probability = _sentences()
        words = sorted({word for sentence in self.probability for word in sentence})
        self.vocabulary = ["<pad>", "<unk>", "<bos>", "<eos>", *words]
        self._index_of = {word: index for index, word in enumerate(self.vocabulary)}
        self.texts = self.encode(self.probability)
        self.shares = torch.tensor(list(self.probability.values()), dtype=torch.float64)
        n_tokens = (self.shares * (self.texts != PAD).sum(dim=-1)).sum() - 1  # <bos> is given
        self.entropy = (-(self.shares * self.shares.log()).sum() / n_tokens).item()
        self._after: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for sentence, share in self.probability.items():
            for place, word in enumerate((*sentence, "<eos>")):
                self._after[sentence[:place]][word] += share

    def encode(self, sentences: Iterable[Sequence[str]]) -> Int[Tensor, "texts tokens"]:
        """Token ids with both marks, padded to one length.

        Raises:
            KeyError: a word is not in the vocabulary.
        """
        rows = [[BOS, *[self._index_of[word] for word in sentence], EOS] for sentence in sentences]
        texts = torch.full((len(rows), max(map(len, rows))), PAD)
        for text, row in zip(texts, rows, strict=True):
            text[: len(row)] = torch.tensor(row)
        return texts

    def beginning(self, words: str) -> Int[Tensor, "1 tokens"]:
        """The token ids of a beginning, the start mark in front and no end mark."""
        return self.encode([words.split()])[:, :-1]

    def read(self, token_ids: Iterable[int] | Int[Tensor, " tokens"]) -> tuple[str, ...]:
        """The words of a text up to its end mark; "..." says that it has none."""
        words: list[str] = []
        for token_id in map(int, token_ids):
            if token_id == EOS:
                return tuple(words)
            if token_id not in (PAD, BOS):
                words.append(self.vocabulary[token_id])
        return (*words, "...")

    def draw(self, n_texts: int, generator: torch.Generator) -> Int[Tensor, "texts tokens"]:
        """Texts of the language, each sentence as often as it should come."""
        return self.texts[torch.multinomial(self.shares, n_texts, replacement=True, generator=generator)]

    def next_words(self, beginning: str) -> dict[str, float]:
        """The true probability of each word that may follow, the end mark among them; none after a wrong beginning."""
        counts = self._after.get(tuple(beginning.split()), {})
        total = sum(counts.values())
        return {word: share / total for word, share in counts.items()}

    def true_loss(self, texts: Int[Tensor, "texts tokens"]) -> float:
        """The best possible loss on these sentences, that of the true distribution, in nats a token."""
        shares = torch.tensor([self.probability[self.read(text)] for text in texts], dtype=torch.float64)
        return (-shares.log().sum() / ((texts != PAD).sum() - len(texts))).item()

    def log_probabilities(self, log_p: Float[Tensor, "texts places vocab_size"]) -> Float[Tensor, " texts"]:
        """What a model gives each sentence of ``texts``, from its log-probabilities at all places but the last."""
        targets = self.texts[:, 1:]
        chosen = log_p.gather(-1, targets[..., None])[..., 0]
        return chosen.masked_fill(targets == PAD, 0).sum(dim=-1)


def _sentences() -> dict[tuple[str, ...], float]:
    phrases = [
        (("the", *adjective.split(), noun + ending), share / len(NOUNS) / 2, ending)
        for ending in ("s", "")
        for (adjective, share), noun in product(ADJECTIVES.items(), NOUNS)
    ]
    probability = {}
    for (subject, share, ending), verb in product(phrases, VERBS):
        form = verb if ending else verb + "s"
        probability[*subject, form] = share / 2 / len(VERBS)
        for other, other_share, _ in phrases:
            probability[*subject, "near", *other, form] = share / 2 / len(VERBS) * other_share
    return probability
