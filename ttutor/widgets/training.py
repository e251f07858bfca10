"""Two things of training: the decoder's input, shifted by one place, and the learning rate's warm-up."""

from typing import Any

import traitlets as t

from ttutor.training.schedule import noam_rate
from ttutor.widgets.base import Explorer, table_html, token_list, within

MAX_TOKENS = 24
START, END = "<bos>", "<eos>"


class ShiftExplorer(Explorer):
    """What the decoder reads and what it has to say, position by position, with the shift and without it.

    Args:
        tokens: a target sentence, at most 24 tokens.
        position: which position is looked at.
        shifted: whether the input is shifted by one place.

    >>> explorer = ShiftExplorer(["un", "chat", "dort"])
    >>> explorer
    ShiftExplorer(3 tokens, shifted)
    >>> explorer.decoder_input, explorer.labels
    (['<bos>', 'un', 'chat', 'dort'], ['un', 'chat', 'dort', '<eos>'])
    """

    _module = "shift"
    _title = "The shifted input"
    _state_keys = ("tokens", "position", "shifted")

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    position = t.Int(0).tag(sync=True)
    shifted = t.Bool(True).tag(sync=True)

    def __init__(
        self, tokens: Any = ("le", "chat", "noir", "dort"), *, position: int = 2, shifted: bool = True
    ) -> None:
        listed = token_list("tokens", tokens)
        within("the number of tokens", len(listed), 1, MAX_TOKENS)
        self.set_trait("tokens", listed)
        super().__init__(position=min(position, len(listed)), shifted=shifted)

    @property
    def decoder_input(self) -> list[str]:
        """What the decoder reads: the target one place later, or, without the shift, the target itself."""
        return [START, *self.tokens] if self.shifted else [*self.tokens, END]

    @property
    def labels(self) -> list[str]:
        """What it has to say at each position."""
        return [*self.tokens, END]

    def describe(self) -> str:
        """The length, and whether there is a shift."""
        return f"{len(self.tokens)} tokens, {'shifted' if self.shifted else 'not shifted'}"

    def fallback_html(self) -> str:
        """Both lanes as a table."""
        shift = "the target, one place later" if self.shifted else "the target itself: each answer stands in the input"
        places = [str(place + 1) for place in range(len(self.labels))]
        rows = [["reads", *self.decoder_input], ["has to say", *self.labels]]
        return table_html(f"What the decoder reads ({shift}) and what it has to say", ["position", *places], rows)

    @t.validate("position")
    def _check_position(self, proposal: dict) -> int:
        return within("position", proposal["value"], 0, len(self.tokens))


class ScheduleExplorer(Explorer):
    """The learning rate of the 2017 paper by step: drag the warm-up, and see where the peak goes.

    Args:
        warmup: steps until the peak, from 100 to 10,000.
        d_model: width of the model.
        steps: length of the training.

    >>> explorer = ScheduleExplorer()
    >>> explorer
    ScheduleExplorer(warm-up 4000 of 20000 steps, d_model 512)
    >>> f"{explorer.rate(4000):.2e}"
    '6.99e-04'
    """

    _module = "schedule"
    _title = "The warm-up"
    _state_keys = ("warmup", "d_model", "steps")

    warmup = t.Int(4000).tag(sync=True)
    d_model = t.Int(512, read_only=True).tag(sync=True)
    steps = t.Int(20_000, read_only=True).tag(sync=True)

    def __init__(self, *, warmup: int = 4000, d_model: int = 512, steps: int = 20_000) -> None:
        self.set_trait("d_model", within("d_model", d_model, 1, 2**20))
        self.set_trait("steps", within("steps", steps, 1000, 10**6))
        super().__init__(warmup=warmup)

    def rate(self, step: int) -> float:
        """The rate at a step, by the function that the trainer uses."""
        return noam_rate(step, self.d_model, self.warmup)

    def describe(self) -> str:
        """The settings."""
        return f"warm-up {self.warmup} of {self.steps} steps, d_model {self.d_model}"

    def fallback_html(self) -> str:
        """The rate at some steps, and without a warm-up."""
        marks = sorted({1, self.warmup // 4, self.warmup, self.steps // 2, self.steps})
        rows = [[f"{step:,}", f"{self.rate(step):.2e}", f"{noam_rate(step, self.d_model, 1):.2e}"] for step in marks]
        caption = f"Learning rate by step: width {self.d_model}, warm-up of {self.warmup:,} steps"
        return table_html(caption, ["step", "with the warm-up", "without it"], rows)

    @t.validate("warmup")
    def _check_warmup(self, proposal: dict) -> int:
        return within("warmup", proposal["value"], 100, 10_000)
