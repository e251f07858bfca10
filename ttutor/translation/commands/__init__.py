"""The commands `ttutor train`, `translate`, `evaluate`, `export` and `curve`, one module each.

Exit codes: 0 for success, 2 for anything that the user can mend, 130 for Ctrl-C.

Heavy imports stand inside the functions, so that `ttutor --help` answers at once.
"""

import typer

from ttutor.translation.commands import curve, evaluate, export, train, translate


def register(app: typer.Typer) -> None:
    """Add the translator's commands to the `ttutor` command."""
    app.command("train", context_settings={"allow_extra_args": True})(train.train)  # it says what they should be
    app.command("translate")(translate.translate)
    app.command("evaluate")(evaluate.evaluate)
    app.command("export")(export.export)
    app.command("curve")(curve.curve)
