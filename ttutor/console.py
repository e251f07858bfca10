"""What a command says, where nobody may be listening any more, and how it says what went wrong.

Exit codes of every command: 0 for success, 2 for anything that the user can mend (with one message that says how),
130 for Ctrl-C. Works with the core alone: nothing heavy is imported here.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

from ttutor.errors import TtutorError

MENDABLE = 2
"""The exit code for whatever the user can mend."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say in one message what the user can mend, and leave with code 2: a traceback helps nobody who mistyped a path.

    What was printed is flushed first. A closed pipe (`ttutor translate ... | head -1`) is no failure, and leaves with
    code 0: the reader has seen enough.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        discard_output(sys.stdout)
        raise SystemExit(0) from None
    except OSError as error:
        fail(_what_failed(error))
    except TtutorError as error:
        fail(str(error))


def _what_failed(error: OSError) -> str:
    """In words, what the system refused: a library, a named file or, where it names none, our output."""
    if error.errno is None:
        return f"{error}; `ttutor doctor` shows what works here"
    if error.filename is not None:
        return f"cannot use {error.filename}: {error.strerror}; check the path and its permissions"
    discard_output(sys.stdout)
    return f"cannot write the output: {error.strerror}; make room, or send it somewhere else"


def fail(message: str) -> NoReturn:
    """Print one message to the error stream and leave with the code for what the user can mend."""
    say(f"Error: {message}", error=True)
    raise SystemExit(MENDABLE)


def say(text: str, *, error: bool = False) -> None:
    """Print a line at once; where nobody can read it, go on without: the work matters more than its report."""
    stream = sys.stderr if error else sys.stdout
    if stream is None:
        return
    try:
        print(text, file=stream, flush=True)
    except OSError:
        discard_output(stream)


def teller(quiet: bool) -> Callable[[str], None]:
    """`say`, or silence."""
    return (lambda text: None) if quiet else say


def discard_output(stream: TextIO | None) -> None:
    """Send the rest of a stream nowhere, so that Python does not stumble over it again when it leaves."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


def write_any_character() -> None:
    """Let both streams write every character: what their encoding lacks comes out as an escape, never as a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
