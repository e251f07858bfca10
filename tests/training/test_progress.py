"""The progress bar and the lines above it: right after a resume, readable on 80 columns, silent where nobody looks."""

import io
import re
import sys
import threading

import pytest

from tests.training.tiny import tiny_corpus, tiny_recipe
from ttutor.training import progress
from ttutor.training.progress import ProgressBar, say_above
from ttutor.translation import training_command
from ttutor.translation.training_command import TrainingRequest

Terminal = pytest.importorskip("tests.training.terminal", reason="needs terminals as POSIX has them").Terminal


class Clock:
    """A clock that a test moves on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def open_terminal(monkeypatch):
    """Put both streams on one terminal; called in the test itself, since pytest sets its own streams just before."""

    def opened(columns: int = 80):
        terminal = Terminal(columns)
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        monkeypatch.setattr(sys, "stdout", terminal.stream)
        return terminal

    return opened


def test_the_bar_is_readable_on_80_columns(open_terminal):
    terminal = open_terminal()
    clock = Clock()
    bar = ProgressBar(clock=clock)
    for share in (0.50, 0.51):
        bar.show(share, 15_000, 3.1234, 4.5e-3, 12_345.6)
        clock.now += 60.0
    bar.close()
    (line, rest) = terminal.screen()
    assert rest == ""
    assert len(line) <= 80
    assert line.startswith(" 51% |")
    assert "| 49:00 left, loss 3.12, 12,346 tokens/s, rate 4.5e-03" in line
    assert re.search(r"\|\S+ {2,}\|", line), "a bar is there"


def test_a_wide_terminal_shows_all_and_a_narrow_one_what_matters_most(open_terminal):
    def last_line(columns: int) -> str:
        terminal = open_terminal(columns)
        bar = ProgressBar(clock=Clock())
        bar.show_validation(2.5)
        bar.show(0.5, 1200, 3.0, 1e-3, 900.0)
        bar.close()
        return terminal.screen()[0]

    assert last_line(140).endswith("? left, loss 3.00, 900 tokens/s, rate 1.0e-03, step 1,200, validation 2.500")
    assert last_line(40).endswith("| ? left, loss 3.00,")


def test_the_time_left_of_a_resumed_training_counts_from_the_resume(open_terminal):
    terminal = open_terminal()
    clock = Clock()
    bar = ProgressBar(clock=clock)
    bar.show(0.90, 900, 3.0, 1e-3, 1000.0)
    clock.now += 10.0
    bar.show(0.92, 920, 3.0, 1e-3, 1000.0)
    bar.close()
    assert "| 00:40 left, " in terminal.screen()[0]


def test_lines_above_the_bar_do_not_break_it(open_terminal):
    terminal = open_terminal()
    bar = ProgressBar(clock=Clock())
    bar.show(0.3, 30, 3.0, 1e-3, 1000.0)
    say_above("step 30\n  1  translation  le chien")
    bar.show(1.0, 40, 3.0, 1e-3, 1000.0)
    bar.close()
    first, second, line, rest = terminal.screen()
    assert (first, second, rest) == ("step 30", "  1  translation  le chien", "")
    assert line.startswith("100% |")
    assert "| done, loss 3.00" in line


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_without_a_terminal_there_is_no_bar(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    bar = ProgressBar()
    bar.show(0.5, 10, 3.0, 1e-3, 1000.0)
    bar.close()
    assert stream is None or stream.getvalue() == ""


def test_a_model_that_takes_long_to_make_is_spoken_of(monkeypatch):
    told, heard = [], threading.Event()

    def hear(text: str) -> None:
        told.append(text)
        heard.set()

    def slow(*arguments: object, **settings: object) -> str:
        assert heard.wait(timeout=60), "the model is still being made, and nobody knows"
        return "the trainer"

    monkeypatch.setattr(progress, "SILENCE", 0.01)
    monkeypatch.setattr(progress, "say_above", hear)
    monkeypatch.setattr(training_command, "Trainer", slow)
    request, recipe = TrainingRequest(), tiny_recipe(n_layers=1000)
    assert training_command._made(request, tiny_corpus(), recipe, None) == "the trainer"
    assert told == ["Vocabulary and model are being made: 120 pairs to read, 1,000 layers of width 16 on either side."]
