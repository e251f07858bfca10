"""The logit lens: a word climbs the layers of a language model, and its best guess changes."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
import traitlets as t
from einops import rearrange
from torch import Tensor

from ttutor import assets
from ttutor.evaluating import evaluating
from ttutor.inside import logit_lens
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.widgets.base import Explorer, number_array, one_of, rounded_array, table_html, token_list, within

N_GUESSES = 5
MAX_TOKENS, MAX_DEPTHS = 10, 9
STEMS = ("cook", "watch", "guard", "dance", "park", "point", "sleep", "sing", "wait", "fall")
"""The verbs of chapter 12's language; one that ends in "s" belongs to one, without it to many."""
NOUNS = ("cat", "king", "tree", "house", "cook", "guard")
"""Its nouns; two of them are verbs, too."""


class Guesses(NamedTuple):
    """What the lens reads, as far as it is shown: the five best guesses at the next token, the best first.

    Attributes:
        words: ``tokens streams 5`` texts.
        chances: their probabilities.
    """

    words: Sequence[Sequence[Sequence[str]]]
    chances: Sequence[Sequence[Sequence[float]]]


def best_guesses(logits: Any, vocabulary: Sequence[str]) -> Guesses:
    """The five best guesses of what `ttutor.inside.logit_lens` gives for one text.

    Args:
        logits: ``streams tokens vocab_size``.
        vocabulary: the text of each token id.

    >>> best_guesses([[[4.0, 3.0, 2.0, 1.0, 0.0, -1.0]]], "abcdef").words
    [[['a', 'b', 'c', 'd', 'e']]]
    """
    top = _chances(logits, vocabulary).topk(N_GUESSES, dim=-1)
    names = [[[vocabulary[place] for place in five] for five in row] for row in top.indices.tolist()]
    size = tuple(top.values.shape)
    return Guesses(names, rounded_array("chances", top.values, size, 3, axes="tokens, streams, guesses"))


def _chances(logits: Any, vocabulary: Sequence[str]) -> Tensor:
    """Probabilities, ``tokens streams vocab_size``."""
    table = number_array("logits", logits)
    if table.ndim != 3 or table.shape[-1] != len(vocabulary) or 0 in table.shape:
        raise ValueError(f"logits has shape {table.shape}, expected (streams, tokens, {len(vocabulary)} words)")
    if not np.isfinite(table).all():
        raise ValueError("every entry of logits has to be a finite number")
    return rearrange(torch.tensor(table).softmax(dim=-1), "streams tokens words -> tokens streams words")


class LensExplorer(Explorer):
    """What a model would say next if it stopped after each layer: choose a word, and let it climb.

    The final norm, the projection and the softmax are applied to the stream after each layer. Make it by `pretrained`
    (SmolLM2), by `recorded` (the language model of chapter 12), by `from_model`, or from what
    `ttutor.inside.logit_lens` gives.

    Args:
        tokens: the text, at most 10 tokens.
        logits: what the lens reads for this text, ``streams tokens vocab_size``; or the `Guesses` that were stored of
            it, for which nothing else is needed.
        vocabulary: the text of each token id.
        layers: after how many layers the lens reads, at most 9 numbers from 0 on, such as ``[0, 10, 20, 30]``; when
            left out, all, or as many as fit, evenly.
        groups: up to two groups of words whose probabilities are added up on the ladder.
        subject: the word with which the next one has to agree, if there is one.
        token: which token is the last that the guess may use, counted from 0; the last of all when left out.
        depth: how far the word has climbed, by the place among ``layers``.
        note: where the model comes from.

    >>> explorer = LensExplorer.recorded("the cats near the old king", depth=2)
    >>> explorer
    LensExplorer('king', after 2 of 4 layers)
    >>> explorer.guesses[5][0][0], explorer.guesses[5][2][0]
    ('king', 'sleep')
    """

    _module = "lens"
    _title = "The logit lens"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    layers = t.List(t.Int(), read_only=True).tag(sync=True)
    guesses = t.List(t.List(t.List(t.Unicode())), read_only=True).tag(sync=True)
    chances = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    groups = t.List(t.List(t.Unicode()), read_only=True).tag(sync=True)
    subject = t.Unicode("", read_only=True).tag(sync=True)
    shares = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    token = t.Int(0).tag(sync=True)
    depth = t.Int(0).tag(sync=True)
    note = t.Unicode("", read_only=True).tag(sync=True)

    def __init__(
        self,
        tokens: Any,
        logits: Any,
        vocabulary: Sequence[str] = (),
        *,
        layers: Sequence[int] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        subject: str = "",
        token: int | None = None,
        depth: int = 0,
        note: str = "",
    ) -> None:
        tokens, groups = token_list("tokens", tokens), groups or {}
        within("the number of tokens", len(tokens), 1, MAX_TOKENS)
        found = logits if isinstance(logits, Guesses) else best_guesses(logits, vocabulary)
        if len(found.words) != len(tokens):
            raise ValueError(f"there are {len(tokens)} tokens, but guesses after {len(found.words)}")
        shown = _rungs(len(found.words[0]), layers)
        self.set_trait("tokens", tokens)
        self.set_trait("layers", shown)
        self.set_trait("guesses", [[list(rows[layer]) for layer in shown] for rows in found.words])
        self.set_trait("chances", [[list(rows[layer]) for layer in shown] for rows in found.chances])
        self.set_trait("groups", [[name, *group] for name, group in groups.items()])
        if groups:
            chances = _chances(logits, vocabulary)[:, shown]
            members = [[place for place, word in enumerate(vocabulary) if word in set(one)] for one in groups.values()]
            both = torch.stack([chances[..., group].sum(dim=-1) for group in members], dim=-1)
            shares = rounded_array("shares", both, tuple(both.shape), 3, axes="tokens, streams, groups")
            self.set_trait("shares", shares)
        self.set_trait("subject", subject)
        self.set_trait("note", note)
        super().__init__(token=len(tokens) - 1 if token is None else token, depth=depth)

    @classmethod
    def recorded(cls, text: str = "the cats near the old king", **options: Any) -> "LensExplorer":
        """The first language model of chapter 12, as ``experiments/inside_language.py`` trained it.

        Args:
            text: words of its language; the model reads them behind the start mark.
            options: ``token`` and ``depth``, as for the class.
        """
        model, words = language_model()
        for word in text.split():
            one_of("each word", word, words[1:])
        ids = [0, *(words.index(word) for word in text.split())]
        with torch.no_grad():
            logits = logit_lens(model, torch.tensor([ids]))[:, 0, 1:]
        words = [_spelled(word) for word in words]
        plural, singular = list(STEMS), [_spelled(f"{stem}s") for stem in STEMS]
        groups = {"plural verbs": plural, "singular verbs": singular}
        # The first noun is the subject; only where the model's verb agrees with it may the figure say so.
        subject = next((word for word in text.split() if word.removesuffix("s") in NOUNS), "")
        guess = words[int(logits[-1, -1].argmax())]
        agrees = guess in (plural if subject.endswith("s") else singular)
        note = "The language model of chapter 12, trained by python experiments/inside_language.py."
        tokens = [_spelled(word) for word in text.split()]
        return cls(tokens, logits, words, groups=groups, subject=subject if agrees else "", note=note, **options)

    @classmethod
    def pretrained(cls, **options: Any) -> "LensExplorer":
        """SmolLM2 on “The capital of France is”, as ``experiments/pretrained_recording.py`` recorded it.

        Args:
            options: ``token`` and ``depth``, as for the class.

        >>> explorer = LensExplorer.pretrained(depth=8)
        >>> explorer, explorer.guesses[-1][-1][:3]
        (LensExplorer('is', after 30 of 30 layers), ['Paris', 'the', 'London'])
        """
        stored = assets.load("pretrained_recording")
        tokens, found = (_without_blank(stored["lens"][name]) for name in ("tokens", "words"))
        return cls(
            tokens,
            Guesses(found, stored["lens"]["chances"]),
            layers=[0, 10, 20, 25, 26, 27, 28, 29, 30],
            note="SmolLM2, 135 million parameters, without the blanks before its words. "
            f"Recorded by {stored['provenance']['command']}.",
            **options,
        )

    @classmethod
    def from_model(cls, model: Any, text: str, tokenizer: Any, **options: Any) -> "LensExplorer":
        """What the lens reads in a decoder-only model of ours, on a text of yours.

        Args:
            model: one that `ttutor.inside.logit_lens` reads, such as a `ttutor.variants.modern_decoder.ModernDecoder`.
            text: at most 10 tokens.
            tokenizer: as for `ttutor.widgets.from_model.recorded_attention`.
            options: as for the class.
        """
        from ttutor.widgets.from_model import texts_of

        texts = texts_of(tokenizer)
        ids = texts.ids("text", text)
        within("the number of tokens", len(ids), 1, MAX_TOKENS)
        device = next(model.parameters()).device
        with torch.no_grad(), evaluating(model):
            logits = logit_lens(model, torch.tensor([ids], device=device))[:, 0]
        options = {"note": f"{type(model).__name__}, read live.", **options}
        return cls(texts.labels(ids), logits, texts.labels(range(logits.shape[-1])), **options)

    def describe(self) -> str:
        return f"{self.tokens[self.token]!r}, after {self.layers[self.depth]} of {self.layers[-1]} layers"

    def fallback_html(self) -> str:
        """The best guesses behind the chosen word, layer by layer."""
        rows = [
            [layer, *(f"{word} {chance:.2f}" for word, chance in zip(*both, strict=True))]
            for layer, *both in zip(self.layers, self.guesses[self.token], self.chances[self.token], strict=True)
        ]
        text = " ".join(self.tokens[: self.token + 1])
        caption = f"After “{text}”: the five best guesses at the next word, read after each layer. {self.note}"
        return table_html(caption, ["layers", *(f"guess {number}" for number in range(1, N_GUESSES + 1))], rows)

    @t.validate("token")
    def _check_token(self, proposal: dict) -> int:
        return within("token", proposal["value"], 0, len(self.tokens) - 1, "it numbers the words")

    @t.validate("depth")
    def _check_depth(self, proposal: dict) -> int:
        return within("depth", proposal["value"], 0, len(self.layers) - 1, "it counts places on the ladder")


def _rungs(n_streams: int, layers: Sequence[int] | None) -> list[int]:
    """The numbers of layers after which the lens is shown."""
    within("the number of streams", n_streams, 2, math.inf)
    if layers is None:
        return [round(one) for one in np.linspace(0, n_streams - 1, min(n_streams, MAX_DEPTHS)).tolist()]
    within("the number of layers to show", len(layers), 2, MAX_DEPTHS)
    for layer in layers:
        within("each of layers", layer, 0, n_streams - 1, "0 is before the first layer")
    if sorted(set(layers)) != list(layers):
        raise ValueError(f"layers has to rise from below to above, but is {list(layers)}")
    return list(layers)


def _without_blank(words: Any) -> Any:
    """Words without the blank before them, in lists of any depth; a token of blanks alone shows them, none is ∅."""
    if isinstance(words, str):
        return words.removeprefix(" ") if words.strip() else words.replace(" ", "▁") or "∅"
    return [_without_blank(one) for one in words]


def _spelled(word: str) -> str:
    """A word of the language as it is written: its rule for the letter "s" knows no exception."""
    return "watches" if word == "watchs" else word


@cache
def language_model() -> tuple[GPT, list[str]]:
    """The first of the models that ``experiments/inside_language.py`` trained, in float64, and its words."""
    words = assets.load("inside_language")["vocabulary"]
    config = GPTConfig(vocab_size=len(words), d_model=32, n_heads=4, n_layers=4, d_ff=64, max_len=32, dropout=0.0)
    model = GPT(config).double().eval()
    flat: Tensor = assets.weights("inside_language")["0"].double()
    with torch.no_grad():
        parts = flat.split([parameter.numel() for parameter in model.parameters()])
        for parameter, part in zip(model.parameters(), parts, strict=True):
            parameter.copy_(part.view_as(parameter))
    return model, words
