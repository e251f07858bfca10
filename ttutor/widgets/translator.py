"""A translator to try out: type a sentence, force a word, switch off a head, and see what becomes of the translation.

On a page the explorer's script runs the model itself (``js/translator_model.js``), from a file of weights that the
pages of a book share; in Jupyter Python does, here, and the script shows the answer.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import torch
import traitlets as t

from ttutor import assets
from ttutor.translation.packed import DEFAULT, PARTS, PackedTranslator, load_packed
from ttutor.translation.translator import Translator
from ttutor.translation.what_if import LONGEST, WhatIf, switch_names, switched_off, what_if
from ttutor.widgets.base import Explorer, table_html, within
from ttutor.widgets.decoding import record_decoding, speaker_of
from ttutor.widgets.static import weights_script

EXAMPLES = (
    "A black dog chases a white cat.",
    "A man rides a brown horse on the beach.",
    "Two young women are drinking coffee in a small kitchen.",
    "The old woman who is wearing a red hat is laughing.",
    "A little boy throws a ball to his dog.",
    "Three people sit on a bench and look at the sea.",
    "A girl in a blue dress is playing the guitar on the street.",
)
"""Sentences of our own, of the kind that the shipped model knows."""
VIEWS = ("words", "heads", "beam")
LONGEST_TEXT = 200
"""Characters of a sentence."""
BEAM = 4
_NOTHING: dict[str, Any] = {
    **{name: [] for name in ("source", "written", "usual", "usual_probabilities", "weights", "tree", "strange")},
    "tokens": {},
    "translation": "",
    "usual_translation": "",
}
"""The answer to no sentence."""
_QUESTION = ("text", "off", "by", "beginning", "view", "part", "layer", "head")


class TranslatorExplorer(Explorer):
    """A trained Transformer at work on the reader's sentence, every head of which can be switched off.

    Args:
        translator: whose model; the one that ships with the package when left out. Its norms have to stand before the
            sublayers, as in all our recipes for translators.
        text: the sentence.
        off: what is switched off, by the names of `ttutor.translation.what_if`.
        by: what a head that is off hands on: ``"zero"``, or ``"mean"``, what it gives on average.
        beginning: the first tokens of the translation, chosen by the reader.
        view: what stands below: ``"words"``, what might have been written; ``"heads"``, the switches; ``"beam"``, what
            a beam search of width 4 finds.
        part: whose attention is shown, ``"encoder"``, ``"decoder"`` or ``"cross"``.
        layer: of which layer; -1 for the mean of all.
        head: of which head; -1 for the mean of all.
        examples: sentences to choose from.

    `answer` holds what is shown, and `translation` is its text. Only the translator that ships runs in the pages of a
    book; one of your own runs in Jupyter, and in the page that `save` writes, which carries its weights.

    >>> explorer = TranslatorExplorer()
    >>> explorer.off = ["cross.9.9"]
    Traceback (most recent call last):
    ...
    ValueError: there is nothing called 'cross.9.9' to switch off; there are encoder.0.0, ...
    """

    _module = "translator"
    _title = "A Transformer that translates"

    text = t.Unicode("").tag(sync=True)
    off = t.List(t.Unicode()).tag(sync=True)
    by = t.Enum(("zero", "mean"), "zero").tag(sync=True)
    beginning = t.List(t.Int()).tag(sync=True)
    view = t.Enum(VIEWS, "words").tag(sync=True)
    part = t.Enum(tuple(PARTS), "cross").tag(sync=True)
    layer = t.Int(-1).tag(sync=True)
    head = t.Int(-1).tag(sync=True)
    selected = t.Int(0).tag(sync=True)
    answer = t.Dict().tag(sync=True)
    examples = t.List(t.Unicode()).tag(sync=True)
    sizes = t.Dict().tag(sync=True)
    weights = t.Unicode("").tag(sync=True)
    note = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        translator: Translator | PackedTranslator | None = None,
        text: str | None = None,
        *,
        examples: Sequence[str] = EXAMPLES,
        **options: Any,
    ) -> None:
        self._given = translator
        self.examples = list(examples)
        text = examples[0] if text is None else text
        is_stored = translator is None and not options and text == EXAMPLES[0]
        stored = assets.load(DEFAULT) if translator is None else {}
        if translator is None:
            about = {key: stored[key] for key in ("sizes", "note")} | {"weights": DEFAULT}
        else:
            about = {"sizes": sizes(self.packed), "note": self.packed.card.get("summary", ""), "weights": ""}
        super().__init__(text=text, answer={}, **about, **options)
        if is_stored:  # as recorded, so that a page says the same wherever it is built
            self.answer = stored["example"]
        else:
            self._answer()
        self.observe(self._answer, list(_QUESTION))

    @property
    def packed(self) -> PackedTranslator:
        """The translator as eight bits hold it, with the means of its heads: what a saved page computes with, too."""
        if self._given is None:
            self._given = load_packed()
        if not isinstance(self._given, PackedTranslator):
            self._given = PackedTranslator.from_bytes(PackedTranslator.of(self._given, self.examples).to_bytes())
        return self._given

    @property
    def translation(self) -> str:
        """What the model writes under the present settings."""
        return self.answer["translation"]

    def link(self, page: str) -> str:
        """The address of a page of the book on which this explorer shows what it shows here.

        >>> TranslatorExplorer().link("intro.html").partition("?")[0]
        'intro.html#what-if'
        """
        lists = {"off": ",".join(self.off), "beginning": ",".join(map(str, self.beginning))}
        return f"{page}#what-if?{urlencode({name: lists.get(name, getattr(self, name)) for name in _QUESTION})}"

    def describe(self) -> str:
        return f"{self.text!r}{', without ' + ', '.join(self.off) if self.off else ''}"

    def fallback_html(self) -> str:
        """Each token of the translation with its probability and what might have stood there instead."""
        tokens = self.answer["tokens"]

        def named(token_id: int) -> str:
            return tokens[str(token_id)].replace("▁", " ").strip() or "blank"

        rows = [
            [named(token_id), f"{probability:.2f}", ", ".join(f"{named(other)} {p:.2f}" for other, p in runners)]
            for token_id, probability, runners in self.answer["written"]
        ]
        caption = f"“{self.text}” becomes “{self.translation}”, token by token. {self.note}"
        table = table_html(caption, ["token", "probability", "the most probable tokens here"], rows)
        return f'<div style="overflow-x:auto" tabindex="0">{table}</div>'

    def _page(self, title: str, script_after: str = "") -> str:
        return super()._page(title, script_after + weights_script(self.weights, self.packed.to_bytes()))

    def _answer(self, change: object = None) -> None:
        self.answer = answer_to(self.packed, **{name: getattr(self, name) for name in _QUESTION})

    @t.validate("text", "layer", "head", "off", "beginning")
    def _check(self, proposal: dict) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "text":
            within("the length of text", len(value), 0, LONGEST_TEXT)
        elif name in ("layer", "head"):
            within(name, value, -1, self.sizes[f"{name}s"] - 1, "-1 is the mean of all")
        elif name == "off" and value:
            model, known = self.packed.translator.model, switch_names(self.packed.translator.model)
            with switched_off(model, value):
                return sorted(value, key=known.index)
        elif name == "beginning" and value:
            n_tokens = self.packed.translator.tokenizer.vocab_size
            for token_id in value:
                within("a token of beginning", token_id, 0, n_tokens - 1)
        return value


def answer_to(
    packed: PackedTranslator,
    *,
    text: str,
    off: Sequence[str] = (),
    by: str = "zero",
    beginning: Sequence[int] = (),
    view: str = "words",
    part: str = "cross",
    layer: int = -1,
    head: int = -1,
) -> dict[str, Any]:
    """What the figure shows, in the words of JSON.

    Args:
        packed: the translator.
        text, off, by, beginning, view, part, layer, head: as for `TranslatorExplorer`.

    Returns:
        ``source``: the ids that were read; ``written``: for each token its id, its probability, and the most probable
        ones; ``usual``: the ids of what it is compared with, the same beginning with all parts on, or no beginning
        where nothing is off or a beam is shown, which knows none; ``usual_probabilities``: of these; ``tokens``: the
        texts of all these ids; ``weights``: of the chosen part, layer and head, or the mean of all that are on; empty
        where they are off, since what is off looks nowhere; ``tree``: the ranked candidates of each step of the beam
        search, as in `ttutor.widgets.decoding.record_decoding`; ``strange``: words that the model never read;
        ``translation``, ``usual_translation``: the texts.
    """
    if not text.strip():
        return dict(_NOTHING)
    translator, means = packed.translator, packed.head_means if by == "mean" else None
    found = what_if(translator, text, off=off, means=means, beginning=beginning)
    is_changed = bool(off or beginning)
    # A change has one cause: parts that are off are compared with the same words and all parts on.
    is_free = view == "beam" and bool(beginning)
    before: dict[str, Any] = {"off": off, "means": means} if is_free else {"beginning": beginning if off else ()}
    usual = what_if(translator, text, **before) if is_changed else found
    written: list[list[Any]] = [
        [one.token_id, _round(one.probability, 4), [[token_id, _round(p, 4)] for token_id, p in one.runners_up]]
        for one in found.steps
    ]
    tree = _tree(packed, text, off, means) if view == "beam" else []
    ids = {*found.source, *(one.token_id for one in (*found.steps, *usual.steps))}
    ids |= {token_id for *_, ranked in written for token_id, _ in ranked}
    ids |= {token_id for candidates in tree for _, token_id, *_ in candidates}
    return {
        "source": list(found.source),
        "written": written,
        "usual": [one.token_id for one in usual.steps],
        "usual_probabilities": [_round(one.probability, 4) for one in usual.steps],
        "tokens": {str(token_id): translator.tokenizer.tokens([token_id])[0] for token_id in sorted(ids)},
        "weights": _shown_weights(found, part, layer, head, off),
        "tree": tree,
        "strange": packed.strange_words(text),
        "translation": _text(translator, found, text),
        "usual_translation": _text(translator, usual, text),
    }


def _round(value: float, decimals: int) -> float:
    return round(value, decimals) + 0.0


def _text(translator: Translator, found: WhatIf, text: str) -> str:
    ids = [one.token_id for one in found.steps]
    return translator.style.restore(translator.tokenizer.decode(ids), text)


def _shown_weights(found: WhatIf, part: str, layer: int, head: int, off: Sequence[str]) -> list[list[float]]:
    weights, stack = found.weights[part], "encoder" if part == "encoder" else "decoder"
    n_layers, n_heads = weights.shape[:2]
    shown = [
        weights[i, j]
        for i in (range(n_layers) if layer < 0 else [layer])
        for j in (range(n_heads) if head < 0 else [head])
        if f"{stack}.{i}" not in off and f"{part}.{i}.{j}" not in off
    ]
    mean = torch.stack(shown).mean(dim=0).tolist() if shown else []
    return [[_round(weight, 3) for weight in row] for row in mean]


def _tree(packed: PackedTranslator, text: str, off: Sequence[str], means: Any) -> list:
    translator = packed.translator
    speaker = speaker_of(translator)
    if not speaker.read(text):
        return []
    with switched_off(translator.model, off, means):
        trace = record_decoding(speaker, text, int, beam_size=BEAM, max_new_tokens=LONGEST)
    return [[[row, token, _round(total, 3), fate] for row, token, total, fate in step] for step in trace["candidates"]]


def sizes(packed: PackedTranslator) -> dict[str, int]:
    """How many layers and heads the figure has to draw."""
    config = packed.translator.model.config
    return {"layers": config.n_layers, "heads": config.n_heads}
