"""How good a translator is: BLEU and chrF by sacreBLEU with their signatures, and the share of exact matches.

A BLEU without its signature cannot be compared: casing and tokenization alone move it by points (Post 2018).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sacrebleu.metrics import BLEU, CHRF

from ttutor.translation.errors import CorpusError


@dataclass(frozen=True)
class Evaluation:
    """Scores of a list of translations against one reference each.

    Attributes:
        n_sentences: how many were compared.
        bleu, bleu_signature: cased, on detokenized text, sacreBLEU's own 13a tokenization.
        bleu_lower_cased, bleu_lower_cased_signature: the same in lower case, nearer to what older papers report.
        chrf, chrf_signature: F-score over character n-grams (Popović 2015).
        exact_match: share of translations equal to their reference, from 0 to 1.
        n_cut: translations of sentences too long for the model, or without an end; they count in the scores.
    """

    n_sentences: int
    bleu: float
    bleu_signature: str
    bleu_lower_cased: float
    bleu_lower_cased_signature: str
    chrf: float
    chrf_signature: str
    exact_match: float
    n_cut: int = 0

    def as_dict(self) -> dict:
        return asdict(self)

    def __str__(self) -> str:
        cut = f", of which {self.n_cut:,} not translated whole" if self.n_cut else ""
        return "\n".join(
            [
                f"sentences                {self.n_sentences:,}{cut}",
                f"BLEU, cased              {self.bleu:.2f}   {self.bleu_signature}",
                f"BLEU, lower-cased        {self.bleu_lower_cased:.2f}   {self.bleu_lower_cased_signature}",
                f"chrF                     {self.chrf:.2f}   {self.chrf_signature}",
                f"exact matches            {100 * self.exact_match:.2f} %",
            ]
        )


def evaluate(translations: Sequence[str], references: Sequence[str], n_cut: int = 0) -> Evaluation:
    """Compare translations with references, in order; `n_cut` is passed on into the report.

    Raises:
        CorpusError: there are none, or not as many of one as of the other.

    >>> evaluate(["Le chien dort ."], ["Le chien dort ."]).exact_match
    1.0
    """
    if len(translations) != len(references) or not references:
        raise CorpusError(
            "expected as many translations as references and at least one, "
            f"got {len(translations)} and {len(references)}"
        )
    cased, lower, characters = BLEU(), BLEU(lowercase=True), CHRF()
    bleu, bleu_lower, chrf = (
        metric.corpus_score(list(translations), [list(references)]) for metric in (cased, lower, characters)
    )
    return Evaluation(
        n_sentences=len(references),
        bleu=bleu.score,
        bleu_signature=str(cased.get_signature()),
        bleu_lower_cased=bleu_lower.score,
        bleu_lower_cased_signature=str(lower.get_signature()),
        chrf=chrf.score,
        chrf_signature=str(characters.get_signature()),
        exact_match=exact_match(translations, references),
        n_cut=n_cut,
    )


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """The share of translations that equal their reference, letter for letter.

    >>> exact_match(["le chat", "la chat"], ["le chat", "le chat"])
    0.5
    """
    return sum(one == other for one, other in zip(translations, references, strict=True)) / len(references)
