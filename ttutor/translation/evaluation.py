"""How good a translator is: BLEU and chrF by sacreBLEU with their signatures, and the share of exact matches.

A BLEU without its signature cannot be compared: casing and tokenization alone move it by points (Post 2018). Three are
given. The first is the one to report today. The last, `bleu_as_words`, stands beside figures of older papers such as
the 41.02 of Wu et al. (2021), whose tool counts n-grams of the words of a file in which the text is in lower case and
already cut into words. It differs from theirs in one thing: their model writes such words itself, while ours writes
text as people do, which is put into that form afterwards. The reference has as many words as theirs (12,103, for
German).

Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese and Tibetan have no such words to count: their text is cut by
sacreBLEU's tokenizer ``zh`` if it is Chinese, else into characters (``char``), for all three scores; the signature says
so. sacreBLEU itself cuts Japanese and Korean by dictionaries (``ja-mecab``, ``ko-mecab``), which are packages of their
own; compare with such figures only after scoring the translations by that tokenizer.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from ttutor.errors import InputError
from ttutor.translation.moses_tokenize import moses_tokenize

CHINESE = re.compile(r"[㐀-䶿一-鿿豈-\ufaff\U00020000-\U0003ffff]")
OTHERS_WITHOUT_WORDS = re.compile(r"[ぁ-ヿㇰ-ㇿｦ-ﾟ가-힣ᄀ-ᇿ฀-๿຀-໿ក-៿က-႟ༀ-࿿]")
"""Kana, Hangul (whose words carry their endings), Thai, Lao, Khmer, Burmese, Tibetan."""
SCORED_BY = {"zh": "zh", **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo"), "char")}
"""sacreBLEU's tokenizer for languages that 13a, which cuts at blanks and marks, cannot cut."""


@dataclass(frozen=True)
class Evaluation:
    """Scores of a list of translations against one reference each.

    Attributes:
        n_sentences: how many were compared.
        bleu, bleu_signature: cased, on detokenized text, cut by sacreBLEU's `score_tokenizer`.
        bleu_lower_cased, bleu_lower_cased_signature: the same in lower case.
        bleu_as_words, bleu_as_words_signature: of lower-cased text, cut into words by `moses_tokenize`, or, where 13a
            does not serve, as the others.
        language: whose rules cut it into words.
        chrf, chrf_signature: F-score over character n-grams (Popović 2015).
        exact_match: share of translations equal to their reference, from 0 to 1.
        n_cut: translations of sentences too long for the model, or without an end; they count in the scores.
    """

    n_sentences: int
    bleu: float
    bleu_signature: str
    bleu_lower_cased: float
    bleu_lower_cased_signature: str
    bleu_as_words: float
    bleu_as_words_signature: str
    language: str
    chrf: float
    chrf_signature: str
    exact_match: float
    n_cut: int = 0

    def as_dict(self) -> dict:
        """The scores as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        cut = f", of which {self.n_cut:,} not translated whole" if self.n_cut else ""
        rows = [
            ("BLEU, cased", self.bleu, self.bleu_signature),
            ("BLEU, lower-cased", self.bleu_lower_cased, self.bleu_lower_cased_signature),
            (f"BLEU, spaced words, {self.language}", self.bleu_as_words, self.bleu_as_words_signature),
            ("chrF", self.chrf, self.chrf_signature),
        ]
        lines = [f"{name:<25}{score:.2f}   {signature}" for name, score, signature in rows]
        sentences = f"{'sentences':<25}{self.n_sentences:,}{cut}"
        return "\n".join([sentences, *lines, f"{'exact matches':<25}{100 * self.exact_match:.2f} %"])


def evaluate(
    translations: Sequence[str], references: Sequence[str], n_cut: int = 0, language: str = "en"
) -> Evaluation:
    """Compare translations with references, in order.

    Args:
        translations, references: as many of one as of the other.
        n_cut: how many translations are not whole, for the report.
        language: of the translations, as "de", for `bleu_as_words`.

    >>> evaluate(["Le chien dort ."], ["Le chien dort ."]).exact_match
    1.0
    """
    _check_lengths(translations, references)
    tokenizer = score_tokenizer(references, language)
    metrics: dict[str, Any] = {
        "bleu": BLEU(tokenize=tokenizer),
        "bleu_lower_cased": BLEU(tokenize=tokenizer, lowercase=True),
        "chrf": CHRF(),
    }
    scores = {name: metric.corpus_score(list(translations), [list(references)]) for name, metric in metrics.items()}
    if tokenizer == "13a":
        metrics["bleu_as_words"] = BLEU(tokenize="none", force=True)  # force: our text is cut into words on purpose
        cut = [[moses_tokenize(text, language) for text in side] for side in (translations, references)]
        scores["bleu_as_words"] = metrics["bleu_as_words"].corpus_score(cut[0], [cut[1]])
    else:
        metrics["bleu_as_words"], scores["bleu_as_words"] = metrics["bleu_lower_cased"], scores["bleu_lower_cased"]
    return Evaluation(
        n_sentences=len(references),
        language=language,
        exact_match=exact_match(translations, references),
        n_cut=n_cut,
        **{name: score.score for name, score in scores.items()},
        **{f"{name}_signature": str(metric.get_signature()) for name, metric in metrics.items()},  # type: ignore[arg-type]
    )


def score_tokenizer(references: Sequence[str], language: str = "en") -> str:
    """The tokenizer of sacreBLEU that can cut these references: "13a", or another where words have no blanks between.

    The language decides where it is one of those; if not, the letters do, since a language is seldom told.

    >>> score_tokenizer(["今天天气很好"]), score_tokenizer(["猫が好きです"]), score_tokenizer(["Das ist gut."], "de")
    ('zh', 'char', '13a')
    """
    named = SCORED_BY.get(re.split("[-_]", language.lower())[0])
    if named is not None:
        return named
    text = "".join(references)
    chinese, others = len(CHINESE.findall(text)), len(OTHERS_WITHOUT_WORDS.findall(text))
    if 2 * (chinese + others) < sum(letter.isalnum() for letter in text) or not chinese + others:
        return "13a"
    return "zh" if 20 * others < chinese else "char"


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF of each sentence alone, from 0 to 100, to find those that went wrong.

    Not BLEU: in one sentence often no run of four words matches at all, so that its score is zero, or whatever was
    chosen to smooth it. Characters match by degrees.

    >>> [round(score) for score in sentence_chrf(["le chat dort", "x"], ["le chat dort", "le chien"])]
    [100, 0]
    """
    _check_lengths(translations, references)
    metric = CHRF()
    return [metric.sentence_score(one, [other]).score for one, other in zip(translations, references, strict=True)]


def _check_lengths(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references) or not references:
        raise InputError(
            "expected as many translations as references and at least one, "
            f"got {len(translations)} and {len(references)}"
        )


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """The share of translations that equal their reference, letter for letter.

    >>> exact_match(["le chat", "la chat"], ["le chat", "le chat"])
    0.5
    """
    return sum(one == other for one, other in zip(translations, references, strict=True)) / len(references)
