"""Two things of training: the decoder's input, shifted by one place, and warm-up and peak of the learning rate."""

from typing import Any

import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, one_of, table_html, token_list, within

MAX_TOKENS = 24
START, END = "<bos>", "<eos>"
EXAMPLE = ("le", "chat", "noir", "dort")


class ShiftExplorer(Explorer):
    """What the decoder reads and what it has to say, position by position, with the shift and without it.

    Args:
        tokens: a target sentence, at most 24 tokens.
        position: which position is looked at.

    >>> explorer = ShiftExplorer(["un", "chat", "dort"])
    >>> explorer
    ShiftExplorer(3 tokens, shifted)
    >>> explorer.decoder_input, explorer.labels
    (['<bos>', 'un', 'chat', 'dort'], ['un', 'chat', 'dort', '<eos>'])
    """

    _module = "shift"
    _title = "The shifted input"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    source = t.Unicode(read_only=True).tag(sync=True)
    position = t.Int(0).tag(sync=True)
    shifted = t.Bool(True).tag(sync=True)

    def __init__(self, tokens: Any = EXAMPLE, *, position: int = 2) -> None:
        self.set_trait("source", "the black cat sleeps" if tokens == EXAMPLE else "")
        listed = token_list("tokens", tokens)
        within("the number of tokens", len(listed), 1, MAX_TOKENS)
        self.set_trait("tokens", listed)
        super().__init__(position=min(position, len(listed)))

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
    """Warm-up and peak of the learning rate, one handle each, and what was learned with them in stored trainings.

    The trainings are those of ``experiments/training_warmup_curves.py``: the rate rises in a line, and stays.

    Args:
        warmup: steps until the peak, one of those that were tried; 1 is no warm-up.
        peak: the highest rate, one of those that were tried.

    >>> explorer = ScheduleExplorer(warmup=100)
    >>> explorer
    ScheduleExplorer(warm-up 100 of 300 steps, peak 0.003)
    >>> explorer.rate(50)
    0.0015
    """

    _module = "schedule"
    _title = "Warm-up and peak"

    warmup = t.Int(1).tag(sync=True)
    peak = t.Float(0.003).tag(sync=True)
    steps = t.Int(read_only=True).tag(sync=True)
    runs = t.List(t.Dict(), read_only=True, help="a peak, a warm-up, and the losses of its trainings").tag(sync=True)
    guessing = t.Float(read_only=True, help="the loss of one who knows the words' frequencies").tag(sync=True)
    note = t.Unicode(read_only=True).tag(sync=True)

    def __init__(self, *, warmup: int = 1, peak: float = 0.003) -> None:
        record = assets.load("training_warmup_curves")
        settings = record["settings"]
        self.set_trait("runs", record["runs"])
        self.set_trait("guessing", record["guessing"])
        self.set_trait("steps", settings["steps"])
        self.set_trait(
            "note",
            f"Stored trainings: {settings['n_layers']} post-norm layers learn to continue French sentences, with three "
            "seeds, a line each.",
        )
        super().__init__(warmup=warmup, peak=peak)

    def rate(self, step: int) -> float:
        """The rate at a step: up in a line, then level."""
        return self.peak * min(1.0, step / self.warmup)

    def describe(self) -> str:
        """The settings."""
        return f"warm-up {self.warmup} of {self.steps} steps, peak {self.peak:g}"

    def fallback_html(self) -> str:
        """Each peak and warm-up with the losses at the end."""
        rows = [
            [f"{run['peak']:g}", "none" if run["warmup"] == 1 else run["warmup"]]
            + [", ".join(f"{losses[-1]:.2f}" for losses in run["losses"])]
            for run in self.runs
        ]
        return table_html(self.note, ["peak rate", "steps of warm-up", "loss at the end"], rows)

    @t.validate("warmup")
    def _check_warmup(self, proposal: dict) -> int:
        return one_of("warmup", proposal["value"], sorted({run["warmup"] for run in self.runs}))

    @t.validate("peak")
    def _check_peak(self, proposal: dict) -> float:
        return one_of("peak", proposal["value"], sorted({run["peak"] for run in self.runs}))
