"""`ttutor chat`: a conversation in the terminal."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttutor.console import plain_errors, say

if TYPE_CHECKING:
    from ttutor.pretrained.conversation import Conversation

LEAVE = ("/bye", "/quit", "/exit")
ENDINGS = {
    "longest_answer": "[cut after {longest_answer} tokens; --longest-answer allows more]",
    "window": "[cut: the model has no more than {window} positions]",
    "stopped": "[stopped]",
}


def chat(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="One question to answer, as is all that comes from a pipe; without either, a conversation."
        ),
    ] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told before the first question.")] = None,
    temperature: Annotated[
        float, typer.Option(help="Above 0, tokens are drawn; the larger, the bolder. 0: always the best one.")
    ] = 0.0,
    top_p: Annotated[float, typer.Option(help="Draw from the best tokens that together have this probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed draws the same answers.")] = 0,
    longest_answer: Annotated[int, typer.Option(help="Cut an answer after so many tokens.", min=1)] = 512,
    show_template: Annotated[
        bool, typer.Option("--show-template", help="Print what the model really reads, before each answer.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(help="A GGUF file of your own; default: smollm2.", metavar="FILE.gguf")
    ] = None,
) -> None:
    """Talk to a small published model, opened by the book's classes."""
    with plain_errors():
        from ttutor.errors import FileError, SettingError

        if model is not None and model.suffix != ".gguf":
            raise FileError(f"--model names a GGUF file, whose name ends in .gguf, but came {model}")
        conversation = _open(model, system, temperature, top_p, seed, longest_answer)
        if question or not sys.stdin.isatty():
            asked = " ".join(question) if question else sys.stdin.read()
            if not asked.strip():
                raise SettingError('there is no question: give one, as in `ttutor chat "What is a prime number?"`')
            _say_answer(conversation, asked, show_template)
            return
        _introduce(conversation)
        _talk(conversation, show_template)


def _open(
    model: Path | None, system: str | None, temperature: float, top_p: float, seed: int, longest_answer: int
) -> "Conversation":
    import torch

    from ttutor.device import choose_threads
    from ttutor.errors import SettingError
    from ttutor.generation import Sampler, most_probable
    from ttutor.generation.streaming import Choose
    from ttutor.pretrained.conversation import Conversation
    from ttutor.pretrained.loading import load

    choose: Choose = most_probable
    if temperature != 0:
        try:
            choose = Sampler(torch.Generator().manual_seed(seed), temperature=temperature, top_p=top_p)
        except ValueError as error:
            raise SettingError(str(error)) from None
    elif top_p != 1:
        raise SettingError("--top-p limits what is drawn, but at temperature 0 nothing is: give --temperature, too")
    opened = load("smollm2" if model is None else model)
    config: Any = opened.model.config
    torch.set_num_threads(choose_threads(config.d_model * config.d_ff))
    return Conversation(opened, system=system, choose=choose, longest_answer=longest_answer, eight_bits=True)


def _introduce(conversation: "Conversation") -> None:
    count = conversation.chat.facts["parameters"]
    say(
        f"{conversation.chat.name}: {count / 1e6:,.0f} million parameters. It writes what is likely, which is often "
        "wrong.\nCtrl-C stops an answer; /new begins again; /bye or Ctrl-D leaves."
    )


def _talk(conversation: "Conversation", show_template: bool) -> None:
    """Ask and answer until the user leaves."""
    from ttutor.errors import SettingError

    began_with = [dict(message) for message in conversation.messages]
    while True:
        try:
            question = input("\n> ").strip()
        except EOFError:
            say("")
            return
        except KeyboardInterrupt:
            say("\n/bye or Ctrl-D leaves.")
            continue
        if question in LEAVE:
            return
        if question == "/new":
            conversation.messages[:] = [dict(message) for message in began_with]
            say("[a new conversation]")
        elif question:
            try:
                _say_answer(conversation, question, show_template)
            except SettingError as error:
                say(f"[{error}]")


def _say_answer(conversation: "Conversation", question: str, show_template: bool) -> None:
    forgotten = conversation.n_forgotten
    with _interruptions() as interrupted:
        pieces = conversation.answer(question)
        for number, piece in enumerate(pieces):
            if number == 0 and show_template:
                say(f"[the model reads:]\n{conversation.written()}[and writes:]")
            if number == 0 and conversation.n_forgotten > forgotten:
                say(f"[the window of {conversation.window:,} positions is full: the oldest questions are forgotten]")
            print(piece, end="", flush=True)
            if interrupted:
                break
        pieces.close()
    say("")
    if conversation.ended_by in ENDINGS:
        limits = {"longest_answer": conversation.longest_answer, "window": f"{conversation.window:,}"}
        say(ENDINGS[conversation.ended_by].format(**limits), error=True)


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """While this is open, Ctrl-C puts something into the list: between two tokens nothing is left half done.

    A second one, where the first finds nobody who looks, ends the program as everywhere.
    """
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        if seen:
            signal.default_int_handler(number, None)
        seen.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
