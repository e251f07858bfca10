"""Small results of long runs, shipped with the package so that every chapter can show them.

Each file ``<stem>_<name>.json`` was written by ``experiments/<stem>_<name>.py`` and carries a ``provenance`` record:
the command, the seeds, the versions, the machine, the minutes it took and the hash of the script. Weights of models
stand beside it in ``<stem>_<name>.safetensors``. ``make experiments`` makes them again.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def names() -> list[str]:
    """Return the names of all stored results, sorted.

    >>> from ttutor import assets
    >>> assets.names() == sorted(assets.names())
    True
    """
    stored = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(".json") for name in stored if name.endswith(".json"))


def load(name: str) -> dict:
    """Return one stored result: its figures under their own names, its origin under ``provenance``.

    Args:
        name: the script's file name without ending, for example ``"training_multi30k"``.

    >>> from ttutor import assets
    >>> all("provenance" in assets.load(name) for name in assets.names())
    True
    """
    if name not in names():
        known = ", ".join(names()) or "none yet"
        raise FileNotFoundError(f"no stored result is called {name!r} (found: {known}); `make experiments` writes them")
    return json.loads((files(__name__) / f"{name}.json").read_text(encoding="utf-8"))


def weights(name: str) -> dict[str, Tensor]:
    """Return the weights stored beside a result, by their names.

    Args:
        name: the script's file name without ending, for example ``"vit_trained"``.

    >>> from ttutor import assets
    >>> {name: tensor.dtype for name, tensor in assets.weights("vit_trained").items()}["0"]
    torch.float16
    """
    import safetensors.torch

    path = files(__name__) / f"{name}.safetensors"
    if not path.is_file():
        stored = sorted(entry.name for entry in files(__name__).iterdir() if entry.name.endswith(".safetensors"))
        known = ", ".join(one.removesuffix(".safetensors") for one in stored) or "none yet"
        raise FileNotFoundError(f"no weights are called {name!r} (found: {known}); `make experiments` writes them")
    return safetensors.torch.load(path.read_bytes())
