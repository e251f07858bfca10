"""The two simplest tokenizers: a token is a character, or a token is a word."""

import re
from collections import Counter
from collections.abc import Iterable

from ttutor.tokenization.base import SPECIAL_TOKENS, Tokenizer, check_room, checked_texts

WORDS = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """The words of a text: runs of letters, digits and underscores; every other sign is a word of its own.

    Example:
        >>> split_words("It's  two: 1.5")
        ['It', "'", 's', 'two', ':', '1', '.', '5']
    """
    return WORDS.findall(text)


class CharacterTokenizer(Tokenizer):
    """A token is a character.

    A text comes back unchanged if all its characters are in the vocabulary.

    Args:
        tokens: the characters that are known.

    Example:
        >>> tokenizer = CharacterTokenizer.train(["the cat sat"])
        >>> tokenizer.vocab_size, tokenizer.encode("at ease")
        (11, [6, 4, 5, 8, 6, 10, 8])
        >>> tokenizer.decode(tokenizer.encode("a dog"))
        'a <unk><unk><unk>'
    """

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None) -> "CharacterTokenizer":
        """Take the most frequent characters, all of them by default; among equals the lower code point comes first."""
        counts = Counter(character for text in checked_texts(texts) for character in text)
        return cls(_most_frequent(counts, vocab_size, "one character"))

    def split(self, text: str) -> list[str]:
        """Cut a text into its characters."""
        return list(text)

    def join(self, tokens: Iterable[str]) -> str:
        """Write the characters one after another."""
        return "".join(tokens)


class WordTokenizer(Tokenizer):
    """A token is a word, as `split_words` finds them.

    Blanks are not kept: a text comes back as its words with one blank between any two, if all are in the vocabulary.
    So a text returns unchanged if it was written like that, and its words return in any case.

    Args:
        tokens: the words that are known.

    Example:
        >>> tokenizer = WordTokenizer.train(["The cat sat.", "The dog sat."])
        >>> tokenizer.tokens(range(4, tokenizer.vocab_size))
        ['.', 'The', 'sat', 'cat', 'dog']
        >>> tokenizer.decode(tokenizer.encode("The cow sat."))
        'The <unk> sat .'
    """

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None) -> "WordTokenizer":
        """Take the most frequent words, all of them by default; among equals the lower code points come first."""
        counts = Counter(word for text in checked_texts(texts) for word in split_words(text))
        return cls(_most_frequent(counts, vocab_size, "one word"))

    def split(self, text: str) -> list[str]:
        """Cut a text into its words."""
        return split_words(text)

    def join(self, tokens: Iterable[str]) -> str:
        """Write the words with a blank between them."""
        return " ".join(tokens)


def _most_frequent(counts: Counter[str], vocab_size: int | None, what: str) -> list[str]:
    """The tokens with the highest counts, as many as there is room for; equal counts by code point."""
    if vocab_size is None:
        vocab_size = len(SPECIAL_TOKENS) + len(counts)
    check_room(vocab_size, 1, what)
    by_count = sorted(counts, key=lambda token: (-counts[token], token))
    return by_count[: vocab_size - len(SPECIAL_TOKENS)]
