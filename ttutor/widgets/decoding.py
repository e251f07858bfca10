"""Decoding: how a translation is chosen token by token, by beam search, and what greedy search would have written.

The search is `ttutor.generation.beam_search`, which tells what it sees; nothing of it is done again here.
"""

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import traitlets as t
from torch import nn

from ttutor import assets
from ttutor.generation import BeamStep, Hypothesis, beam_search, length_penalty, stream
from ttutor.widgets.base import Explorer, table_html, within

DROPPED, KEPT, FINISHED, CUT = range(4)
"""What becomes of a candidate; one that is cut was open when the limit came."""


@dataclass(frozen=True)
class Speaker:
    """A model with its words.

    Attributes:
        model: an encoder-decoder of ours.
        bos_id, eos_id: what a target starts and ends with.
        read: from a sentence to the ids that the model reads.
        written: the text of a token; a leading blank is "▁".
    """

    model: nn.Module
    bos_id: int
    eos_id: int
    read: Callable[[str], list[int]]
    written: Callable[[int], str]


class Names:
    """Numbers the tokens that occur, so that each text is stored once; the end mark is 0 and has no text."""

    def __init__(self, speaker: Speaker) -> None:
        self.written = speaker.written
        self.texts = [""]
        self.places = {speaker.eos_id: 0}

    def __call__(self, token_id: int) -> int:
        if token_id not in self.places:
            self.places[token_id] = len(self.texts)
            self.texts.append(self.written(token_id))
        return self.places[token_id]


def record_decoding(
    speaker: Speaker, text: str, name: Callable[[int], int], *, beam_size: int, max_new_tokens: int
) -> dict[str, Any]:
    """Translate one sentence by beam search and by greedy search, and keep what they do.

    Args:
        speaker: an encoder-decoder of ours with its marks.
        text: the sentence.
        name: gives the number under which a token's text is stored.
        beam_size, max_new_tokens: as for `beam_search`.

    Returns:
        ``source``. ``candidates``: for each step the extensions that were ranked, best first: the place of the partial
        hypothesis that they extend, the token, their log probability, what became of them. Those that were kept are the
        next step's partial hypotheses, in their order. ``greedy``: the tokens of the greedy search, the end mark
        included, with their log probabilities.
    """
    steps: list[BeamStep] = []
    ids = speaker.read(text)
    if len(ids) < 2:
        raise ValueError(f"{text!r} is no sentence: there is nothing to translate")
    source = torch.tensor([ids])
    model, eos_id = speaker.model, speaker.eos_id
    limits: dict[str, Any] = {"bos_id": speaker.bos_id, "eos_id": eos_id, "max_new_tokens": max_new_tokens}
    (found,) = beam_search(model, source, beam_size=beam_size, watch=steps.append, **limits)
    partials = [_open(step) for step in steps]
    return {
        "source": text,
        "candidates": [_candidates(at, steps, partials, found, eos_id, name) for at in range(len(steps))],
        "greedy": [[name(new.token_id), _round(new.log_probability)] for new in stream(model, source, **limits)],
    }


def _open(step: BeamStep) -> list[tuple[int, ...]]:
    """The partial hypotheses that are there (copies that wait at the first step are not)."""
    exists = (step.totals[0] > float("-inf")).tolist()
    return [tuple(ids) for ids, real in zip(step.tokens.tolist(), exists, strict=True) if real]


def _candidates(
    at: int,
    steps: list[BeamStep],
    partials: list[list[tuple[int, ...]]],
    found: list[Hypothesis],
    eos_id: int,
    name: Callable[[int], int],
) -> list[list]:
    """The ranked extensions of one step, and what became of each: the search's own next step and results tell."""
    step = steps[at]
    finished = {one.token_ids for one in found if one.is_finished}
    cut = {one.token_ids for one in found if not one.is_finished}
    following = set(partials[at + 1]) if at + 1 < len(steps) else set()
    listed = []
    for row, token, total in zip(
        step.rows[0].tolist(), step.new_tokens[0].tolist(), step.candidates[0].tolist(), strict=True
    ):
        before = partials[at][row] if row < len(partials[at]) else None
        if before is None or total == float("-inf"):
            continue
        if token == eos_id:
            fate = FINISHED if before in finished else DROPPED
        else:
            new = (*before, token)
            fate = KEPT if new in following else CUT if new in cut and at + 1 == len(steps) else DROPPED
        listed.append([row, name(token), _round(total), fate])
    return listed


def _round(value: float) -> float:
    return round(value, 4) + 0.0


def speaker_of(model: Any, tokenizer: Any = None) -> Speaker:
    """The model with its words."""
    from ttutor.translation.translator import Translator  # needs the tokenizers, which a recording does not

    if isinstance(model, Translator):
        return _translator(model)
    if tokenizer is None or not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        raise TypeError(
            f"model has to be a Translator, or an encoder-decoder of Hugging Face with its tokenizer, not "
            f"{type(model).__name__}; a model of ours goes into Translator(model, tokenizer)"
        )
    return _hugging_face(model, tokenizer)


def _translator(translator: Any) -> Speaker:
    from ttutor.tokenization import BOS_ID, EOS_ID

    def read(text: str) -> list[int]:
        longest = translator.model.config.max_len - 1
        ids = [*translator.tokenizer.encode(translator.style.prepare(text))[:longest], EOS_ID]
        return ids if text.strip() else []

    return Speaker(translator.model, BOS_ID, EOS_ID, read, lambda token_id: translator.tokenizer.tokens([token_id])[0])


def _hugging_face(model: nn.Module, tokenizer: Any) -> Speaker:
    from ttutor.interop import from_huggingface

    def read(text: str) -> list[int]:
        return list(tokenizer(text)["input_ids"]) if text.strip() else []

    def written(token_id: int) -> str:
        return str(tokenizer.convert_ids_to_tokens([token_id])[0])

    config: Any = model.config
    return Speaker(from_huggingface(model), config.decoder_start_token_id, config.eos_token_id, read, written)


MAX_BEAM = 5
MAX_SENTENCES = 8
MAX_STEPS = 24
"""Longer translations are cut off, and the figure says so."""
_ELIDED = "Before a vowel French has “j'”: greedy took “je” one token too early, and cannot go back."
_CONTRACTED = "French joins “de” and “le” into “du”: greedy took “de” one token too early, and cannot go back."


class DecodingExplorer(Explorer):
    """A translation token by token: which beginnings a beam keeps, and where greedy search's loses the lead.

    Make it by `recorded` (sentences that our small translator was recorded on) or by `from_model` (your model, your
    sentence). The tree shows the partial hypotheses that beam search keeps, as broad as they are probable; choose
    the one that you would keep, step on, move the length penalty to rank the finished ones anew.

    Args:
        tokens: the texts of all tokens that occur, a leading blank as "▁"; the first is the end mark, without text.
        sentences: for each what `record_decoding` gives, and as text its ``reference``
            and which ``model`` it was (both may be empty).
        beam_size: how many partial hypotheses were kept.
        alpha: the length penalty's exponent that the figure starts with, from 0 to 2.
        note: where the recording comes from.

    >>> explorer = DecodingExplorer.recorded()
    >>> explorer.step = 2
    >>> explorer.sentence = len(explorer.sentences)
    Traceback (most recent call last):
    ...
    ValueError: sentence has to be from 0 to ..., not ...; it numbers the recorded sentences
    """

    _module = "decoding"
    _title = "Decoding"

    tokens = t.List(t.Unicode()).tag(sync=True)
    sentences = t.List(t.Dict()).tag(sync=True)
    beam_size = t.Int(1).tag(sync=True)
    sentence = t.Int(0).tag(sync=True)
    step = t.Int(0).tag(sync=True)
    beam = t.Int(0).tag(sync=True)
    alpha = t.Float(1.0, min=0, max=2).tag(sync=True)
    note = t.Unicode("").tag(sync=True)

    def __init__(
        self, tokens: Sequence[str], sentences: Sequence[dict], *, beam_size: int, alpha: float = 1.0, note: str = ""
    ) -> None:
        super().__init__(tokens=list(tokens), sentences=list(sentences), beam_size=beam_size, alpha=alpha, note=note)

    @classmethod
    def recorded(cls) -> "DecodingExplorer":
        """Translations of our small English–French translator, recorded by ``experiments/decoder_recording.py``.

        Of the recorded sentences those are shown that the beam translates as in the reference.
        """
        stored = assets.load("decoder_recording")
        sentences = [json.loads(one) for one in stored["sentences"]]
        note = f"{stored['note']} Shown are sentences that this beam gets right."
        made = cls(stored["tokens"], sentences, beam_size=stored["beam_size"], alpha=stored["alpha"], note=note)
        for number, one in enumerate(sentences):
            if " de le " in made.greedy(number)[0] and " du " in made.results(number)[0][0]:
                one["why"] = _CONTRACTED
            if re.search(r"\bje [aeiouyéè]", made.greedy(number)[0]) and "j'" in made.results(number)[0][0]:
                one["why"] = _ELIDED
        right = [number for number, one in enumerate(sentences) if made.results(number)[0][0] == one["reference"]]
        made.sentences = [sentences[number] for number in right]
        made.sentence = 1
        return made

    @classmethod
    def from_model(
        cls,
        model: Any,
        text: str | Sequence[str],
        *,
        beam: int = 4,
        tokenizer: Any = None,
        max_new_tokens: int = MAX_STEPS,
    ) -> "DecodingExplorer":
        """Record translations now.

        Args:
            model: a `ttutor.translation.translator.Translator`, or an encoder-decoder of Hugging Face (Marian, T5) with
                its ``tokenizer``; the latter is turned into a model of ours.
            text: a sentence, or a few.
            beam: how many partial hypotheses to keep, from 1 (greedy) to 5.
            tokenizer: of a Hugging Face model.
            max_new_tokens: where translations are cut off, at most 24.
        """
        texts = [text] if isinstance(text, str) else list(text)
        within("beam", beam, 1, MAX_BEAM, "more do not fit a screen")
        within("the number of sentences", len(texts), 1, MAX_SENTENCES)
        speaker = speaker_of(model, tokenizer)
        names = Names(speaker)
        sentences = []
        for one in texts:
            limit = min(max_new_tokens, MAX_STEPS)
            trace = record_decoding(speaker, one, names, beam_size=beam, max_new_tokens=limit)
            sentences.append({"reference": "", "model": "", **trace})
        return cls(names.texts, sentences, beam_size=beam)

    def describe(self) -> str:
        return f"{len(self.sentences)} sentences, beam of {self.beam_size}, sentence {self.sentence}, step {self.step}"

    def results(self, sentence: int | None = None) -> list[tuple[str, float, int, float, bool]]:
        """What beam search found, ranked as `ttutor.generation.beam_search` does under the present length penalty.

        Args:
            sentence: which one; the one that is shown when left out.

        Returns:
            For each hypothesis its text, its log probability, its number of tokens (the end mark counts), its score,
            and whether it ended; the best first.
        """
        recorded = self.sentences[self.sentence if sentence is None else sentence]
        partials: list[list[int]] = [[]]
        found = []
        for at, candidates in enumerate(recorded["candidates"], start=1):
            for row, token, total, fate in candidates:
                if fate in (FINISHED, CUT):
                    ids = partials[row] if fate == FINISHED else [*partials[row], token]
                    score = total / length_penalty(at, self.alpha)
                    found.append((self._text(ids), total, at, score, fate == FINISHED))
            partials = [[*partials[row], token] for row, token, _, fate in candidates if fate == KEPT]
        return sorted(found, key=lambda one: (not one[4], -one[3]))

    def greedy(self, sentence: int | None = None) -> tuple[str, float]:
        """What greedy search wrote, and its log probability."""
        written = self.sentences[self.sentence if sentence is None else sentence]["greedy"]
        return self._text([token for token, _ in written]), sum(gain for _, gain in written)

    def _text(self, ids: Sequence[int]) -> str:
        return "".join(self.tokens[place] for place in ids).replace("▁", " ").strip()

    def fallback_html(self) -> str:
        """Of each sentence what greedy search and beam search wrote, with their numbers."""
        parts = []
        for number, one in enumerate(self.sentences):
            text, total = self.greedy(number)
            rows = [("greedy", text, f"{total:.2f}", "–")]
            for rank, (text, total, _, score, ended) in enumerate(self.results(number), start=1):
                rows.append(
                    (f"beam {rank}" if ended else f"beam {rank}, cut off", text, f"{total:.2f}", f"{score:.2f}")
                )
            kind = f" (the model {one['model']} of training)" if one["model"] else ""
            caption = f"“{one['source']}” in greedy search and in a beam of {self.beam_size}{kind}"
            parts.append(table_html(caption, ("search", "translation", "log p", "score"), rows))
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return "".join(parts) + note

    @t.validate("sentence", "step", "beam")
    def _check_place(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        counts = {"sentence": len(self.sentences)}
        if name != "sentence":
            counts["step"] = len(self.sentences[self.sentence]["candidates"])
            counts["beam"] = self._n_open()
        words = {
            "sentence": "it numbers the recorded sentences",
            "step": "it counts the tokens before it in this sentence",
            "beam": "it numbers the partial hypotheses at this step",
        }
        return within(name, value, 0, counts[name] - 1, words[name])

    @t.observe("sentence")
    def _begin_again(self, _: dict) -> None:
        if self.step >= len(self.sentences[self.sentence]["candidates"]):
            self.step = 0

    @t.observe("sentence", "step")
    def _best_first(self, _: dict) -> None:
        if self.beam >= self._n_open():
            self.beam = 0

    def _n_open(self) -> int:
        """How many partial hypotheses there are at this step."""
        before = self.sentences[self.sentence]["candidates"][: self.step]
        return sum(fate == KEPT for *_, fate in before[-1]) if before else 1
