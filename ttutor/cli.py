"""The ``ttutor`` command.

``ttutor doctor`` and ``ttutor --version`` work with the core alone; the other commands need the ``translation`` extra
and say so when it is not there. Heavy packages load inside the command that uses them.

Exit codes: 0 for success, 1 where ``ttutor check`` found a wrong answer or ``ttutor grade`` what a human has to look
at, 2 for anything that the user can mend (with one message that says how), 3 where the grader made a mistake of its
own, 130 for Ctrl-C. A reader of our output who leaves early (`| head -1`) is no failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ttutor
from ttutor import doctor
from ttutor.console import fail, plain_errors, write_any_character

if TYPE_CHECKING:
    import typer

CORE_USAGE = """\
Usage: ttutor doctor [--json] | ttutor --version

This installation has the core alone. {remedy}"""


def run_core(arguments: Sequence[str]) -> int:
    """Run what needs no command-line library: doctor, version, help. Return the exit status."""
    match list(arguments):
        case ["doctor"]:
            return doctor.run()
        case ["doctor", "--json"]:
            return doctor.run(as_json=True)
        case ["--version"]:
            print(f"ttutor {ttutor.__version__}")
            return 0
        case [] | ["--help"] | ["doctor", "--help"]:
            print(CORE_USAGE.format(remedy=doctor.missing_extra()))
            return 0
    print(f"ttutor: {' '.join(arguments)}: not available here. {doctor.missing_extra()}", file=sys.stderr)
    return 2


def build_app() -> typer.Typer:
    """Return the whole command with every subcommand registered."""
    import typer

    from ttutor.command_group import CommandGroup
    from ttutor.exercises import terminal
    from ttutor.grading import command
    from ttutor.language_model import gpt_command
    from ttutor.pretrained import chat_command, compare_command, fetch_command
    from ttutor.translation import commands

    app = typer.Typer(
        name="ttutor",
        cls=CommandGroup,
        help="Train, use and examine the Transformer that the book builds.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"max_content_width": 110},
        rich_markup_mode=None,  # plain help: loading rich takes longer than all the rest
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            print(f"ttutor {ttutor.__version__}")
            raise typer.Exit

    @app.callback()
    def top(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        """Train, use and examine the Transformer that the book builds."""

    @app.command("doctor")
    def show_doctor(as_json: bool = typer.Option(False, "--json", help="Print JSON, for programs.")) -> None:
        """Show versions, device, what is missing, and how to get it."""
        with plain_errors():
            status = doctor.run(as_json)
        raise typer.Exit(status)

    commands.register(app)
    app.command("fetch")(fetch_command.fetch)
    app.command("chat")(chat_command.chat)
    app.command("gpt")(gpt_command.gpt)
    app.command("compare")(compare_command.compare)
    terminal.register(app)
    command.register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    write_any_character()
    try:
        with plain_errors():
            return run(arguments)
    except SystemExit as leaving:  # plain_errors has had its say
        return leaving.code if isinstance(leaving.code, int) else 0


def run(arguments: Sequence[str]) -> int:
    """Run the whole command or, where its library is missing, what works without; return the exit status."""
    try:
        import typer  # noqa: F401  (only to see whether it is there)
    except ImportError:
        return run_core(arguments)
    try:
        return build_app()(args=list(arguments), standalone_mode=True)
    except SystemExit as leaving:  # as typer always ends
        if isinstance(leaving.__context__, BrokenPipeError):  # which click, where it prints help, calls a failure
            return 0
        return leaving.code if isinstance(leaving.code, int) else 0
    except ImportError as error:
        if (error.name or "ttutor").partition(".")[0] == "ttutor":  # our own mistake, which has to be seen
            raise
        fail(doctor.missing_package(error))


if __name__ == "__main__":
    sys.exit(main())
