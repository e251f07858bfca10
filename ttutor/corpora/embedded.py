"""The embedded corpus: sentences drawn from the grammar, split so that the test asks for combinations never seen.

The rule. Every adjective is paired with every noun, and every noun, as a subject, with every verb. One pair in ten is
held out, spread evenly, so that no word loses more than a few partners. A sentence that contains a held-out pair may
stand only in the test split; a sentence that contains none stands in training or validation. So every test sentence
asks for at least one combination that training never showed, made of words that training showed often. (Some
sentences of the test, like some of real life, hold several.)
"""

from collections.abc import Iterator
from random import Random

from ttutor.corpora.grammar import DETERMINERS, NEGATIONS, PRONOUNS, NounPhrase, Sentence
from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, PREPOSITIONS, VERBS

SIZES = {"train": 40_000, "validation": 1_000, "test": 2_000}

HELD_OUT_SHARE = 10
"""One pair in this many is held out."""

SHOWCASE = ("red", "car")
"""Held out under every seed, so that "the red cars do not sleep" is never in the training split."""

BEFORE = tuple(adjective for adjective in ADJECTIVES if adjective.before_noun)
AFTER = tuple(adjective for adjective in ADJECTIVES if not adjective.before_noun)
INTRANSITIVE = tuple(verb for verb in VERBS if not verb.transitive)
TRANSITIVE = tuple(verb for verb in VERBS if verb.transitive)

THIRD_PERSON = tuple(pronoun for pronoun in PRONOUNS if pronoun.person == 3)
"""The pronouns that show their gender, which an adjective after the verb needs: il est fier, elle est fière."""


def pairs_of(sentence: Sentence) -> set[tuple[str, str]]:
    """The combinations that the split looks at, by their English base forms: adjective-noun and subject-verb."""
    pairs = set()
    for phrase in (sentence.subject, sentence.object, sentence.place):
        if isinstance(phrase, NounPhrase):
            pairs |= {(word.english, phrase.noun.english) for word in (phrase.before, phrase.after) if word}
    if isinstance(sentence.subject, NounPhrase):
        noun = sentence.subject.noun.english
        pairs.add(
            (sentence.quality.english, noun) if sentence.quality else (noun, sentence.verb.english)  # type: ignore[union-attr]
        )
    return pairs


def held_out_pairs(seed: int) -> frozenset[tuple[str, str]]:
    """One pair in ten, chosen along diagonals of shuffled tables, so that each word keeps nine partners in ten."""
    random = Random(f"held out {seed}")
    nouns, adjectives, verbs = ([word.english for word in words] for words in (NOUNS, ADJECTIVES, VERBS))
    for words in (nouns, adjectives, verbs):
        random.shuffle(words)
    on_diagonal = [(row, column) for row in range(len(nouns)) for column in range(max(len(adjectives), len(verbs)))]
    on_diagonal = [(row, column) for row, column in on_diagonal if (row + column) % HELD_OUT_SHARE == 0]
    adjective_noun = {(adjectives[column], nouns[row]) for row, column in on_diagonal if column < len(adjectives)}
    noun_verb = {(nouns[row], verbs[column]) for row, column in on_diagonal if column < len(verbs)}
    return frozenset(adjective_noun | noun_verb | {SHOWCASE})


def draw_sentence(random: Random) -> Sentence:
    """One random sentence of the grammar.

    >>> sentence = draw_sentence(Random(3))
    >>> sentence.english() != sentence.french()
    True
    """
    negation = random.choice((None, None, *NEGATIONS))
    kind = random.choices(("quality", "intransitive", "transitive"), weights=(2, 4, 4))[0]
    if kind == "quality":
        subject = random.choice(THIRD_PERSON) if random.random() < 0.1 else _draw_phrase(random)
        return Sentence(subject, quality=random.choice(AFTER), negation=negation)
    subject = random.choice(PRONOUNS) if random.random() < 0.2 else _draw_phrase(random)
    if kind == "transitive":
        return Sentence(subject, random.choice(TRANSITIVE), negation=negation, object=_draw_phrase(random))
    verb = random.choice(INTRANSITIVE)
    if random.random() < 0.5:
        return Sentence(subject, verb, negation=negation)
    preposition = random.choice(PREPOSITIONS)
    return Sentence(subject, verb, negation=negation, preposition=preposition, place=_draw_phrase(random))


def _draw_phrase(random: Random) -> NounPhrase:
    """A noun phrase; the and a are the commonest determiners, and half of all phrases have an adjective."""
    adjectives = random.random()
    return NounPhrase(
        random.choices(DETERMINERS, weights=(4, 3, 1, 1, 1))[0],
        random.choice(NOUNS),
        plural=random.random() < 0.5,
        before=random.choice(BEFORE) if adjectives < 0.25 else None,
        after=random.choice(AFTER) if 0.15 < adjectives < 0.5 else None,
    )


def embedded_sentences(seed: int = 0, sizes: dict[str, int] | None = None) -> dict[str, list[Sentence]]:
    """Distinct sentences for training, validation and test, the same for the same seed.

    Args:
        seed: decides which pairs are held out and which sentences are drawn.
        sizes: how many sentences each split has; the default is 40,000, 1,000 and 2,000.
    """
    sizes = dict(SIZES if sizes is None else sizes)
    held_out = held_out_pairs(seed)
    splits: dict[str, list[Sentence]] = {name: [] for name in ("train", "validation", "test")}
    sentences = _distinct(Random(f"sentences {seed}"))
    while any(len(splits[name]) < sizes[name] for name in splits):
        sentence = next(sentences)
        if pairs_of(sentence) & held_out:
            name = "test"
        else:
            name = "validation" if len(splits["validation"]) < sizes["validation"] else "train"
        if len(splits[name]) < sizes[name]:
            splits[name].append(sentence)
    return splits


def _distinct(random: Random) -> Iterator[Sentence]:
    """Random sentences without end, each at most once."""
    seen: set[str] = set()
    while True:
        sentence = draw_sentence(random)
        english = sentence.english()
        if english not in seen:
            seen.add(english)
            yield sentence
