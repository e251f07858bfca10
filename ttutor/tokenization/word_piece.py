"""WordPiece: learn tokens whose parts belong together, and cut a word by the longest tokens that fit."""

from collections import Counter
from collections.abc import Iterable

from ttutor.tokenization.base import SPECIAL_TOKENS, UNK_ID, Tokenizer, check_room, checked_texts
from ttutor.tokenization.merging import CutWords, Pair
from ttutor.tokenization.whole import split_words

INSIDE = "##"
"""How a token begins that continues a word."""


class WordPieceTokenizer(Tokenizer):
    """From the start of each word take the longest token that fits, then from where it ends, and so on.

    Schuster and Nakajima (2012), section 3, with the "##" and the cutting of BERT (Devlin et al. 2019, section 3). A
    word that cannot be cut to its end is unknown as a whole. Blanks are not kept: a text comes back as its words with
    one blank between any two (see `split_words`), if none is unknown.

    Differs from BERT: case and accents are kept, and words may be of any length.

    Args:
        tokens: what is known: beginnings of words as they are, continuations with "##" before them.

    Example:
        >>> tokenizer = WordPieceTokenizer(["un", "##aff", "##able", "##a", "able"])
        >>> tokenizer.split("unaffable able table")
        ['un', '##aff', '##able', 'able', '<unk>']
        >>> tokenizer.decode(tokenizer.encode("unaffable able table"))
        'unaffable able <unk>'
    """

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, *, min_count: int = 1) -> "WordPieceTokenizer":
        r"""Join the pair that raises the likelihood most for its size, until the vocabulary is full.

        A pair's score compares how often its parts meet with how often they occur,
        $$\frac{n(ab)}{n(a)\,n(b)},$$
        up to a constant factor the likelihood of "ab" as one token over that of its parts drawn independently. Unlike
        a bare count it prefers parts that are seldom apart. Among equal scores the commoner pair wins, then the one
        whose first token is older, then whose second is; the characters come first, in the order of code points.

        Differs from the paper: it asks which token raises the likelihood of the whole text most, in which a pair's
        count weighs too; this ratio is the rule as commonly described, since the original trainer was not published.

        Args:
            texts: what to learn from.
            vocab_size: how many tokens at most, the special ones included.
            min_count: pairs that meet less often than this are left apart. The ratio is largest for what occurs once.
        """
        counts = Counter(word for text in checked_texts(texts) for word in split_words(text))
        words = CutWords({_characters(word): times for word, times in counts.items()})
        tokens = sorted(words.token_counts, key=lambda token: (token.startswith(INSIDE), token))
        check_room(vocab_size, len(tokens), f"{len(tokens)} characters at the start of words and within")
        age = {token: number for number, token in enumerate(tokens)}
        while len(SPECIAL_TOKENS) + len(age) < vocab_size:
            candidates = [pair for pair, count in words.pair_counts.items() if count >= min_count]
            if not candidates:
                break
            pair = min(candidates, key=lambda pair: (*_order(words, pair), age[pair[0]], age[pair[1]]))
            joined = pair[0] + pair[1].removeprefix(INSIDE)
            words.merge(pair, joined)
            age[joined] = len(age)
        return cls(age)

    def split(self, text: str) -> list[str]:
        """Cut each word of a text into the longest tokens that fit, from left to right."""
        return [token for word in split_words(text) for token in self._cut(word)]

    def join(self, tokens: Iterable[str]) -> str:
        """Write the words with a blank between them, each put together again."""
        return " ".join(tokens).replace(" " + INSIDE, "").removeprefix(INSIDE)

    def _cut(self, word: str) -> list[str]:
        tokens: list[str] = []
        start = 0
        while start < len(word):
            mark = INSIDE if start else ""
            ends = range(len(word), start, -1)
            longest = next((end for end in ends if mark + word[start:end] in self._id_of), None)
            if longest is None:
                return [SPECIAL_TOKENS[UNK_ID]]
            tokens.append(mark + word[start:longest])
            start = longest
        return tokens


def _characters(word: str) -> tuple[str, ...]:
    """A word as its characters, all but the first marked as standing inside."""
    return (word[0], *(INSIDE + character for character in word[1:]))


def _order(words: CutWords, pair: Pair) -> tuple[float, int]:
    """What sorts pairs: the score, best first, then the count; division of integers rounds equal ratios alike."""
    count = words.pair_counts[pair]
    return -count / (words.token_counts[pair[0]] * words.token_counts[pair[1]]), -count
