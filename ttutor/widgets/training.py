"""Warm-up and peak of the learning rate."""

import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, one_of, table_html


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
    tried = t.List(t.Int(), help="the runs that the reader has seen, by their places").tag(sync=True)
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
