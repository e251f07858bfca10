"""What a person sees of a training, and how they stop it."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

LAYOUT = "{percentage:3.0f}% |{bar:30}| {elapsed} so far, {remaining} left{postfix}"


class ProgressBar:
    """A line that shows how far a training is; silent where `quiet`, or where the output is not a terminal."""

    def __init__(self, quiet: bool = False):
        hidden = quiet or not sys.stderr.isatty()
        self._bar = tqdm(total=1.0, bar_format=LAYOUT, disable=hidden, file=sys.stderr, dynamic_ncols=True)
        self._validation = ""

    def show(self, progress: float, step: int, loss: float, learning_rate: float, tokens_per_second: float) -> None:
        """Move the bar to this share of the training."""
        self._bar.set_postfix_str(
            f"step {step:,}, {tokens_per_second:,.0f} tokens/s, loss {loss:.3f}, rate {learning_rate:.1e}"
            + self._validation,
            refresh=False,
        )
        self._bar.update(progress - self._bar.n)

    def show_validation(self, loss: float) -> None:
        self._validation = f", validation {loss:.3f}"

    def close(self) -> None:
        self._bar.close()


class Stopped(KeyboardInterrupt):
    """The training stopped on Ctrl-C, between two steps and after a checkpoint."""


class StopRequest:
    """Whether someone pressed Ctrl-C."""

    requested = False


@contextmanager
def stop_on_ctrl_c() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C into a request, so that a step is never cut in half; the second interrupts at once.

    Signals reach the main thread only; elsewhere Ctrl-C keeps its usual meaning.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number, frame):
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True

    former = signal.signal(signal.SIGINT, request)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, former)
