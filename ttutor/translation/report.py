"""What `ttutor train` says at each validation: a line that tells how far it is, and what the model says by now."""

from typing import TYPE_CHECKING

from ttutor.training.progress import Pace, say_above, time_left
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
        self._is_first = True

        def clock() -> float:
            return trainer.position.seconds

        self._speed, self._pace = Pace(window=0.0, clock=clock), Pace(clock=clock)
        self._speed(float(trainer.position.target_tokens)), self._pace(trainer.progress())

    def __call__(self, trainer: "Trainer") -> None:
        """Print the progress and translate the samples."""
        lines = [self._line(trainer)]
        if trainer.is_past_its_best():
            lines.append(
                f"  no validation has been better since step {trainer.position.best_step:,}, whose weights are kept to "
                "translate with: what the model says now may get worse"
            )
        if self.samples:
            record = self.samples.take(trainer)
            lines += [shown(record, with_source=self._is_first)] if record["samples"] else []
            self._is_first = False
        if not self.quiet:
            say_above("\n".join(lines))

    def _line(self, trainer: "Trainer") -> str:
        record, speed = trainer.metrics[-1], self._speed(float(trainer.position.target_tokens))
        left = time_left(trainer.progress(), self._pace(trainer.progress()))
        if trainer.is_overfitting():
            left = "no better for too long: it ends here"
        return (
            f"step {record['step']:,}, {record['seconds'] / 60:.1f} min: loss {record['training_loss']:.3f}, "
            f"validation {record['validation_loss']:.3f}; {speed:,.0f} tokens/s, {left}"
        )
