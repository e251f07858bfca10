"""A trained model as a translator: sentences in, sentences out.

.. code-block:: python

    translator = Translator.load("ttutor-runs/embedded")
    answer = translator("The dog sleeps.")
    answer.text, answer.score, answer.attention.links()
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError, InputError, SettingError
from ttutor.generation import Hypothesis
from ttutor.names import answers_other_names
from ttutor.tokenization import EOS_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.checkpoint import check_belongs, copy_into, load_checkpoint, signature
from ttutor.training.precision import PRECISIONS, resolve_precision
from ttutor.training.preparation import model_config
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.run_folder import RunFolder
from ttutor.training.trainer import Trainer
from ttutor.transformer import Transformer
from ttutor.translation.alignment import CrossAttention, cross_attention
from ttutor.translation.answer import Translation
from ttutor.translation.engine import Engine, OwnEngine

__all__ = ["EngineTranslator", "Translation", "Translator"]

ROWS = 640
"""Decoder rows at one time: sentences times beam width."""

LENGTH_PENALTY = 1.0
"""On validation sentences of Multi30k it scores higher than the 0.6 of the paper."""

SPARE_TOKENS = 50
"""A translation may have twice the tokens of the longest sentence in its batch, and this many more (the paper, section
6.1, allows 50 more than the source)."""


class EngineTranslator:
    """Translates sentences, whatever program does the search.

    Args:
        engine: what searches; `OwnEngine`, or that of an exported model (`ttutor.translation.export.load_exported`).
        tokenizer: the vocabulary that the model was trained with.
        style: how the training text wrote its sentences.
    """

    def __init__(self, engine: Engine, tokenizer: SubwordTokenizer, style: TextStyle | None = None):
        self.engine = engine
        self.tokenizer = tokenizer
        self.style = style or TextStyle()

    def __call__(self, sentence: str, **options: Any) -> Translation:
        """Translate one sentence; options as for `translate`."""
        if not isinstance(sentence, str):
            raise TypeError(f"expected one sentence, but came {type(sentence).__name__}; translate(...) takes several")
        return self.translate([sentence], **options)[0]

    def translate(
        self, sentences: Sequence[str], *, beam_size: int = 5, length_penalty: float = LENGTH_PENALTY
    ) -> list[Translation]:
        """Translate sentences, in batches of similar length; the answers come in the order of the questions.

        Arguments and errors as for `Translator.translate`.
        """
        return self._translate(self.engine, sentences, beam_size, length_penalty)

    def _translate(
        self,
        engine: Engine,
        sentences: Sequence[str],
        beam_size: int,
        length_penalty: float,
        threads: int = 0,
        look: Callable[[list[Hypothesis], list[list[int]]], list[CrossAttention]] | None = None,
    ) -> list[Translation]:
        """Translate with this engine, by so many threads of ours; with ``look``, also record where the model looked."""
        self._check_search(beam_size, length_penalty)
        _check_sentences(sentences)
        token_ids = self._token_ids(sentences, self.style.prepare)
        answers: dict[int, Translation] = {}
        rows_of = list(_batches_by_length(token_ids, max(1, ROWS // beam_size)))[::-1]  # longest first
        batches = [[token_ids[row] for row in rows] for rows in rows_of]

        def search(batch: list[list[int]]) -> list[list[Hypothesis]]:
            return self._search(engine, batch, beam_size, length_penalty)

        every_found = _side_by_side(search, batches, threads) if threads else map(search, batches)
        for rows, batch, found in zip(rows_of, batches, every_found, strict=True):
            seen = look([ranked[0] for ranked in found], batch) if look else [None] * len(rows)
            for row, ranked, where in zip(rows, found, seen, strict=True):
                cut = self._cut(len(token_ids[row]), ranked[0])
                answers[row] = replace(self._answer(sentences[row], ranked), cut=cut, attention=where)
        return [answers.get(row, Translation(sentence, "", 0.0)) for row, sentence in enumerate(sentences)]

    def _token_ids(self, sentences: Sequence[str], prepare: Callable[[str], str]) -> list[list[int]]:
        """The tokens of each sentence as the corpus would write it; none of an empty one."""
        prepared = [prepare(sentence) for sentence in sentences]
        return [ids if text else [] for ids, text in zip(self.tokenizer.encode_all(prepared), prepared, strict=True)]

    def _ended(self, ids: list[int]) -> list[int]:
        """What the model reads of a sentence: as much as it has positions for, and the end mark."""
        return [*ids[: self._longest], EOS_ID]

    def _check_search(self, beam_size: int, length_penalty: float) -> None:
        widest = self.engine.config.vocab_size // 2
        if beam_size < 1:
            raise SettingError(f"beam_size must be at least 1, got {beam_size}")
        if beam_size > widest:
            raise SettingError(f"beam_size must be at most half the vocabulary, {widest}, got {beam_size}")
        if not 0 <= length_penalty <= 10:
            raise SettingError(
                f"length_penalty must be a number from 0 to 10, got {length_penalty}; {LENGTH_PENALTY} is usual here"
            )

    @property
    def _longest(self) -> int:
        """How many tokens of a sentence the model can read, its end mark aside."""
        return self.engine.config.max_len - 1

    def _cut(self, n_source: int, best: Hypothesis) -> str:
        """What was cut off, in words; nothing if both ends were reached."""
        if n_source > self._longest:
            return f"it has {n_source:,} tokens, of which the model read the first {self._longest:,}"
        return "" if best.is_finished else f"no end of the translation came within {len(best.token_ids):,} tokens"

    def _search(
        self, engine: Engine, batch: list[list[int]], beam_size: int, length_penalty: float
    ) -> list[list[Hypothesis]]:
        sources = [self._ended(ids) for ids in batch]
        limit = 2 * max(map(len, sources)) + SPARE_TOKENS
        try:
            return engine.search(sources, beam_size=beam_size, length_penalty=length_penalty, max_new_tokens=limit)
        except FloatingPointError as error:
            raise FileError(
                f"the model's weights give no probabilities ({error}); use an older checkpoint or train anew"
            ) from None

    def _answer(self, sentence: str, ranked: list[Hypothesis]) -> Translation:
        """Hypotheses as text, written as the reader writes."""
        texts = [(self.style.restore(self.tokenizer.decode(one.token_ids), sentence), one.score) for one in ranked]
        return Translation(sentence, *texts[0], alternatives=tuple(texts[1:]))


class Translator(EngineTranslator):
    """Translates with a trained model.

    Args:
        model: the weights.
        tokenizer: the vocabulary that the model was trained with.
        style: how the training text wrote its sentences.
    """

    def __init__(self, model: Transformer, tokenizer: SubwordTokenizer, style: TextStyle | None = None):
        self._engines = {"fp32": OwnEngine(model)}  # each prepares the model once
        super().__init__(self._engines["fp32"], tokenizer, style)
        self.model = model.eval()
        self.messages: list[str] = []
        self.unfinished = ""

    @classmethod
    def load(cls, folder: str | Path) -> "Translator":
        """Read the weights to translate with from the newest whole checkpoint in a run's folder.

        These are the averaged ones, as they stand or, with patience or long after it, as at the best validation.
        `messages` of the result tells of damaged checkpoints that were passed over, `unfinished` (empty if so) that
        the training had not come to its end.
        """
        run = RunFolder(folder)
        facts, tokenizer = run.facts(), run.tokenizer()
        checkpoint, messages = load_checkpoint(run.checkpoints)
        recipe = run.recipe()
        config = model_config(recipe, tokenizer.vocab_size)
        signed = signature(facts.fingerprint, recipe, tokenizer, facts.style, facts.precision)
        check_belongs(checkpoint, run.checkpoints, signed, model=config.to_dict())
        model = Transformer(config)
        standing = checkpoint.part(Standing, run.checkpoints)
        weights = checkpoint.group("best" if standing.uses_best else "averaged")
        copy_into(dict(model.named_parameters()), weights, "the averaged weights")
        translator = cls(model, tokenizer, facts.style)
        translator.messages, translator.unfinished = messages, _unfinished(standing, recipe)
        return translator

    @classmethod
    def of(cls, trainer: Trainer) -> "Translator":
        """A translator with a copy of a trainer's averaged weights, for a training that lives in memory."""
        model = Transformer(trainer.model.config)
        copy_into(dict(model.named_parameters()), trainer.result(), "the averaged weights")
        return cls(model, trainer.tokenizer, trainer.style)

    @property
    def device(self) -> torch.device:
        """Where the model's weights are; a GPU after ``translator.model.to("cuda")``."""
        return next(self.model.parameters()).device

    def __call__(self, sentence: str, *, attention: bool = True, **options: Any) -> Translation:
        """Translate one sentence, and say where the decoder looked; options as for `translate`."""
        return super().__call__(sentence, attention=attention, **options)

    @answers_other_names
    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam_size: int = 5,
        length_penalty: float = LENGTH_PENALTY,
        precision: str = "fp32",
        attention: bool = False,
        threads: int | None = None,
    ) -> list[Translation]:
        """Translate sentences, in batches of similar length; the answers come in the order of the questions.

        An empty sentence has an empty translation. A sentence longer than the model has positions for is translated up
        to there; `cut` of its translation says so.

        Args:
            sentences: source sentences, one each.
            beam_size: how many partial translations the search keeps; 1 is greedy search.
            length_penalty: the exponent of Wu et al. (2016), equation 14, from 0 (favours short translations) to 10.
            precision: the number format of the search's matrix products: "fp32"; "bf16", which now and then chooses
                another word, and pays on some processors (`benchmarks/README.md`); or "auto", which is bf16
                where the processor multiplies it natively.
            attention: whether to run the model once more over what it wrote, to record where it looked.
            threads: how many batches a CPU translates side by side, each on one thread; as many as PyTorch has threads
                when left out. The translations are the same, and a batch has at most 640 partial translations.

        Raises:
            TypeError: `sentences` is one string.
            InputError: a sentence cannot be written in UTF-8.
            SettingError: (a ValueError) `beam_size` is below 1 or more than half the vocabulary, or there is no such
                penalty or number format.
            FileError: the model's weights give no probabilities.
        """
        if precision not in ("auto", *PRECISIONS):
            raise SettingError(f"precision must be auto, {' or '.join(PRECISIONS)}, got {precision!r}")
        precision = resolve_precision(precision, self.device)
        if precision not in self._engines:
            self._engines[precision] = OwnEngine(self.model, precision)
        if threads is not None and threads < 1:
            raise SettingError(f"threads must be at least 1, got {threads}")
        threads = (threads or torch.get_num_threads()) if self.device.type == "cpu" else 0
        engine, look = self._engines[precision], self._looked if attention else None
        return self._translate(engine, sentences, beam_size, length_penalty, threads, look)

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[CrossAttention]:
        """Where the decoder looks while it is made to write given translations, by people or by itself.

        Both sides are read as far as the model has positions.

        Args:
            pairs: source sentences and their translations; either may be empty.
        """
        given = [one for one, _ in pairs], [other for _, other in pairs]
        for side in given:
            _check_sentences(side)
        prepare = self.style.prepare, self.style.prepare_answer
        sources, targets = (
            [self._ended(ids) for ids in self._token_ids(side, of_side)]
            for side, of_side in zip(given, prepare, strict=True)
        )
        found: dict[int, CrossAttention] = {}
        for rows in _batches_by_length(targets, ROWS):
            batch = ([side[row] for row in rows] for side in (sources, targets))
            found.update(zip(rows, cross_attention(self.model, self.tokenizer, *batch), strict=True))
        return [found[row] for row in range(len(pairs))]

    def _looked(self, best: list[Hypothesis], batch: list[list[int]]) -> list[CrossAttention]:
        targets = [[*one.token_ids, EOS_ID] if one.is_finished else list(one.token_ids) for one in best]
        return cross_attention(self.model, self.tokenizer, [self._ended(ids) for ids in batch], targets)


def _check_sentences(sentences: Sequence[str]) -> None:
    if isinstance(sentences, str):
        raise TypeError("translate expects a list of sentences, got one string; call translator(sentence) for one")
    for number, sentence in enumerate(sentences, start=1):
        try:
            sentence.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"sentence {number} is no text that UTF-8 can write: its character {error.start + 1} is "
                f"{sentence[error.start]!a}, half of a pair or a byte that was not UTF-8; convert it to UTF-8"
            ) from None


@dataclass(frozen=True)
class Standing:
    """What a checkpoint says of a training to whom only its weights matter: how far it is, and which weights count."""

    step: int
    progress: float
    uses_best: bool


def _unfinished(standing: Standing, recipe: TrainingRecipe) -> str:
    """In words, how far the training has come; nothing if to its end."""
    if standing.progress >= 1:
        return ""
    length = f"of {recipe.steps:,} steps" if recipe.steps else f"steps, {100 * standing.progress:.0f} % of its training"
    return f"this model has trained {standing.step:,} {length}"


def _side_by_side(search: Callable[[list[list[int]]], Any], batches: list[list[list[int]]], threads: int) -> list[Any]:
    """What is found in each batch, in as many threads, each of which multiplies alone.

    Two batches need not wait for each other after every product, as the threads of one product do; and those that wait
    take the processor's time from whoever else needs it.
    """
    n_before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(search, batches))
    finally:
        torch.set_num_threads(n_before)  # a thread's wish is also the default of threads to come


def _batches_by_length(token_ids: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Row numbers of all sentences that have a token, sorted by length, `size` at a time."""
    rows = sorted((row for row, ids in enumerate(token_ids) if ids), key=lambda row: len(token_ids[row]))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
