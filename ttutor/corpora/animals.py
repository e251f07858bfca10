"""A language small enough to learn in seconds: 1,350 English sentences about animals, and their German.

Two things in it cannot be translated word by word. The article depends on the noun (*die Katze*, *der Hund*, *das
Pferd*), and after an adverb at the beginning German puts the verb before the subject.
"""

from itertools import product

__all__ = ["animal_sentences"]

NOUNS = (
    ("cat", "die", "Katze"),
    ("dog", "der", "Hund"),
    ("horse", "das", "Pferd"),
    ("cow", "die", "Kuh"),
    ("bird", "der", "Vogel"),
    ("pig", "das", "Schwein"),
    ("goat", "die", "Ziege"),
    ("fish", "der", "Fisch"),
    ("sheep", "das", "Schaf"),
)
"""Each English noun, with the German article and noun."""
VERBS = (("sat", "saß"), ("slept", "schlief"), ("ran", "lief"), ("ate", "fraß"), ("stood", "stand"), ("drank", "trank"))
ADVERBS = (("", ""), ("yesterday", "gestern"), ("today", "heute"), ("here", "hier"), ("there", "dort"))
ADJECTIVES = (("", ""), ("old", "alte"), ("small", "kleine"), ("red", "rote"), ("big", "große"))


def animal_sentences(*, verb_second: bool = True) -> list[tuple[str, str]]:
    """All sentences of the language, each with its translation.

    Args:
        verb_second: whether the German verb moves before the subject after an adverb, as it must; otherwise the German
            keeps the order of the English.

    Example:
        >>> pairs = animal_sentences()
        >>> len(pairs), pairs[0], pairs[6]
        (1350, ('the cat sat', 'die Katze saß'), ('yesterday the old cat sat', 'gestern saß die alte Katze'))
        >>> animal_sentences(verb_second=False)[6][1]
        'gestern die alte Katze saß'
    """
    pairs = []
    for (noun, article, nomen), (verb, zeitwort), (when, wann), (kind, art) in product(
        NOUNS, VERBS, ADVERBS, ADJECTIVES
    ):
        subject = [article, art, nomen]
        german = [wann, zeitwort, *subject] if wann and verb_second else [wann, *subject, zeitwort]
        pairs.append((" ".join(filter(None, [when, "the", kind, noun, verb])), " ".join(filter(None, german))))
    return pairs
