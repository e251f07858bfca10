"""How a corpus writes its sentences, so that a reader's can be put into that form and the answer back again."""

from collections.abc import Sequence
from dataclasses import dataclass

ENDS = (".", "!", "?", "…")


@dataclass(frozen=True)
class TextStyle:
    """Whether a corpus is in lower case throughout, and whether any of its sentences ends with a full stop or the like.

    The embedded grammar writes "the dog sleeps"; who asks for "The dog sleeps." should still be answered.
    """

    lower_case: bool = False
    final_mark: bool = True

    @classmethod
    def of(cls, sentences: Sequence[str]) -> "TextStyle":
        """Look at the sentences of the source language. (The pronoun I is a capital everywhere and does not count.)

        >>> TextStyle.of(["the dog sleeps", "I never run"])
        TextStyle(lower_case=True, final_mark=False)
        """
        words = (word for sentence in sentences for word in sentence.split() if word != "I")
        return cls(
            lower_case=all(word == word.lower() for word in words),
            final_mark=any(sentence.endswith(ENDS) for sentence in sentences),
        )

    def prepare(self, sentence: str) -> str:
        """Write a sentence as the corpus would.

        >>> TextStyle(lower_case=True, final_mark=False).prepare("My dog and I sleep. ")
        'my dog and I sleep'
        """
        sentence = " ".join(sentence.split())
        if not self.final_mark:
            sentence = sentence.rstrip("".join(ENDS) + " ")
        if self.lower_case:
            sentence = " ".join("I" if word in ("I", "i") else word.lower() for word in sentence.split(" "))
        return sentence

    def restore(self, translation: str, original: str) -> str:
        """Give a translation the capital and the final mark that the reader's sentence had and the corpus lacks.

        >>> TextStyle(lower_case=True, final_mark=False).restore("le chien dort", original="The dog sleeps.")
        'Le chien dort.'
        """
        original = original.strip()
        words = original.split()
        if self.lower_case and words and words[0][0].isupper() and words[0] != "I":
            translation = translation[:1].upper() + translation[1:]
        if not self.final_mark and original.endswith(ENDS) and translation:
            translation += original[-1]
        return translation
