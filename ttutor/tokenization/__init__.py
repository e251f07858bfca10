"""Tokenization: from text to the integers that a model reads, and back.

Four ways of cutting a text, all with the same few methods (`Tokenizer`), written to be read:

- `CharacterTokenizer`: short vocabulary, long sequences;
- `WordTokenizer`: short sequences, and a word never seen is unknown;
- `BytePairTokenizer`: frequent words whole, rare ones in pieces, any text at all (GPT-2, Llama);
- `WordPieceTokenizer`: the same idea with another way to choose and to cut (BERT).

Everywhere 0 is padding, 1 stands for what is unknown, 2 starts a sequence, 3 ends it. The translator's own tokenizer,
`ttutor.tokenization.subword`, is byte-pair encoding by a compiled library, which the tests compare with the one here.
"""

from typing import Any

from ttutor.names import hand_out
from ttutor.tokenization.base import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID, Tokenizer
from ttutor.tokenization.byte_pair import BytePairTokenizer
from ttutor.tokenization.whole import CharacterTokenizer, WordTokenizer, split_words
from ttutor.tokenization.word_piece import WordPieceTokenizer

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "SPECIAL_TOKENS",
    "UNK_ID",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "SubwordTokenizer",
    "Tokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "split_words",
]


def __getattr__(name: str) -> Any:
    """Load the compiled library when its tokenizer is first asked for."""
    return hand_out(__name__, name, {"SubwordTokenizer": "subword"})
