"""The ``ttutor`` command.

``ttutor doctor`` and ``ttutor --version`` work with the core alone; the other commands need the ``translation`` extra
and say so when it is not there. Heavy packages load inside the command that uses them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ttutor
from ttutor import doctor

if TYPE_CHECKING:
    import typer

CORE_USAGE = """\
Usage: ttutor doctor [--json] | ttutor --version

This installation has the core alone. {remedy}"""


def missing_extra() -> str:
    """Return the sentence that says how to get the commands that are not installed."""
    target = doctor.extra_target("translation")
    return f'For train, translate and evaluate, install the translation extra: pip install "{target}"'


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
            print(CORE_USAGE.format(remedy=missing_extra()))
            return 0
    print(f"ttutor: {' '.join(arguments)}: not available here. {missing_extra()}", file=sys.stderr)
    return 2


def build_app() -> typer.Typer:
    """Return the whole command with every subcommand registered."""
    import typer

    from ttutor.translation import commands

    app = typer.Typer(
        name="ttutor",
        help="Train, use and examine the Transformer that the book builds.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
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
        """Show versions and device, what is missing, and the command that gets it."""
        raise typer.Exit(doctor.run(as_json))

    commands.register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status (0 success, 1 failure, 2 wrong use)."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        import typer  # noqa: F401  (only to see whether it is there)
    except ImportError:
        return run_core(arguments)
    return build_app()(args=arguments, standalone_mode=True)


if __name__ == "__main__":
    sys.exit(main())
