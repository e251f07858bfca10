"""The top of the `ttutor` command, which says of a command or option of others what it is here."""

from typing import Any

from typer.core import TyperGroup

from ttutor.other_names import COMMANDS, OPTIONS

__all__ = ["CommandGroup"]


class CommandGroup(TyperGroup):
    """A group of commands that answers names of others from the tables of `ttutor.other_names`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, or say what ours is called."""
        if args and args[0] not in self.commands and args[0] in COMMANDS:
            ctx.fail(f"no such command {args[0]!r}: here it is {COMMANDS[args[0]]}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; of an option that it does not have, say what ours is called."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            theirs = getattr(error, "option_name", "")  # only the error of an unknown option has one
            if ours := OPTIONS.get(theirs):
                has = {option for parameter in error.ctx.command.params for option in parameter.opts}  # type: ignore[attr-defined]
                if not ours.startswith("`--") or ours.strip("`") in has:
                    error.ctx.fail(f"no such option {theirs}: here it is {ours}")  # type: ignore[attr-defined]
            raise
