"""Exercise: which pair byte-pair encoding joins next."""

from collections import Counter
from itertools import pairwise

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial
from ttutor.tokenization.merging import CutWords


def next_merge(words: list[list[str]], times: list[int]) -> tuple[str, str]:
    """The pair of neighbours to join next; each word is cut into tokens and occurs so many times in the corpus."""
    ...


def solution(words: list[list[str]], times: list[int]) -> tuple[str, str]:
    """The pair of neighbours to join next; each word is cut into tokens and occurs so many times in the corpus."""
    pairs = Counter()
    for word, n in zip(words, times, strict=True):
        for pair in pairwise(word):
            pairs[pair] += n
    return max(pairs, key=pairs.get)


def reference(words, times):
    """The counts that the package's trainer keeps."""
    counts = CutWords({tuple(word): n for word, n in zip(words, times, strict=True)}).pair_counts
    return max(counts, key=counts.get)


CORPUS = {
    "ba t s": 2,
    "o": 15,
    "p l o k": 5,
    "s l o t": 4,
    "b l o": 3,
    "d u x": 5,
    "d u y": 4,
    "d u z": 2,
    "t i n": 6,
    "f i n": 5,
    "e f": 10,
    "n a n a n a n a": 1,
    "h e": 1,
    "q w": 1,
}
"""(l, o) comes 12 times and is first; other ways of counting find (d, u), (i, n), (e, f), (n, a), (o, o) or (q, w)."""


def _inputs(random):
    return [word.split() for word in CORPUS], list(CORPUS.values())


def _pairs(words, times):
    found = Counter()
    for word, n in zip(words, times, strict=True):
        for pair in pairwise(word):
            found[pair] += n
    return found


def words_counted_once(words, times):
    pairs = _pairs(words, [1] * len(times))
    return max(pairs, key=pairs.get)


def commonest_token_pair(words, times):
    tokens = Counter()
    for word, n in zip(words, times, strict=True):
        for token in word:
            tokens[token] += n
    (one, _), (other, _) = tokens.most_common(2)
    return one, other


def rarest(words, times):
    pairs = _pairs(words, times)
    return min(pairs, key=pairs.get)


def first_pair(words, times):
    return tuple(words[0][:2])


def pair_of_the_commonest_word(words, times):
    longer = [(word, n) for word, n in zip(words, times, strict=True) if len(word) > 1]
    return tuple(max(longer, key=lambda one: one[1])[0][:2])


def beginnings_only(words, times):
    pairs = Counter()
    for word, n in zip(words, times, strict=True):
        pairs[tuple(word[:2])] += n * (len(word) > 1)
    return max(pairs, key=pairs.get)


def endings_only(words, times):
    pairs = Counter()
    for word, n in zip(words, times, strict=True):
        pairs[tuple(word[-2:])] += n * (len(word) > 1)
    return max(pairs, key=pairs.get)


def word_piece_rule(words, times):
    pairs, tokens = _pairs(words, times), Counter()
    for word, n in zip(words, times, strict=True):
        for token in word:
            tokens[token] += n
    return max(pairs, key=lambda pair: pairs[pair] / (tokens[pair[0]] * tokens[pair[1]]))


def reversed_pair(words, times):
    pairs = _pairs(words, times)
    return max(pairs, key=pairs.get)[::-1]


def joined(words, times):
    pairs = _pairs(words, times)
    return "".join(max(pairs, key=pairs.get))


def with_its_count(words, times):
    return _pairs(words, times).most_common(1)[0]


def over_borders(words, times):
    text = [token for word, n in zip(words, times, strict=True) for _ in range(n) for token in word]
    pairs = Counter(pairwise(text))
    return max(pairs, key=pairs.get)


def last_word_wins(words, times):
    pairs = {}
    for word, n in zip(words, times, strict=True):
        pairs.update(dict.fromkeys(pairwise(word), n))
    return max(pairs, key=pairs.get)


def _no_neighbours(trial: Trial) -> str | None:
    words, times = trial.inputs
    value = trial.value
    if not (isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, str) for one in value)):
        return f"You return {value!r}; a tuple of two tokens is wanted."
    return None if value in _pairs(words, times) else f"{value[0]!r} is never followed by {value[1]!r} in the corpus."


def _less_common(trial: Trial) -> str | None:
    pairs = _pairs(*trial.inputs)
    most, yours = max(pairs.values()), pairs.get(trial.value, 0) if isinstance(trial.value, tuple) else 0
    return None if yours == most else f"Your pair comes {yours} times in the corpus, another {most} times."


EXERCISES = (
    Exercise(
        id="transformer.next_merge",
        title="Which pair is next?",
        statement="""The heart of byte-pair encoding: given the words of a corpus, each cut into tokens, and how often
each word occurs, find the pair of neighbouring tokens that occurs most often. No pair reaches over the border of a
word. There are no ties in what you are given.

Return the pair as a tuple of two tokens, in the order in which they stand.""",
        stub=next_merge,
        reference=reference,
        solution=solution,
        explanation="A pair counts as often as its word does, and once more for each further place in the word. The "
        "real trainer keeps these counts and changes only those of the words that a merge touched; counting all again "
        "for each of 30,000 merges would take days.",
        cases=(Case(name="fourteen words", inputs=_inputs),),
        hints=(
            "A word that occurs eight times contributes each of its pairs eight times.",
            "`itertools.pairwise` gives the neighbours of a list, and a `Counter` adds up.",
            (
                "Two loops, over the words with their times and over the pairs of a word; then the key with the "
                "largest count."
            ),
        ),
        mistakes=(
            Mistake(
                id="words_counted_once",
                says="You count each word of the list once. The commonest pair of the corpus is wanted, and words "
                "occur more or less often.",
                answers=(words_counted_once,),
            ),
            Mistake(
                id="commonest_tokens",
                says="You put the two commonest tokens side by side. They need not be neighbours anywhere: count the "
                "pairs.",
                answers=(commonest_token_pair,),
            ),
            Mistake(id="rarest", says="That is the rarest pair, or one of them.", answers=(rarest,)),
            Mistake(
                id="first_pair",
                says="You return the first pair of the first word, without counting.",
                answers=(first_pair,),
            ),
            Mistake(
                id="commonest_word",
                says="You take the commonest word's pair. A pair can occur in many words, each less common.",
                answers=(pair_of_the_commonest_word, last_word_wins),
            ),
            Mistake(
                id="beginnings",
                says="You look at the first two tokens of each word only; every place counts.",
                answers=(beginnings_only,),
            ),
            Mistake(
                id="endings",
                says="You look at the last two tokens of each word only; every place counts.",
                answers=(endings_only,),
            ),
            Mistake(
                id="word_piece",
                says="You divide by how often the parts occur. That is the rule of WordPiece; byte-pair encoding takes "
                "the plain count.",
                answers=(word_piece_rule,),
            ),
            Mistake(
                id="reversed",
                says="The right two tokens in the wrong order: the left one comes first.",
                answers=(reversed_pair,),
            ),
            Mistake(
                id="joined",
                says="You return the new token; its two parts are asked for. A tokeniser has to remember which pair "
                "it joins.",
                answers=(joined,),
            ),
            Mistake(
                id="with_count",
                says="You return the pair together with its count; the pair alone is asked for.",
                answers=(with_its_count,),
            ),
            Mistake(
                id="over_borders",
                says="Your pair reaches over the border between two words: it counts a text, not words.",
                answers=(over_borders,),
            ),
        ),
        properties=(
            Property(
                id="neighbours",
                says="The two tokens must be neighbours, left and right, somewhere inside a word.",
                broken=_no_neighbours,
            ),
            Property(id="commonest", says="No other pair may occur more often than yours.", broken=_less_common),
        ),
        difficulty=1,
        minutes=10,
        section="07-transformer",
    ),
)
