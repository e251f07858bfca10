"""What `ttutor train` says at each validation: a line that tells how far it is, and what the model says by now."""

from typing import TYPE_CHECKING

from ttutor.training.progress import say_above, time_left
from ttutor.translation.samples import Samples, shown

if TYPE_CHECKING:
    from ttutor.training.trainer import Trainer


class Report:
    """Called after each validation; a log file of what it prints tells the whole story.

    Args:
        trainer: the training, where it begins or goes on: what was done before counts neither in its speed nor in the
            time left.
        n_samples: translate this many validation sentences each time.
        quiet: print nothing; the samples are kept in the run's folder all the same.
    """

    def __init__(self, trainer: "Trainer", n_samples: int, quiet: bool = False):
        self.samples = Samples(trainer, n_samples) if n_samples else None
        self.quiet = quiet
        self._beginning = self._last = _marks(trainer)
        self._is_first = True

    def __call__(self, trainer: "Trainer") -> None:
        """Say the line, and translate."""
        lines = [self._line(trainer)]
        if self.samples:
            record = self.samples.take(trainer)
            lines += [shown(record, with_source=self._is_first)] if record["samples"] else []
            self._is_first = False
        if not self.quiet:
            say_above("\n".join(lines))

    def _line(self, trainer: "Trainer") -> str:
        record, marks = trainer.metrics[-1], _marks(trainer)
        speed = _growth(self._last, marks, "tokens")
        left = time_left(trainer.progress(), _growth(self._beginning, marks, "progress"))
        if trainer.is_overfitting():
            left = "no better for too long: it ends here"
        self._last = marks
        return (
            f"step {record['step']:,}, {record['seconds'] / 60:.1f} min: loss {record['training_loss']:.3f}, "
            f"validation {record['validation_loss']:.3f}; {speed:,.0f} tokens/s, {left}"
        )


def _marks(trainer: "Trainer") -> dict[str, float]:
    position = trainer.position
    return {"seconds": position.seconds, "tokens": position.target_tokens, "progress": trainer.progress()}


def _growth(before: dict[str, float], now: dict[str, float], name: str) -> float:
    """How much there was more of it each second."""
    seconds = now["seconds"] - before["seconds"]
    return (now[name] - before[name]) / seconds if seconds > 0 else 0.0
