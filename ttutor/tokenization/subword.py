"""Subword tokens by byte-pair encoding, shared by both languages, on Hugging Face's `tokenizers`.

Byte-pair encoding starts from single bytes and, again and again, joins the pair of neighbours that is commonest in
the training text (Sennrich, Haddow and Birch 2016; over bytes: Radford et al. 2019). As every text is made of bytes,
every text can be written in tokens and read back unchanged, and the unknown token is never needed.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from ttutor.errors import FileError, SettingError
from ttutor.files import foreign_reader, write_file
from ttutor.names import AnsweringTokenizer, answers_other_names
from ttutor.tokenization.base import SPECIAL_TOKENS, UNK_ID, checked_ids

SMALLEST_VOCABULARY = len(SPECIAL_TOKENS) + 256
"""The special tokens and one token for every byte."""

LARGEST_VOCABULARY = 1_000_000
"""More than any published one; room for all tokens is taken before the first is learned."""

MARKS = r"[\p{M}\u200c\u200d]*"
"""Accents, vowel signs and joiners belong to the letter before them."""

WITHOUT_BLANKS = {
    "Chinese characters": "々〆〇㐀-䶿一-鿿豈-\ufaff\U00020000-\U0003ffff",
    "Hiragana": "ぁ-ゖゝゞ",
    "Katakana": "ァ-ヺー-ヿㇰ-ㇿｦ-ﾟ",
}
"""Letters of Chinese and Japanese, which put no blanks between words: a word seldom goes on in another script."""

WORDS = "|".join(
    [
        r" ?(?:[CDJLMNSTcdjlmnst]|[Qq]u)['’](?=\p{L})",  # l'oiseau, qu'il: the little word with its apostrophe
        *(rf" ?(?:[{letters}]{MARKS})+" for letters in WITHOUT_BLANKS.values()),
        rf" ?(?:(?![{''.join(WITHOUT_BLANKS.values())}])\p{{L}}{MARKS})+",
        r" ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ]
)
"""No token reaches over the border of these pieces: a blank belongs to the word after it; digits stand alone."""


class SubwordTokenizer(AnsweringTokenizer):
    """Turns sentences into lists of token ids and back, without loss.

    >>> tokenizer = SubwordTokenizer.train(["the red car", "la voiture rouge", "l'oiseau"], vocab_size=280)
    >>> tokenizer.decode(tokenizer.encode("l'étoile  rouge ☆"))
    "l'étoile  rouge ☆"
    """

    def __init__(self, tokenizer: Tokenizer, json: str | None = None):
        found = tuple(tokenizer.id_to_token(index) for index in range(len(SPECIAL_TOKENS)))
        if found != SPECIAL_TOKENS:
            raise FileError(f"expected a tokenizer whose first tokens are {SPECIAL_TOKENS}, found {found}")
        tokenizer.encode_special_tokens = True  # "<pad>" in a text is text, not padding
        self._tokenizer = tokenizer
        self._json = json or tokenizer.to_str(pretty=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of its file: another one reads other tokens, or may."""
        return hashlib.sha256(self._json.encode("utf-8")).hexdigest()

    @classmethod
    def train(cls, sentences: Iterable[str], vocab_size: int) -> "SubwordTokenizer":
        """Learn the merges from sentences, of both languages for a translator; the same text gives the same tokens.

        Args:
            sentences: a list of strings, or whatever yields them.
            vocab_size: how many tokens there will be at most; at least 260, four special ones and 256 bytes, and at
                most a million.

        Raises:
            TypeError: one string came in place of sentences.
            SettingError: the vocabulary would be too small, or far too large.
        """
        if isinstance(sentences, str):
            raise TypeError("expected sentences, such as a list of strings, but came one string; text.splitlines()?")
        if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
            raise SettingError(
                f"vocab_size must be at least {SMALLEST_VOCABULARY} (4 special tokens, 256 bytes) and at most "
                f"{LARGEST_VOCABULARY:,}, got {vocab_size:,}"
            )
        tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[UNK_ID]))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator((" " + sentence for sentence in sentences), trainer)
        return cls(tokenizer)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, special ones included."""
        return self._tokenizer.get_vocab_size()

    @answers_other_names
    def encode(self, sentence: str) -> list[int]:
        """The token ids of one sentence, without beginning and end marks.

        A blank is put in front, so that a word has the same token at the beginning of a sentence as within it.
        """
        if not isinstance(sentence, str):
            raise TypeError(f"expected one sentence, but came {type(sentence).__name__}; encode_all takes a list")
        return self._tokenizer.encode(" " + sentence, add_special_tokens=False).ids

    def encode_all(self, sentences: Sequence[str]) -> list[list[int]]:
        """The same for many sentences, faster than one by one."""
        encodings = self._tokenizer.encode_batch([" " + sentence for sentence in sentences], add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    @answers_other_names
    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids; special tokens have none."""
        return self._tokenizer.decode(self._checked(token_ids), skip_special_tokens=True).removeprefix(" ")

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """Each token as text that can be shown, a leading blank as "▁"."""
        ids = self._checked(token_ids)
        return [self._tokenizer.decode([index], skip_special_tokens=False).replace(" ", "▁") for index in ids]

    def _checked(self, token_ids: Sequence[int]) -> list[int]:
        return checked_ids(token_ids, self.vocab_size)

    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        """The same, but so that all together are the whole text: a character of several tokens stands with the last.

        >>> tokenizer = SubwordTokenizer.train(["the red car"], vocab_size=270)
        >>> tokenizer.pieces(tokenizer.encode("é"))
        ['▁', '', 'é']
        """
        pieces: list[str] = []
        held: list[int] = []
        for index in self._checked(token_ids):
            held.append(index)
            text = self._tokenizer.decode(held, skip_special_tokens=False)
            if text.endswith("�") and len(pieces) + 1 < len(token_ids):  # what is missing may come
                pieces.append("")
            else:
                pieces.append(text.replace(" ", "▁"))
                held = []
        return pieces

    def to_json(self) -> str:
        """The tokenizer as `load` reads it."""
        return self._json

    def save(self, path: str | Path) -> None:
        """Write the tokenizer to a JSON file, for `load`."""
        write_file(Path(path), self.to_json().encode("utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> "SubwordTokenizer":
        """Read a tokenizer from its JSON file."""
        path = Path(path)
        if not path.is_file():
            raise FileError(f"there is no tokenizer at {path}; is this the folder of a training run?")
        return cls.from_json(path.read_bytes(), str(path))

    @classmethod
    def from_json(cls, text: bytes, name: str = "this text") -> "SubwordTokenizer":
        """Read what `to_json` wrote; the name says in messages where it stood."""
        with foreign_reader(name, "copy the folder again", "is not a tokenizer's JSON"):
            return cls(Tokenizer.from_buffer(text), text.decode("utf-8"))
