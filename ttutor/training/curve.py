"""The metrics of a training, or of several, as a picture: losses and learning rate against steps."""

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttutor.errors import FileError, RunError, SettingError
from ttutor.files import write_file
from ttutor.texts import printable
from ttutor.training.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = "ttutor.widgets.ttutor"
"""Matplotlib's name for the style sheet of the course's figures."""

LOSS_COLOUR = "#D55E00"
"""The colour of losses throughout the course; several runs take those of the style sheet in turn."""

NO_DATES = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
"""The kinds of picture, and what keeps the same metrics from giving other bytes tomorrow."""

DRAWN = ("step", "seconds", "learning_rate", "training_loss", "validation_loss")
LARGEST = 1e30
"""What is beyond it, or no number, is no record of a training."""

FEW = 30
"""Up to this many validations get a dot each, so that even one is seen."""


def write_curve(folders: Sequence[RunFolder], output: Path) -> None:
    """Draw the metrics of these runs into one picture; the same metrics give the same bytes."""
    if output.suffix not in NO_DATES:
        raise SettingError(f"the picture's name must end in {', '.join(NO_DATES)}, got {output}")
    runs = {name: drawn_records(folder) for name, folder in zip(_labels(folders), folders, strict=True)}
    buffer = io.BytesIO()
    with _style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a run's name may hold any character
        draw(runs).savefig(buffer, format=output.suffix[1:], metadata=NO_DATES[output.suffix])
    write_file(output, buffer.getvalue())


def drawn_records(folder: RunFolder) -> list[dict]:
    """The records of a run in the order of their steps, the last of each step; damaged ones are left out."""
    folder.facts()
    records = {record["step"]: record for record in folder.read_metrics() if _can_be_drawn(record)}
    if not records:
        raise FileError(
            f"{folder.metrics} holds no validation yet, so there is nothing to draw; the first comes after "
            f"{folder.recipe().validate_every:,} steps"
        )
    return [records[step] for step in sorted(records)]


def _can_be_drawn(record: Mapping) -> bool:
    return all(type(record.get(name)) in (int, float) and abs(record[name]) < LARGEST for name in DRAWN)


def _labels(folders: Sequence[RunFolder]) -> list[str]:
    """What to call each run: its folder's name or, where two have the same, its number and path."""
    names = [folder.path.resolve().name for folder in folders]
    return [
        name if names.count(name) == 1 else f"{number}: {folder.path}"
        for number, (name, folder) in enumerate(zip(names, folders, strict=True), start=1)
    ]


def _as_label(name: str) -> str:
    """A name as Matplotlib writes it out: no formula between dollars, not hidden for a leading underscore."""
    plain = printable(name)
    return (" " if plain.startswith("_") else "") + plain.replace("$", r"\$")


def _style() -> Any:
    """The look of the course's figures, for as long as the context lasts."""
    try:
        import matplotlib.style
    except ImportError as error:
        raise RunError(
            f"Matplotlib draws the curve, and it does not load ({error}); the widgets extra brings it: "
            'pip install "ttutor[widgets]", or in a checkout pip install ".[widgets]"'
        ) from None
    return matplotlib.style.context(["default", STYLE])


def draw(runs: Mapping[str, Sequence[Mapping]]) -> "Figure":
    """Draw records by the name of their run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8))
    losses, rate = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    for number, (name, records) in enumerate(runs.items()):
        colour = f"C{number}" if len(runs) > 1 else LOSS_COLOUR
        _draw_run(losses, rate, f"{_as_label(name)}: " if len(runs) > 1 else "", records, colour)
    if len(runs) == 1:
        ((name, records),) = runs.items()
        losses.set_title(f"{_as_label(name)} ({records[-1]['seconds'] / 60:.1f} minutes)", pad=8)
    losses.set_ylabel("loss (nats per token)")
    losses.legend(fontsize="small")
    rate.set(xlabel="steps", ylabel="learning rate")
    rate.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    rate.set_ylim(bottom=0)
    return figure


def _draw_run(losses: "Axes", rate: "Axes", head: str, records: Sequence[Mapping], colour: str) -> None:
    steps, validation = column(records, "step"), column(records, "validation_loss")
    look: dict[str, Any] = {"color": colour, "marker": "o" if len(records) <= FEW else "", "markersize": 3}
    losses.plot(steps, column(records, "training_loss"), linestyle=":", label=f"{head}training", **look)
    losses.plot(steps, validation, linestyle="-", label=f"{head}validation{_lowest(steps, validation)}", **look)
    rate.plot(steps, column(records, "learning_rate"), linestyle="-", **look)


def column(records: Sequence[Mapping], name: str) -> list[float]:
    """One number from each record."""
    return [float(record[name]) for record in records]


def _lowest(steps: Sequence[float], losses: Sequence[float]) -> str:
    return " (lowest {:.3f} at step {:,.0f})".format(*min(zip(losses, steps, strict=True)))
