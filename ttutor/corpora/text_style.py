"""How a corpus writes its sentences, so that a reader's can be put into that form and the answer back again.

What a model is trained on and what it is given later go through the same `TextStyle.prepare`, whose rules are read off
the training text and stored with the model. A rule holds only where the whole text keeps it, so no sentence of that
text is changed; and an answer is changed only by what `prepare` took from the question.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

ENDS = tuple(".!?…‽⁇⁈⁉。｡．！？؟۔।॥։።፧፨។៕။၊།\u037e")
"""Full stops, question and exclamation marks of the scripts that have them (Unicode's Sentence_Terminal, mostly)."""

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
PRONOUN = re.compile(r"(?<!\S)[Ii](?!\S)")
LINE_BREAKS = re.compile(r"\s*[\n-\r\x1c-\x1e\x85\u2028\u2029]\s*")


@dataclass(frozen=True)
class TextStyle:
    """What every sentence of a corpus keeps to, and hence a sentence given later, too.

    The embedded grammar writes "the dog sleeps"; who asks for "The dog sleeps." should still be answered.

    Attributes:
        lower_case: the source language has capitals and small letters, and is in small ones throughout.
        final_mark: a source sentence may end with a full stop or the like.
        word_i: how a text in lower case writes the word of this one letter: "I" as English writes its pronoun, "i", or
            "" for both.
        plain_blanks: between words of the source stands one ordinary blank.
        form: how letters with accents are encoded in the source, "NFC" (composed) or "NFD", or "" for both.
        answers_lower_case: the target language is in small letters throughout, too.
        answers_final_mark: a target sentence may end with a full stop or the like.
    """

    lower_case: bool = False
    final_mark: bool = True
    word_i: str = "I"
    plain_blanks: bool = True
    form: Form | Literal[""] = ""
    answers_lower_case: bool = True
    answers_final_mark: bool = False

    @classmethod
    def of(cls, sentences: Sequence[str], translations: Sequence[str] = ()) -> "TextStyle":
        """Look at the sentences of the source language, and of the target language where they are known.

        >>> style = TextStyle.of(["the dog sleeps", "I never run"], ["le chien dort", "je ne cours jamais"])
        >>> style.lower_case, style.word_i, style.final_mark
        (True, 'I', False)
        >>> TextStyle.of(["i gatti dormono"]).prepare("I gatti dormono")
        'i gatti dormono'
        """
        lower_case = _is_lower_case(sentences)
        written = {found for one in sentences for found in PRONOUN.findall(one)} if lower_case else {"I"}
        return cls(
            lower_case=lower_case,
            final_mark=any(one.endswith(ENDS) for one in sentences),
            word_i="i" if not written else written.pop() if len(written) == 1 else "",
            plain_blanks=all(" ".join(one.split()) == one.strip() for one in sentences),
            form=_form(sentences),
            answers_lower_case=_is_lower_case(translations) if translations else True,
            answers_final_mark=any(one.endswith(ENDS) for one in translations),
        )

    def prepare(self, sentence: str) -> str:
        """Write a sentence as the corpus would.

        >>> TextStyle(lower_case=True, final_mark=False).prepare("My dog and I sleep. ")
        'my dog and I sleep'
        """
        if self.lower_case:
            sentence = self._lowered(sentence)
        if self.form:
            sentence = unicodedata.normalize(self.form, sentence)
        sentence = " ".join(sentence.split()) if self.plain_blanks else sentence.strip()
        while not self.final_mark and sentence.endswith(ENDS):
            sentence = sentence[:-1].rstrip()
        return sentence

    def prepare_answer(self, translation: str) -> str:
        """Write a translation that is given as the corpus would, where it writes both languages alike."""
        alike = replace(
            self,
            lower_case=self.lower_case and self.answers_lower_case,
            final_mark=self.final_mark or self.answers_final_mark,
            word_i="",
            plain_blanks=False,
            form="",
        )
        return alike.prepare(translation)

    def _lowered(self, sentence: str) -> str:
        """In small letters, but for the word I where the corpus has it so."""
        rest = [part.lower() for part in PRONOUN.split(sentence)]
        words = [self.word_i or found for found in PRONOUN.findall(sentence)]
        return "".join(part + word for part, word in zip(rest, [*words, ""], strict=True))

    def restore(self, translation: str, original: str) -> str:
        """Give a translation the capital and the final mark that `prepare` took from the reader's sentence.

        Where the target language of the corpus has capitals or marks, the model has written what belongs there. A line
        break that a model may write becomes a blank, so that an answer is one line.

        >>> TextStyle(lower_case=True, final_mark=False).restore("le chien dort", original="The dog sleeps.")
        'Le chien dort.'
        """
        translation, original = LINE_BREAKS.sub(" ", translation).strip(), original.strip()
        prepared = self.prepare(original)
        if self.answers_lower_case and _begins_large(original) and not _begins_large(prepared):
            translation = _enlarged(translation)
        has_lost_its_mark = original.endswith(ENDS) and not prepared.endswith(ENDS)
        if has_lost_its_mark and not self.answers_final_mark and translation and not translation.endswith(ENDS):
            translation += original[-1]
        return translation


def _form(sentences: Sequence[str]) -> Form | Literal[""]:
    found = (form for form in FORMS if all(unicodedata.is_normalized(form, one) for one in sentences))
    return next(found, "")


def _is_lower_case(sentences: Sequence[str]) -> bool:
    """Whether a text has letters of two cases, and small ones alone; the word I does not count."""
    rest = [PRONOUN.sub("", one) for one in sentences]
    return all(one == one.lower() for one in rest) and any(one.lower() != one.upper() for one in sentences)


def _begins_large(text: str) -> bool:
    first = next(filter(str.isalpha, text), "")
    return first != first.lower()


def _enlarged(text: str) -> str:
    place = next((place for place, letter in enumerate(text) if letter.isalpha()), 0)
    return text[:place] + text[place : place + 1].title() + text[place + 1 :]
