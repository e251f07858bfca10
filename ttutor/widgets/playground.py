"""A small Transformer that learns in the page: take a part out, guess, and watch it learn, or fail."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, one_of, table_html, within

TASKS = {
    "reverse": ("stressed", "write eight letters backwards"),
    "sort": ("31415926", "sort eight digits"),
    "who": ("dog bites man who?", "say who did it, and to whom"),
    "sum": ("4+7=", "add two digits"),
    "next": ("horse", "guess the next letter of a word"),
}
"""What it may learn: a sequence to look at, and the task in words."""
CAUSAL = ("next",)
"""Tasks whose model looks left only, unless it is said otherwise."""
HEADS, LAYERS, RATES = (1, 2, 4), (1, 2), (0.0003, 0.003, 0.03)
USUAL_RATE = 0.003
LONGEST_TEXT, MOST_STEPS, MOST_SEED = 40, 5000, 100_000
LONGEST_SEQUENCE = 8


def key_of(
    task: str, *, positions: bool, causal: bool, heads: int, skips: bool, norm: bool, layers: int, rate: float
) -> str:
    """A setting as a short text, the same in the page.

    >>> key_of("sort", positions=True, causal=False, heads=2, skips=True, norm=False, layers=1, rate=0.003)
    'sort 10210 1 0.003'
    """
    return f"{task} {positions:d}{causal:d}{heads}{skips:d}{norm:d} {layers} {rate:g}"


def engine_source() -> str:
    """What computes in the page, as one JavaScript expression: layers, model, tasks and the training of one model."""
    folder = files("ttutor.widgets") / "js"
    parts = [(folder / f"playground_{name}.js").read_text(encoding="utf-8") for name in ("model", "tasks")]
    bodies = "\n".join(part.replace("\nexport function", "\nfunction") for part in parts)
    return f"(() => {{ {bodies}\nconst engine = makeEngine(); return {{ ...engine, ...makeTasks(engine) }}; }})()"


class PlaygroundExplorer(Explorer):
    """A Transformer of one or two layers and width 32 that is trained in the page, by JavaScript, while one watches.

    The reader chooses which parts it has, guesses whether it will learn, and sees loss, share right and attention form,
    from the first weights on. A part that is switched while it learns, or after, is taken out of the running model.
    What came out stands beside what five trainings with the same parts did, recorded by
    ``experiments/playground_seeds.py``.

    Args:
        task: ``"reverse"`` eight letters, ``"sort"`` eight digits, ``"who"`` did it and to whom, the ``"sum"`` of two
            digits, or the ``"next"`` letter of a word.
        positions: whether each place has a learned vector of its own.
        causal: whether a place looks at itself and what stands left of it only; when left out, whether the task needs
            that.
        heads: 1, 2 or 4.
        skips: whether each sublayer's output is added to what came in.
        norm: whether there are layer norms, before each sublayer and at the end.
        layers: 1 or 2.
        rate: the learning rate of Adam, one of `RATES`.
        seed: of the weights and the batches.
        beside: whether a second model, with all parts and the same seed, learns beside it.
        head: whose attention is shown, from 1; 0 for the mean of all.
        selected: the letter whose lines are followed: from 0 those that are read, after them the answers; -1 for none.
        slow: whether a training takes its time, to be watched.
        text: the sequence whose answers and attention are shown; when left out, one of ours.
        steps: how many a training takes; 0 for as many as the task's recorded ones.

    While a kernel runs, `history` holds the trainings that ended, the newest last: each with its settings, its
    ``guess``, and, by ``steps``, the ``loss`` in nats, the shares right in training (``seen``) and on new sequences
    (``right``).

    >>> explorer = PlaygroundExplorer("reverse", positions=False)
    >>> explorer
    PlaygroundExplorer(reverse, without positions)
    >>> explorer.history
    []
    >>> max(explorer.recorded_shares()) < 0.5  # so no recorded training learned it
    True
    """

    _module = "playground"
    _title = "Train it in the page"

    task = t.Enum(tuple(TASKS), "reverse").tag(sync=True)
    positions = t.Bool(True).tag(sync=True)
    causal = t.Bool(False).tag(sync=True)
    heads = t.Enum(HEADS, 2).tag(sync=True)
    skips = t.Bool(True).tag(sync=True)
    norm = t.Bool(True).tag(sync=True)
    layers = t.Enum(LAYERS, 1).tag(sync=True)
    rate = t.Enum(RATES, USUAL_RATE).tag(sync=True)
    seed = t.Int(1).tag(sync=True)
    beside = t.Bool(False).tag(sync=True)
    head = t.Int(0).tag(sync=True)
    selected = t.Int(-1).tag(sync=True)
    slow = t.Bool(False).tag(sync=True)
    text = t.Unicode("").tag(sync=True)
    steps = t.Int(0).tag(sync=True)
    run = t.Dict(help="the training that is shown").tag(sync=True)
    now = t.Dict(help="what its model says at this moment").tag(sync=True)
    history = t.List(t.Dict(), help="the trainings that ended").tag(sync=True)
    recorded: t.List = t.List(read_only=True, help="settings and the shares right of five trainings").tag(sync=True)
    simplest = t.Dict(read_only=True, help="what the simplest answer gets right").tag(sync=True)
    note = t.Unicode(read_only=True).tag(sync=True)

    def __init__(self, task: str = "reverse", *, causal: bool | None = None, text: str = "", **options: Any) -> None:
        one_of("task", task, tuple(TASKS))
        stored = assets.load("playground_seeds")
        self.set_trait("recorded", [[run["setting"], run["right"]] for run in stored["runs"]])
        self.set_trait("simplest", stored["simplest"])
        self.set_trait(
            "note",
            "Width 32, feed-forward networks of 64, norms before each sublayer, Adam, batches of 16. New sequences "
            f"are never trained on. The recorded runs are those of {stored['provenance']['command']}.",
        )
        causal = task in CAUSAL if causal is None else causal
        super().__init__(task=task, causal=causal, text=text or TASKS[task][0], **options)

    def key(self) -> str:
        """The present setting, as the recorded trainings are named."""
        names = ("positions", "causal", "heads", "skips", "norm", "layers", "rate")
        return key_of(self.task, **{name: getattr(self, name) for name in names})

    def recorded_shares(self) -> Sequence[float]:
        """The shares of new sequences that five recorded trainings with these parts got right; empty without any."""
        return dict(map(tuple, self.recorded)).get(self.key(), [])

    def describe(self) -> str:
        missing = [name for name in ("positions", "skips", "norm") if not getattr(self, name)]
        return ", ".join(
            [self.task, *(["looking left only"] if self.causal else []), *(f"without {name}" for name in missing)]
        )

    def fallback_html(self) -> str:
        """What five recorded trainings did with all parts, and with parts left out."""
        rows = []
        for key, shares in self.recorded:
            task, switches, layers, rate = key.split()
            if task == self.task and float(rate) == USUAL_RATE and switches[2] == "2":
                names = zip(("positions", "looks left only", "", "skips", "norms"), switches, strict=True)
                parts = ", ".join(name for name, on in names if name and on == "1") or "attention alone"
                rows.append([parts, layers, f"{min(shares):.0%} to {max(shares):.0%}"])
        caption = (
            f"A small Transformer learns to {TASKS[self.task][1]}: the share of new answers that are right after "
            "training, lowest and highest of five seeds. The simplest answer gets "
            f"{self.simplest[self.task]:.0%}. {self.note}"
        )
        return table_html(caption, ["parts", "layers", "right"], rows)

    @t.validate("seed", "steps", "text", "head", "selected")
    def _check(self, proposal: dict) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "text":
            within("the length of text", len(value), 0, LONGEST_TEXT)
            return value
        least, most = {
            "seed": (0, MOST_SEED),
            "steps": (0, MOST_STEPS),
            "head": (0, max(HEADS)),
            "selected": (-1, 2 * LONGEST_SEQUENCE - 1),
        }[name]
        return within(name, value, least, most)
