"""`ttutor compare`: the first layer in which two models differ that should be equal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ttutor.console import plain_errors

if TYPE_CHECKING:
    from torch import Tensor, nn


def compare(
    folder: Annotated[Path, typer.Argument(help="A model, as save_pretrained writes it.")],
    other: Annotated[
        Path | None,
        typer.Argument(help="Another such folder, compared in our classes; without it, ours beside transformers'."),
    ] = None,
    tokens: Annotated[str, typer.Option(help="What both read: numbers of tokens, with commas.")] = "1,2,3,4,5,6,7,8",
    tolerance: Annotated[
        float | None, typer.Option(help="Share of the largest number that counts as rounding.")
    ] = None,
) -> None:
    """Find the first layer in which two models differ.

    For models that should be equal; it says the usual reasons there.
    """
    with plain_errors():
        import torch

        from ttutor.errors import InputError
        from ttutor.inside.comparing import compare as compared
        from ttutor.interop import from_huggingface

        if not all(token.strip().isdecimal() for token in tokens.split(",")):
            raise InputError(f"--tokens takes numbers with commas between them, such as 7,8,9, but came {tokens!r}")
        token_ids = torch.tensor([[int(token) for token in tokens.split(",")]])
        ours = from_huggingface(folder)
        _check_reads(ours, token_ids)
        second = _theirs(folder) if other is None else from_huggingface(other)
        result = compared(ours, second, token_ids, tolerance=tolerance)
        typer.echo(str(result))
    if result.first is not None:
        raise typer.Exit(1)


def _check_reads(model: "nn.Module", token_ids: "Tensor") -> None:
    """Refuse a model that reads something else than tokens, and tokens that it does not know."""
    import inspect

    from ttutor.errors import InputError

    needed = [
        name
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    if needed != ["token_ids"]:
        raise InputError(
            f"{type(model).__name__} reads {', '.join(needed)}, and this command has token_ids alone: "
            "compare such models from Python, with ttutor.inside.compare"
        )
    vocab_size = _sizes(model).vocab_size
    if int(token_ids.max()) >= vocab_size:
        raise InputError(f"--tokens holds {int(token_ids.max())}, but the model knows 0 to {vocab_size - 1}")


def _sizes(model: Any) -> Any:
    """The config of a model, whose class no type checker knows."""
    return model.config


def _theirs(folder: Path) -> "nn.Module":
    """The model of `transformers` that a folder's config names."""
    import transformers

    from ttutor.files import foreign_reader
    from ttutor.interop.folder import AGAIN

    with foreign_reader(folder, AGAIN, "is not what transformers reads"):
        return _named(transformers, folder)


def _named(transformers: Any, folder: Path) -> "nn.Module":
    from ttutor.errors import SettingError

    config = transformers.AutoConfig.from_pretrained(folder)
    named = config.architectures or ["none"]
    if not hasattr(transformers, named[0]):
        raise SettingError(f"{folder} names the architecture {named[0]}, which transformers does not have here")
    return getattr(transformers, named[0]).from_pretrained(folder).eval()
