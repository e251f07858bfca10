"""What a translator answers."""

from dataclasses import dataclass, field

from ttutor.translation.alignment import CrossAttention


@dataclass(frozen=True)
class Translation:
    """One translated sentence.

    Attributes:
        source: the sentence as it was given.
        text: its translation.
        score: logarithm of the probability, by the length penalty where a beam was used; higher is surer.
        alternatives: further translations of the beam, best first.
        cut: in words, what was cut off: of a sentence longer than the model reads, of a translation without an end.
        attention: where the decoder looked, if it was asked for and there was something to translate.
    """

    source: str
    text: str
    score: float
    alternatives: tuple[tuple[str, float], ...] = ()
    cut: str = ""
    attention: CrossAttention | None = field(default=None, compare=False, repr=False)

    @property
    def is_cut(self) -> bool:
        """Whether the sentence or its translation is not whole."""
        return bool(self.cut)

    def as_dict(self, n_alternatives: int | None = None) -> dict:
        """For JSON: everything, with at most this many alternatives (all when left out)."""
        return {
            "source": self.source,
            "translation": self.text,
            "score": self.score,
            "alternatives": [
                {"translation": text, "score": score} for text, score in self.alternatives[:n_alternatives]
            ],
            "cut": self.cut,
            "attention": None if self.attention is None else self.attention.as_dict(),
        }
