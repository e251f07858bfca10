"""What all tokenizers share: a numbered list of tokens, a way to cut a text, and a way to join tokens again."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

from ttutor.names import AnsweringTokenizer, answers_other_names

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<bos>", "<eos>")
"""They come first in every vocabulary; no text is ever cut into them."""


class Tokenizer(AnsweringTokenizer, ABC):
    """Turns text into token ids and back.

    A kind of tokenizer says three things: how it learns its vocabulary (`train`), how it cuts a text (`split`) and how
    it joins tokens (`join`). The rest is looking up in a list.

    Args:
        tokens: the vocabulary without the special tokens; the first has id 4.

    Attributes:
        vocabulary: every token, the special ones first; a token's place is its id.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.vocabulary = (*SPECIAL_TOKENS, *tokens)
        ordinary = self.vocabulary[len(SPECIAL_TOKENS) :]
        twice = [token for token, times in Counter(ordinary).items() if times > 1]
        if twice or "" in ordinary:
            raise ValueError(
                f"tokens must differ and none may be empty, but came more than once or empty: {twice or ['']}"
            )
        self._id_of = {token: token_id for token_id, token in enumerate(ordinary, start=len(SPECIAL_TOKENS))}

    @classmethod
    @abstractmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn a vocabulary of at most ``vocab_size`` tokens; the same texts in any order give the same one."""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Cut a text into tokens, known or not."""

    @abstractmethod
    def join(self, tokens: Iterable[str]) -> str:
        """Put tokens together as a text."""

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, the four special ones included."""
        return len(self.vocabulary)

    @answers_other_names
    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without marks for start and end; what is not in the vocabulary becomes 1."""
        return [self._id_of.get(token, UNK_ID) for token in self.split(text)]

    @answers_other_names
    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of token ids. Padding, start and end have none; the unknown shows as ``<unk>``."""
        silent = (PAD_ID, BOS_ID, EOS_ID)
        return self.join(self.vocabulary[token_id] for token_id in self._checked(token_ids) if token_id not in silent)

    def tokens(self, token_ids: Iterable[int]) -> list[str]:
        """Each token by itself, as text that can be shown; a blank is drawn as "▁"."""
        return [self.show(self.vocabulary[token_id]) for token_id in self._checked(token_ids)]

    def show(self, token: str) -> str:
        """One token as text that can be shown."""
        return token.replace(" ", "▁")

    def _checked(self, token_ids: Iterable[int]) -> list[int]:
        return checked_ids(token_ids, self.vocab_size)


def checked_ids(token_ids: Iterable[int], vocab_size: int) -> list[int]:
    """Take token ids, and refuse those that no token has."""
    token_ids = list(token_ids)
    outside = sorted({token_id for token_id in token_ids if not 0 <= token_id < vocab_size})
    if outside:
        raise ValueError(
            f"token ids must be between 0 and {vocab_size - 1}, but {outside} came; "
            "were they made by another tokenizer?"
        )
    return token_ids


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Take the training texts, and refuse a single string and a corpus without a word in it."""
    if isinstance(texts, str):
        raise TypeError("texts must be several strings, but came as one; write [text]")
    texts = list(texts)
    if not any(text.strip() for text in texts):
        raise ValueError(f"there is nothing to learn from: {len(texts)} texts came, and none holds more than blanks")
    return texts


def check_room(vocab_size: int, n_needed: int, what: str) -> None:
    """Refuse a vocabulary too small for the tokens that it cannot do without."""
    if vocab_size < len(SPECIAL_TOKENS) + n_needed:
        raise ValueError(
            f"vocab_size must be at least {len(SPECIAL_TOKENS) + n_needed} "
            f"({len(SPECIAL_TOKENS)} special tokens and {what}), but is {vocab_size}"
        )
