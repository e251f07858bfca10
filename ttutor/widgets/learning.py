"""A translator learns: drag the step, and loss, attention and translation sharpen together, as recorded in one run."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets as t

from ttutor import assets
from ttutor.corpora.lexicon import NOUNS
from ttutor.widgets.base import Explorer, rounded_array, table_html, token_list, within

MAX_TOKENS, MAX_STOPS = 8, 40


class LearningExplorer(Explorer):
    """One sentence on its way through a training: what a translator looks at, and what it would say, step by step.

    At each place of the translation the model has read the *right* beginning, as in training. Its first guess stands in
    a box, filled by the probability of the right token; lines go from it to the source, as thick as the attention.

    Args:
        source: the tokens that are read, at most 8.
        target: the right translation, token by token, at most 8.
        steps: at which steps of the training the model was looked at, at most 40.
        losses: the validation loss at each of them, in nats a token.
        weights: the attention, ``steps target source``.
        guesses: the first guess, ``steps target``.
        chances: the probability of the right token, ``steps target``.
        written: what the model writes on its own, one text for each step.
        looked: share of nouns, over many sentences, whose attention is greatest on the right word.
        said: share of the same nouns for which the first guess is right.
        nouns: which of the target's tokens are nouns, counted from 0; examples of what the shares say are chosen among
            them.
        stop: which of the steps is shown, counted from 0.
        note: where the recording comes from.

    >>> explorer = LearningExplorer.recorded()
    >>> explorer
    LearningExplorer(step 20 of 360)
    >>> explorer.written[explorer.stop]
    'les les les les les les les les'
    """

    _module = "learning"
    _title = "A translator learns"
    source = t.List(t.Unicode(), read_only=True).tag(sync=True)
    target = t.List(t.Unicode(), read_only=True).tag(sync=True)
    steps = t.List(t.Int(), read_only=True).tag(sync=True)
    losses = t.List(t.Float(), read_only=True).tag(sync=True)
    weights = t.List(t.List(t.List(t.Float())), read_only=True).tag(sync=True)
    guesses = t.List(t.List(t.Unicode()), read_only=True).tag(sync=True)
    chances = t.List(t.List(t.Float()), read_only=True).tag(sync=True)
    written = t.List(t.Unicode(), read_only=True).tag(sync=True)
    looked = t.List(t.Float(), read_only=True).tag(sync=True)
    said = t.List(t.Float(), read_only=True).tag(sync=True)
    note = t.Unicode("", read_only=True).tag(sync=True)
    nouns = t.List(t.Int(), read_only=True).tag(sync=True)
    stop = t.Int(0).tag(sync=True)

    def __init__(
        self,
        source: Any,
        target: Any,
        steps: Sequence[int],
        *,
        losses: Any,
        weights: Any,
        guesses: Sequence[Sequence[str]],
        chances: Any,
        written: Sequence[str],
        looked: Any,
        said: Any,
        nouns: Sequence[int] = (),
        stop: int = 0,
        note: str = "",
    ) -> None:
        source, target = token_list("source", source), token_list("target", target)
        sizes = (within("the number of steps", len(steps), 2, MAX_STOPS), len(target), len(source))
        for name, tokens in (("source", source), ("target", target)):
            within(f"the number of tokens of the {name}", len(tokens), 1, MAX_TOKENS)
        for name, values, shape, decimals, axes in (
            ("losses", losses, sizes[:1], 3, "steps"),
            ("looked", looked, sizes[:1], 3, "steps"),
            ("said", said, sizes[:1], 3, "steps"),
            ("weights", weights, sizes, 2, "steps, target, source"),
            ("chances", chances, sizes[:2], 2, "steps, target"),
        ):
            self.set_trait(name, rounded_array(name, values, shape, decimals, axes=axes))
        for place in nouns:
            within("a place of nouns", place, 0, len(target) - 1, "it counts the target's tokens")
        self.set_trait("nouns", list(nouns))
        words = {"source": source, "target": target, "guesses": [list(row) for row in guesses]}
        for name, value in {**words, "steps": list(steps), "written": list(written), "note": note}.items():
            self.set_trait(name, value)
        super().__init__(stop=stop)

    @classmethod
    def recorded(cls, sentence: int = 0, *, stop: int = 2) -> "LearningExplorer":
        """The training of chapter 8, every tenth step, as ``experiments/training_recording.py`` recorded it.

        Args:
            sentence: which of the recorded sentences.
            stop: as for the class.
        """
        stored = assets.load("training_recording")
        within("sentence", sentence, 0, len(stored["sentences"]) - 1, "it numbers the recorded sentences")
        one = json.loads(stored["sentences"][sentence])
        words = {name: [token.removeprefix("▁") for token in one[name]] for name in ("source", "target")}
        guesses = [[token.removeprefix("▁") for token in row] for row in one["guesses"]]
        note = (
            f"A translator of {stored['n_parameters']:,} weights, recorded by {stored['provenance']['command']}; "
            f"shares are of the nouns in {stored['n_test']} new sentences."
        )
        french = {noun.in_french(plural) for noun in NOUNS for plural in (False, True)}
        nouns = [place for place, token in enumerate(words["target"]) if token in french]
        series = {name: one[name] for name in ("weights", "chances", "written")} | {"nouns": nouns}
        shares = {"losses": stored["loss"], "looked": stored["looked"], "said": stored["said"]}
        return cls(**words, steps=stored["step"], guesses=guesses, **series, **shares, stop=stop, note=note)

    def describe(self) -> str:
        return f"step {self.steps[self.stop]} of {self.steps[-1]}"

    def fallback_html(self) -> str:
        """Loss, shares and translation at about ten of the steps."""
        stops = sorted({round(stop) for stop in np.linspace(0, len(self.steps) - 1, 10)})
        rows = [
            [self.steps[i], f"{self.losses[i]:.2f}", f"{self.looked[i]:.0%}", f"{self.said[i]:.0%}", self.written[i]]
            for i in stops
        ]
        caption = f"A translator learns: “{' '.join(self.source)}” at ten moments of its training. {self.note}"
        heads = ["step", "validation loss", "looks at the right noun", "says the right noun", "writes on its own"]
        return table_html(caption, heads, rows)

    @t.validate("stop")
    def _check_stop(self, proposal: dict) -> int:
        return within("stop", proposal["value"], 0, len(self.steps) - 1, "it counts the recorded steps")
