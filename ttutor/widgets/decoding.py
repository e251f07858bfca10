"""Decoding: how a translation is chosen token by token, by beam search, and what greedy search would have written."""

import html
import json
from collections.abc import Sequence
from typing import Any

import traitlets as t

from ttutor import assets
from ttutor.generation import length_penalty
from ttutor.widgets.base import Explorer, rounded_array
from ttutor.widgets.decoding_trace import CUT, FINISHED, KEPT, Names, record_decoding

MAX_BEAM = 5
MAX_SENTENCES = 8
MAX_STEPS = 24
"""Longer translations are cut off, and the figure says so."""
MAX_ALPHA = 2.0
LARGEST = 30_000
"""Bytes of the figure in a page."""


class DecodingExplorer(Explorer):
    """A translation token by token: what the decoder looks at, which tokens it considers, which beginnings survive.

    Make it by `recorded` (sentences that our small translator was recorded on) or by `from_model` (your model, your
    sentence). The tree shows the beginnings that beam search keeps; step through it, choose a beginning to see where it
    looks, move the length penalty to rank the finished ones anew.

    Args:
        tokens: the texts of all tokens that occur, a leading blank as "▁"; the first is the end mark, without text.
        sentences: for each what `ttutor.widgets.decoding_trace.record_decoding` gives, and as text its ``reference``
            and which ``model`` it was (both may be empty).
        beam_size: how many beginnings were kept.
        alpha: the length penalty's exponent that the figure starts with, from 0 to 2.
        note: where the recording comes from.

    Raises:
        ValueError: there is no sentence, or one is not whole; the message names it.

    >>> explorer = DecodingExplorer.recorded()
    >>> explorer.step = 2
    >>> explorer.sentence = len(explorer.sentences)
    Traceback (most recent call last):
    ...
    ValueError: sentence has to be from 0 to ..., not ...; it numbers the recorded sentences
    """

    _module = "decoding"
    _title = "Decoding"
    _state_keys = ("tokens", "sentences", "beam_size", "sentence", "step", "beam", "alpha", "note")

    tokens = t.List(t.Unicode()).tag(sync=True)
    sentences = t.List(t.Dict()).tag(sync=True)
    beam_size = t.Int(1).tag(sync=True)
    sentence = t.Int(0).tag(sync=True)
    step = t.Int(0).tag(sync=True)
    beam = t.Int(0).tag(sync=True)
    alpha = t.Float(1.0).tag(sync=True)
    note = t.Unicode("").tag(sync=True)

    def __init__(
        self, tokens: Sequence[str], sentences: Sequence[dict], *, beam_size: int, alpha: float = 1.0, note: str = ""
    ) -> None:
        if not sentences:
            raise ValueError(
                "there is no sentence; use DecodingExplorer.recorded() or DecodingExplorer.from_model(...)"
            )
        for number, one in enumerate(sentences):
            _check_sentence(number, one, len(tokens))
        super().__init__(tokens=list(tokens), sentences=list(sentences), beam_size=beam_size, alpha=alpha, note=note)

    @classmethod
    def recorded(cls) -> "DecodingExplorer":
        """Translations of our small English–French translator, recorded by ``experiments/decoder_recording.py``."""
        stored = assets.load("decoder_recording")
        sentences = [json.loads(one) for one in stored["sentences"]]
        return cls(stored["tokens"], sentences, **{name: stored[name] for name in ("beam_size", "alpha", "note")})

    @classmethod
    def from_model(
        cls,
        model: Any,
        text: str | Sequence[str],
        *,
        beam: int = 4,
        alpha: float = 1.0,
        tokenizer: Any = None,
        max_new_tokens: int = MAX_STEPS,
        references: Sequence[str] = (),
        note: str = "",
    ) -> "DecodingExplorer":
        """Record translations now.

        Args:
            model: a `ttutor.translation.translator.Translator`, or an encoder-decoder of Hugging Face (Marian, T5) with
                its ``tokenizer``; the latter is turned into a model of ours.
            text: a sentence, or a few.
            beam: how many beginnings to keep, from 1 (greedy) to 5.
            alpha: the length penalty's exponent to start with.
            tokenizer: of a Hugging Face model.
            max_new_tokens: where translations are cut off, at most 24.
            references: translations by people, if there are any.
            note: where the model comes from, for the reader.

        Raises:
            TypeError: the model is none of these.
            ValueError: a sentence is empty, the beam is too wide, or there is too much for one page.
        """
        texts = [text] if isinstance(text, str) else list(text)
        if not 1 <= beam <= MAX_BEAM:
            raise ValueError(f"beam has to be from 1 to {MAX_BEAM} (more do not fit a screen), not {beam}")
        if len(texts) > MAX_SENTENCES:
            raise ValueError(f"{len(texts)} sentences are more than fit; give up to {MAX_SENTENCES}")
        from ttutor.widgets.decoding_models import speaker_of  # needs the tokenizers, which a recording does not

        speaker = speaker_of(model, tokenizer)
        names = Names(speaker)
        sentences = []
        for number, one in enumerate(texts):
            reference = references[number] if number < len(references) else ""
            limit = min(max_new_tokens, MAX_STEPS)
            trace = record_decoding(speaker, one, names, beam_size=beam, max_new_tokens=limit)
            sentences.append({"reference": reference, "model": "", **trace})
        made = cls(names.texts, sentences, beam_size=beam, alpha=alpha, note=note)
        size = len(made.to_html().encode())
        if size > LARGEST:
            raise ValueError(
                f"{len(texts)} sentences with a beam of {beam} make a page of {size:,} bytes, more than {LARGEST:,}; "
                f"give fewer or shorter sentences, or a narrower beam"
            )
        return made

    def describe(self) -> str:
        """How many sentences, how wide the beam is, and where the figure stands."""
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
        beginnings: list[list[int]] = [[]]
        found = []
        for at, candidates in enumerate(recorded["candidates"], start=1):
            for row, token, total, fate in candidates:
                if fate in (FINISHED, CUT):
                    ids = beginnings[row] if fate == FINISHED else [*beginnings[row], token]
                    score = total / length_penalty(at, self.alpha)
                    found.append((self._text(ids), total, at, score, fate == FINISHED))
            beginnings = [[*beginnings[row], token] for row, token, _, fate in candidates if fate == KEPT]
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
            rows = [("greedy", *self.greedy(number), "–")]
            for rank, (text, total, _, score, ended) in enumerate(self.results(number), start=1):
                rows.append((f"beam {rank}" if ended else f"beam {rank}, cut off", text, total, f"{score:.2f}"))
            cells = "".join(
                f'<tr><th scope="row">{search}</th><td>{html.escape(text)}</td>'
                f"<td>{total:.2f}</td><td>{score}</td></tr>"
                for search, text, total, score in rows
            )
            kind = f" (the model {html.escape(one['model'])} of training)" if one["model"] else ""
            caption = f"“{html.escape(one['source'])}” in greedy search and in a beam of {self.beam_size}{kind}"
            head = "".join(f'<th scope="col">{name}</th>' for name in ("search", "translation", "log p", "score"))
            parts.append(
                f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>"
            )
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return "".join(parts) + note

    @t.validate("sentence", "step", "beam")
    def _check_place(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        counts = {"sentence": len(self.sentences)}
        if name != "sentence":
            steps = self.sentences[self.sentence]["attention"]
            counts["step"] = len(steps)
            counts["beam"] = len(steps[min(self.step, len(steps) - 1)])
        if not 0 <= value < counts[name]:
            words = {
                "sentence": "it numbers the recorded sentences",
                "step": "it counts the tokens before it in this sentence",
                "beam": "it numbers the beginnings at this step",
            }
            raise ValueError(f"{name} has to be from 0 to {counts[name] - 1}, not {value}; {words[name]}")
        return value

    @t.validate("alpha")
    def _check_alpha(self, proposal: dict) -> float:
        if not 0 <= proposal["value"] <= MAX_ALPHA:
            raise ValueError(f"alpha has to be from 0 to {MAX_ALPHA}, not {proposal['value']}; 0 is no length penalty")
        return proposal["value"]

    @t.observe("sentence")
    def _begin_again(self, _: dict) -> None:
        if self.step >= len(self.sentences[self.sentence]["attention"]):
            self.step = 0

    @t.observe("sentence", "step")
    def _best_first(self, _: dict) -> None:
        if self.beam >= len(self.sentences[self.sentence]["attention"][self.step]):
            self.beam = 0


def _check_sentence(number: int, one: dict, n_tokens: int) -> None:
    """Refuse a recording that is not whole."""
    wanted = ("source", "reference", "model", "source_tokens", "candidates", "attention", "next", "greedy")
    missing = [name for name in wanted if name not in one]
    if missing:
        raise ValueError(f"sentences[{number}] has no {', '.join(missing)}; record it by DecodingExplorer.from_model")
    if not len(one["candidates"]) == len(one["attention"]) == len(one["next"]) > 0:
        raise ValueError(f"sentences[{number}] has not as many steps in candidates, attention and next, or none")
    n_open = 1
    for at, (candidates, seen, following) in enumerate(
        zip(one["candidates"], one["attention"], one["next"], strict=True)
    ):
        if not len(seen) == len(following) == n_open:
            raise ValueError(f"sentences[{number}] has {n_open} beginnings at step {at}, but attention for {len(seen)}")
        if any(not (0 <= row < n_open and 0 <= token < n_tokens) for row, token, _, _ in candidates):
            raise ValueError(f"sentences[{number}] has a candidate at step {at} that extends nothing that is there")
        rounded_array(
            f"sentences[{number}] attention", seen, (n_open, len(one["source_tokens"])), 3, axes="rows, source"
        )
        n_open = sum(fate == KEPT for *_, fate in candidates)
