"""Exercise: which pair WordPiece joins next, by the rule as it is commonly described."""

from collections import Counter
from itertools import pairwise
from string import ascii_lowercase

import torch

from ttutor.exercises.draws import one_of
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.tokenization.merging import CutWords


def next_merge(words: list[list[str]], times: list[int], at_least: int) -> tuple[str, str]:
    """The pair of neighbours with the best score, among those that meet at least so many times in the corpus."""
    tokens, pairs = Counter(), Counter()
    for word, n in zip(words, times, strict=True):
        for token in word:
            tokens[token] += n
        for pair in pairwise(word):
            pairs[pair] += n
    frequent = [pair for pair in pairs if pairs[pair] >= at_least]
    return max(frequent, key=lambda pair: pairs[pair] / (tokens[pair[0]] * tokens[pair[1]]))


def reference(words, times, at_least):
    """By the counts that the package's trainer keeps."""
    counted = CutWords({tuple(word): n for word, n in zip(words, times, strict=True)})
    tokens = counted.token_counts
    candidates = {pair: n for pair, n in counted.pair_counts.items() if n >= at_least}
    return max(candidates, key=lambda pair: candidates[pair] / (tokens[pair[0]] * tokens[pair[1]]))


AT_LEAST = 4


CORPUS = {
    "m i t": 5,
    "m i": 3,
    "m o": 2,
    "i": 2,
    "p l o k": 5,
    "s l o t": 4,
    "b l o": 3,
    "o": 15,
    "l": 4,
    "s": 3,
    "t": 5,
    "t u n": 6,
    "f u n": 5,
    "e f": 10,
    "e": 6,
    "f": 4,
    "p": 6,
    "k": 6,
    "b": 6,
    "n a n a n a n a": 1,
    "a": 9,
    "g r": 4,
    "g": 2,
    "r": 3,
    "c y": 5,
    "c": 1,
    "c o": 1,
    "y": 3,
    "u": 4,
    "z": 7,
    "h e": 1,
    "q w": 1,
}


def _inputs(random):
    """The corpus in other letters, once or some times over, so that no letter and no count is known beforehand."""
    order = torch.randperm(26, generator=random).tolist()
    alphabet = dict(zip(ascii_lowercase, (ascii_lowercase[place] for place in order), strict=True))
    words = [[alphabet[letter] for letter in word.split()] for word in CORPUS]
    copies = one_of(random, (1, 4, 5))
    return words, [copies * n for n in CORPUS.values()], copies * AT_LEAST


def _counted(words, times):
    tokens, pairs = Counter(), Counter()
    for word, n in zip(words, times, strict=True):
        for token in word:
            tokens[token] += n
        for pair in pairwise(word):
            pairs[pair] += n
    return tokens, pairs


def _ratio(pairs, tokens):
    return lambda pair: pairs[pair] / (tokens[pair[0]] * tokens[pair[1]])


exercise = Exercise(
    id="transformer.next_merge",
    title="Which pair is next, by the other rule?",
    statement=r"""The chapter's `learn_merges` takes the commonest pair. Write one step of WordPiece as it is
commonly described: given the words of a corpus, each cut into tokens, and how often each word occurs, find the pair of
neighbours with the largest $n(ab)/(n(a)\,n(b))$. As the ratio is largest for what occurs once, only pairs that occur
at least `at_least` times in the corpus are admitted. Overlapping places count, too: in *a a a* the pair *a a* occurs
twice. No pair reaches over the border of a word, there are no ties in what you are given, and the tokens bear no marks.

Return the pair as a tuple of two tokens, in the order in which they stand.""",
    reference=reference,
    solution=next_merge,
    explanation="A word that occurs eight times counts each of its tokens and pairs eight times, and a pair that "
    "it holds twice sixteen times. The plain count would have taken another pair, and so would the ratio without "
    "the threshold: a pair that occurs once, of tokens that occur once, has the ratio 1, which nothing exceeds. "
    "The real trainers keep these counts and change only those of the words that a merge touched; counting all "
    "again for each of 30,000 merges would take far longer.",
    cases=(Case(name="thirty-two words", inputs=_inputs),),
    hints="""
Three counts are needed. How often does a token occur that stands in a word of eight occurrences?

One `Counter` for tokens, one for pairs (`itertools.pairwise` gives the neighbours), both weighted alike.

Fill both counters in one loop over words and times. Keep the pairs whose count is at least `at_least`, and take the
`max` of them with the ratio as `key`.
""",
    difficulty=2,
    minutes=15,
    section="07-transformer",
)

exercise.mutations(r"""
commonest: "pairs[pair] / (tokens[pair[0]] * tokens[pair[1]])" -> "pairs[pair]"
    That is the commonest pair, the next merge of byte-pair encoding. What does the score divide by?
no_threshold: ">= at_least" -> ">= 1"
    Your pair has the largest ratio of all, and it is a rarity. Which pairs are admitted?
more_than: ">=" -> ">"
    A pair that meets exactly `at_least` times is admitted, too; you leave it out.
words_counted_once: "tokens, pairs = " -> "times = [1] * len(times)\n    tokens, pairs = "
    You count each word of the list once. Words occur more or less often, and so do their pairs.
tokens_counted_once: "tokens[token] += n" -> "tokens[token] += 1"
    Your pairs are weighted by how often their words occur, your tokens are not.
other_denominator: "]] * tokens" -> "]] + tokens"
or: " * tokens[pair[1]]" -> ""
or: "tokens[pair[0]] * " -> ""
    You divide by the count of one of the two tokens, or by the sum of both counts. The score divides by their product.
by_gain: "pairs[pair] / (tokens[pair[0]] * tokens[pair[1]])" ->
  "(tokens.total() * pairs[pair] / (tokens[pair[0]] * tokens[pair[1]])) ** pairs[pair]"
    You weigh the ratio's logarithm with the pair's count. That is the gain in likelihood; here the ratio alone is asked
    for.
lowest_score: "max(" -> "min("
    Among the pairs admitted yours has the smallest ratio; the largest is wanted.
reversed: "[1]]))" -> "[1]]))[::-1]"
    The right two tokens in the wrong order: the left one comes first.
joined: "return max(" -> "return ''.join(max(", "[1]]))" -> "[1]])))"
    You return the new token; its two parts are asked for. A tokeniser has to remember which pair it joins.
with_score: "return max(frequent, key=lambda pair: pairs[pair] / (tokens[pair[0]] * tokens[pair[1]]))" ->
  "best = max((pairs[pair] / (tokens[pair[0]] * tokens[pair[1]]), pair) for pair in frequent)\n    return best[::-1]"
    You return the pair together with its score; the pair alone is asked for.
over_borders: "zip(words, times, strict=True)" ->
  "[([token for word, n in zip(words, times) for _ in range(n) for token in word], 1)]"
    Your pair reaches over the border between two words: it counts a text, not words.
""")


@exercise.must_hold("The two tokens must be neighbours, left and right, somewhere inside a word.")
def neighbours(trial: Trial) -> str | None:
    words, times, _ = trial.inputs
    value = trial.value
    if not (isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, str) for one in value)):
        return f"You return {value!r}; a tuple of two tokens is wanted."
    _, pairs = _counted(words, times)
    return None if value in pairs else f"{value[0]!r} is never followed by {value[1]!r} in the corpus."


@exercise.must_hold("The pair must meet often enough to be admitted.")
def often_enough(trial: Trial) -> str | None:
    words, times, at_least = trial.inputs
    _, pairs = _counted(words, times)
    met = pairs.get(trial.value, 0) if isinstance(trial.value, tuple) else 0
    return None if met >= at_least else f"Your pair meets {met} times in the corpus; at least {at_least} are asked for."


@exercise.must_hold("No other pair that is admitted may have a larger ratio than yours.")
def best_score(trial: Trial) -> str | None:
    words, times, at_least = trial.inputs
    tokens, pairs = _counted(words, times)
    if trial.value not in pairs:
        return None
    score = _ratio(pairs, tokens)
    yours, best = score(trial.value), score(reference(words, times, at_least))
    return None if yours == best else f"Your pair's score is {yours:.4f}; one that meets often enough has {best:.4f}."
