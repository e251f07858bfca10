"""The logit lens: a word climbs the layers of a language model, and its best guess changes."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
import traitlets as t
from einops import rearrange
from torch import Tensor

from ttutor import assets
from ttutor.inside import logit_lens
from ttutor.variants.gpt import GPT, GPTConfig
from ttutor.widgets.base import Explorer, number_array, one_of, rounded_array, table_html, token_list, within

N_GUESSES = 5
MAX_TOKENS, MAX_DEPTHS = 10, 9
STEMS = ("cook", "watch", "guard", "dance", "park", "point", "sleep", "sing", "wait", "fall")
"""The verbs of chapter 12's language; one that ends in "s" belongs to one, without it to many."""
NOUNS = ("cat", "king", "tree", "house", "cook", "guard")
"""Its nouns; two of them are verbs, too."""


class LensExplorer(Explorer):
    """What a model would say next if it stopped after each layer: choose a word, and let it climb.

    The final norm, the projection and the softmax are applied to the stream after each layer. Make it by `recorded`
    (the language model of chapter 12), or from what `ttutor.inside.logit_lens` gives for a model of yours.

    Args:
        tokens: the text, at most 10 tokens.
        logits: what the lens reads for this text, ``streams tokens vocab_size``, at most 9 streams.
        vocabulary: the text of each token id.
        groups: up to two groups of words whose probabilities are added up on the ladder.
        subject: the word with which the next one has to agree, if there is one.
        token: which token is the last that the guess may use, counted from 0; the last of all when left out.
        depth: after how many layers the lens reads.
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
        vocabulary: Sequence[str],
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        subject: str = "",
        token: int | None = None,
        depth: int = 0,
        note: str = "",
    ) -> None:
        tokens, groups = token_list("tokens", tokens), groups or {}
        within("the number of tokens", len(tokens), 1, MAX_TOKENS)
        table = rounded_array("logits", logits, (None, len(tokens), len(vocabulary)), 6, axes="streams, tokens, words")
        within("the number of streams", len(table), 2, MAX_DEPTHS)
        chances = torch.tensor(number_array("logits", table)).softmax(dim=-1)
        chances = rearrange(chances, "streams tokens words -> tokens streams words")
        top = chances.topk(N_GUESSES, dim=-1)
        size = tuple(top.values.shape)
        names = [[[vocabulary[place] for place in five] for five in row] for row in top.indices.tolist()]
        members = [[place for place, word in enumerate(vocabulary) if word in set(group)] for group in groups.values()]
        sums = [chances[..., group].sum(dim=-1) for group in members]
        self.set_trait("tokens", tokens)
        self.set_trait("guesses", names)
        self.set_trait("chances", rounded_array("chances", top.values, size, 3, axes="tokens, streams, guesses"))
        self.set_trait("groups", [[name, *group] for name, group in groups.items()])
        if sums:
            both = torch.stack(sums, dim=-1)
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

    @property
    def n_layers(self) -> int:
        """How many layers the word can climb."""
        return len(self.guesses[0]) - 1

    def describe(self) -> str:
        return f"{self.tokens[self.token]!r}, after {self.depth} of {self.n_layers} layers"

    def fallback_html(self) -> str:
        """The best guesses behind the chosen word, layer by layer."""
        rows = [
            [depth, *(f"{word} {chance:.2f}" for word, chance in zip(*both, strict=True))]
            for depth, both in enumerate(zip(self.guesses[self.token], self.chances[self.token], strict=True))
        ]
        text = " ".join(self.tokens[: self.token + 1])
        caption = f"After “{text}”: the five best guesses at the next word, read after each layer. {self.note}"
        return table_html(caption, ["layers", *(f"guess {number}" for number in range(1, N_GUESSES + 1))], rows)

    @t.validate("token")
    def _check_token(self, proposal: dict) -> int:
        return within("token", proposal["value"], 0, len(self.tokens) - 1, "it numbers the words")

    @t.validate("depth")
    def _check_depth(self, proposal: dict) -> int:
        return within("depth", proposal["value"], 0, self.n_layers, "it counts layers")


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
