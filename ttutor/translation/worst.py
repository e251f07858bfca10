"""The sentences that a translator does worst, with what it looked at: where to begin to ask why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ttutor.corpora.corpus import Pair
from ttutor.translation.alignment import CrossAttention
from ttutor.translation.answer import Translation
from ttutor.translation.evaluation import sentence_chrf
from ttutor.translation.translator import Translator


@dataclass(frozen=True, eq=False)
class BadSentence:
    """A sentence and what became of it.

    Attributes:
        number: which sentence it is, from 1.
        chrf: of this translation alone.
        source, reference, translation: the sentence, its translation by a person and by the model.
        score: the model's own opinion, as in `Translation`.
        attention: where the decoder looked as it wrote the translation.
    """

    number: int
    chrf: float
    source: str
    reference: str
    translation: str
    score: float
    attention: CrossAttention

    def as_dict(self) -> dict:
        """For JSON."""
        return vars(self) | {"attention": self.attention.as_dict()}

    def lines(self, width: int = 100) -> Iterator[str]:
        """For a terminal."""
        yield f"sentence {self.number:,}: chrF {self.chrf:.1f}, score {self.score:.3f}"
        for name in ("source", "reference", "translation"):
            yield f"  {name:<13}{getattr(self, name)}".rstrip()
        for line in self.attention.lines(width - 4):
            yield f"    {line}".rstrip()


def worst_sentences(
    translator: Translator, answers: Sequence[Translation], pairs: Sequence[Pair], count: int
) -> list[BadSentence]:
    """The sentences with the lowest chrF, the worst first; of equals the earlier; none that equals its reference.

    Args:
        translator: which wrote the answers.
        answers: to the first sentence of each pair, in order.
        pairs: sentences with their translations by people.
        count: how many sentences to return, if there are so many.
    """
    scores = sentence_chrf([answer.text for answer in answers], [reference for _, reference in pairs])
    wrong = [place for place, (_, reference) in enumerate(pairs) if answers[place].text != reference]
    places = sorted(wrong, key=lambda place: scores[place])[:count]
    looked = translator.align([(answers[place].source, answers[place].text) for place in places])
    return [
        BadSentence(place + 1, scores[place], *pairs[place], answers[place].text, answers[place].score, attention)
        for place, attention in zip(places, looked, strict=True)
    ]
