"""The progress bar of a training, and how Ctrl-C stops it."""

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from ttutor.console import say

LAYOUT = "{percentage:3.0f}% |{bar:12}| {desc}"
"""What a narrow terminal has no room for, tqdm cuts off at the end."""

SILENCE = 8.0
"""Seconds after which a model that is still being made, or a first step, is spoken of."""


class Pace:
    """How fast something grows, over the last stretch alone.

    Where nothing has grown yet, it is 0. A resumed training begins a pace of its own, so that neither what was done
    before nor the pause counts.

    Args:
        window: seconds that it remembers; None: all since the beginning.
        clock: tells the time in seconds.

    >>> seconds = iter([0.0, 10.0, 20.0, 30.0])
    >>> pace = Pace(window=15.0, clock=lambda: next(seconds))
    >>> [pace(amount) for amount in (5000.0, 6000.0, 8000.0, 10000.0)]
    [0.0, 100.0, 150.0, 200.0]
    """

    def __init__(self, window: float | None = None, clock: Callable[[], float] = time.monotonic):
        self.window, self.clock = window, clock
        self._seen: deque[tuple[float, float]] = deque()

    def __call__(self, amount: float) -> float:
        """Note how much there is now; returns the growth per second."""
        now = self.clock()
        if self.window is None and len(self._seen) > 1:
            self._seen.pop()
        self._seen.append((now, amount))
        while self.window is not None and len(self._seen) > 2 and self._seen[1][0] <= now - self.window:
            self._seen.popleft()
        then, before = self._seen[0]
        return (amount - before) / (now - then) if now > then else 0.0


class ProgressBar:
    """A line that shows how far a training is; silent where `quiet`, or where the output is not a terminal.

    Args:
        quiet: show nothing.
        clock: tells the time in seconds.
    """

    def __init__(self, quiet: bool = False, clock: Callable[[], float] = time.monotonic):
        hidden = quiet or sys.stderr is None or not sys.stderr.isatty()
        self._bar = tqdm(total=1.0, bar_format=LAYOUT, disable=hidden, file=sys.stderr, dynamic_ncols=True)
        self._progress_a_second = Pace(clock=clock)
        self._loss: float | None = None
        self._validation: list[str] = []

    def show(self, progress: float, step: int, loss: float, learning_rate: float, tokens_per_second: float) -> None:
        """Move the bar to this share of the training; the loss it shows is smoothed a little."""
        if self._bar.disable:
            return
        self._loss = loss if self._loss is None else self._loss + 0.1 * (loss - self._loss)
        pace = self._progress_a_second(progress)
        pieces = [time_left(progress, pace), f"loss {self._loss:.2f}", f"{tokens_per_second:,.0f} tokens/s"]
        pieces += [f"rate {learning_rate:.1e}", f"step {step:,}", *self._validation]
        self._bar.set_description_str(", ".join(pieces), refresh=False)
        self._bar.update(progress - self._bar.n)

    def show_validation(self, loss: float) -> None:
        """Show this validation loss from the next update on."""
        self._validation = [f"validation {loss:.3f}"]

    def close(self) -> None:
        """Leave the bar where it stands, or take it away if it never moved."""
        self._bar.leave = self._loss is not None
        self._bar.close()


def time_left(progress: float, pace: float) -> str:
    """In words, how long the rest takes if it goes on like this.

    >>> time_left(0.25, pace=0.01), time_left(0.25, pace=0.0), time_left(1.0, pace=0.01)
    ('01:15 left', '? left', 'done')
    """
    if progress >= 1:
        return "done"
    return f"{tqdm.format_interval(round((1 - progress) / pace))} left" if pace > 0 else "? left"


def say_above(text: str) -> None:
    """Print lines to the standard output; a progress bar that stands on the same terminal moves down."""
    with tqdm.external_write_mode(file=sys.stdout):
        say(text)


class SaidIfSlow:
    """Says once what is under way, if it is not done soon: nothing else is heard before the first step.

    Args:
        text: what to say.
        quiet: say nothing.
    """

    def __init__(self, text: str, quiet: bool = False):
        self._timer = threading.Timer(SILENCE, say_above, [text])
        self._timer.daemon = True  # whoever interrupts the training does not wait for it
        if not quiet:
            self._timer.start()

    def close(self) -> None:
        """It is done, or will not be."""
        self._timer.cancel()


class Stopped(KeyboardInterrupt):
    """The training stopped on Ctrl-C, between two steps and after a checkpoint."""


class StopRequest:
    """Whether someone pressed Ctrl-C."""

    requested = False


@contextmanager
def stop_on_ctrl_c(several: bool = False) -> Iterator[StopRequest]:
    """Turn the first Ctrl-C into a request, so that a step is never cut in half; the second interrupts at once.

    Signals reach the main thread only; elsewhere Ctrl-C keeps its usual meaning.

    Args:
        several: this is one process of several. Their launcher passes Ctrl-C on, so that it may come twice, and sends
            SIGTERM when one of them has died; either is a request, and the launcher kills who takes too long.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number, frame):
        if stop.requested and not several:
            raise KeyboardInterrupt
        stop.requested = True

    signals = (signal.SIGINT, signal.SIGTERM) if several else (signal.SIGINT,)
    former = [signal.signal(number, request) for number in signals]
    try:
        yield stop
    finally:
        for number, handler in zip(signals, former, strict=True):
            signal.signal(number, handler)
