"""Three things about training that are easier to see than to say: the schedule, the shift, the smoothed target."""

import html
import math
from typing import Any

import numpy as np
import torch
import traitlets as t

from ttutor.training.loss import smoothed_cross_entropy
from ttutor.training.schedule import noam_rate, warmup_hold_decline, warmup_then_decline
from ttutor.widgets.base import Explorer, positive, token_list, within

MAX_TOKENS = 24
VIEWS = ("schedule", "shift", "smoothing")
START, END = "<s>", "</s>"
_DECAY_FROM = 0.5


class TrainingExplorer(Explorer):
    """The learning rate over a training, the decoder's shifted input, and the target that label smoothing sets.

    *Schedule*: the rate of the paper beside three others with the same peak. *Shift*: what the decoder reads and what
    it has to say, position by position, and what goes wrong without the shift. *Smoothing*: the distribution that the
    loss compares with, and the loss of a prediction, which never falls to zero.

    Args:
        tokens: a target sentence, at most 24 tokens, for the shift.
        view: which of "schedule", "shift" and "smoothing" is shown first.
        d_model: width of the model, a power of two from 64 to 4,096.
        warmup: steps until the peak of the rate.
        factor: what the whole schedule is multiplied by.
        steps: length of the training.
        epsilon: share of the probability that label smoothing spreads over all tokens.
        vocab_size: how many tokens there are.
        confidence: the probability that the model gives to the right token.

    >>> explorer = TrainingExplorer(["un", "chat", "dort"], view="smoothing")
    >>> explorer
    TrainingExplorer(3 tokens, smoothing, warm-up 4000 of 20000 steps, epsilon 0.1)
    >>> round(explorer.floor, 3)  # nats, with 37,000 tokens
    1.377
    """

    _module = "training"
    _title = "Training: schedule, shift, smoothing"
    _state_keys = (
        "tokens", "view", "d_model", "warmup", "factor", "steps",
        "position", "shifted", "epsilon", "vocab_size", "confidence",
    )  # fmt: skip

    tokens = t.List(t.Unicode()).tag(sync=True)
    view = t.Enum(VIEWS, "schedule").tag(sync=True)
    d_model = t.Int(512).tag(sync=True)
    warmup = t.Int(4000).tag(sync=True)
    factor = t.Float(1.0).tag(sync=True)
    steps = t.Int(20_000).tag(sync=True)
    position = t.Int(0).tag(sync=True)
    shifted = t.Bool(True).tag(sync=True)
    epsilon = t.Float(0.1).tag(sync=True)
    vocab_size = t.Int(37_000).tag(sync=True)
    confidence = t.Float(0.9).tag(sync=True)

    def __init__(
        self,
        tokens: Any = ("le", "chat", "noir", "dort"),
        *,
        view: str = "schedule",
        d_model: int = 512,
        warmup: int = 4000,
        factor: float | int = 1.0,
        steps: int = 20_000,
        epsilon: float | int = 0.1,
        vocab_size: int = 37_000,
        confidence: float | int = 0.9,
    ) -> None:
        listed = token_list("tokens", tokens)
        if len(listed) > MAX_TOKENS:
            raise ValueError(f"{len(listed)} tokens are more than fit a screen; give at most {MAX_TOKENS}")
        super().__init__(
            tokens=listed, view=view, d_model=d_model, warmup=warmup, factor=float(factor), steps=steps,
            epsilon=float(epsilon), vocab_size=vocab_size, confidence=float(confidence),
        )  # fmt: skip

    def rates(self, step: int) -> dict[str, float]:
        """The rate of each schedule at a step, by the functions that the trainer uses.

        >>> {name: f"{rate:.2e}" for name, rate in TrainingExplorer().rates(1000).items()}
        {'paper': '1.75e-04', 'paper, then to zero': '1.75e-04', 'trapezoid': '1.75e-04', 'no warm-up': '1.40e-03'}
        """
        peak = noam_rate(self.warmup, self.d_model, self.warmup, self.factor)
        progress = min(step / self.steps, 1.0)
        down = {"progress": progress, "decay_from": _DECAY_FROM}
        return {
            "paper": noam_rate(step, self.d_model, self.warmup, self.factor),
            "paper, then to zero": warmup_then_decline(step, peak, self.warmup, **down),
            "trapezoid": warmup_hold_decline(step, peak, self.warmup, **down),
            "no warm-up": noam_rate(step, self.d_model, 1, self.factor),
        }

    @property
    def decoder_input(self) -> list[str]:
        """What the decoder reads: the target one place later, or, without the shift, the target itself."""
        return [START, *self.tokens] if self.shifted else [*self.tokens, END]

    @property
    def labels(self) -> list[str]:
        """What it has to say at each position."""
        return [*self.tokens, END]

    @property
    def target(self) -> tuple[float, float]:
        """The smoothed target's probability of the right token, and of each other token."""
        other = self.epsilon / self.vocab_size
        return 1 - self.epsilon + other, other

    @property
    def floor(self) -> float:
        """The smallest loss there is, in nats: the entropy of the smoothed target."""
        right, other = self.target
        rest = (self.vocab_size - 1) * other * math.log(other) if other > 0 else 0.0
        return -(right * math.log(right) + rest)

    def loss_at(self, confidence: float) -> float:
        """The loss in nats when the right token has this probability and the others share the rest equally."""
        rest = (1 - confidence) / (self.vocab_size - 1)
        logits = torch.full((1, self.vocab_size), math.log(rest), dtype=torch.float64)
        logits[0, 1] = math.log(confidence)
        return smoothed_cross_entropy(logits, torch.tensor([1]), smoothing=self.epsilon, pad_id=0).item()

    def describe(self) -> str:
        """The view and its settings."""
        schedule = f"warm-up {self.warmup} of {self.steps} steps"
        return f"{len(self.tokens)} tokens, {self.view}, {schedule}, epsilon {self.epsilon:g}"

    def fallback_html(self) -> str:
        """The three views as three tables."""
        return self._schedule_table() + self._shift_table() + self._smoothing_list()

    def _schedule_table(self) -> str:
        marks = {1, max(self.warmup // 4, 1), self.warmup, *np.linspace(1, self.steps, 5).astype(int).tolist()}
        steps = sorted(step for step in marks if step <= self.steps)
        names = list(self.rates(1))
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        table = {step: "".join(f"<td>{rate:.2e}</td>" for rate in self.rates(step).values()) for step in steps}
        rows = "".join(f'<tr><th scope="row">{step:,}</th>{cells}</tr>' for step, cells in table.items())
        caption = f"Learning rate by step: width {self.d_model}, warm-up {self.warmup:,}, factor {self.factor:g}"
        return f"<table><caption>{caption}</caption><tr><td></td>{head}</tr>{rows}</table>"

    def _shift_table(self) -> str:
        def row(name: str, tokens: list[str]) -> str:
            cells = "".join(f"<td>{html.escape(token)}</td>" for token in tokens)
            return f'<tr><th scope="row">{name}</th>{cells}</tr>'

        shift = "the target, one place later" if self.shifted else "the target itself: each answer stands in the input"
        caption = f"<caption>What the decoder reads ({shift}) and what it has to say</caption>"
        return f"<table>{caption}{row('reads', self.decoder_input)}{row('has to say', self.labels)}</table>"

    def _smoothing_list(self) -> str:
        right, other = self.target
        return (
            f"<p>Label smoothing of {self.epsilon:g} over {self.vocab_size:,} tokens: the right token has "
            f"{right:.4f}, each other {other:.2e}. The loss cannot fall below {self.floor:.3f} nats.</p>"
        )

    @t.validate("d_model", "warmup", "steps", "factor")
    def _check_positive(self, proposal: dict) -> float | int:
        name = proposal["trait"].name
        value = positive(name, proposal["value"])
        return within(name, value, 0, 100) if name == "factor" else value

    @t.validate("position")
    def _check_position(self, proposal: dict) -> int:
        return within("position", proposal["value"], 0, len(self.tokens))

    @t.validate("epsilon", "confidence")
    def _check_share(self, proposal: dict) -> float:
        name, value = proposal["trait"].name, proposal["value"]
        low, high = (0, 0.9) if name == "epsilon" else (0.001, 0.9999)
        return round(within(name, value, low, high), 6)

    @t.validate("vocab_size")
    def _check_vocabulary(self, proposal: dict) -> int:
        return within("vocab_size", proposal["value"], 2, 1_000_000)
