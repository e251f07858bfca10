"""Folders of published models: a config as JSON, tensors as safetensors, and nothing that could run code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ttutor.errors import FileError
from ttutor.files import foreign_reader, make_folder, write_file
from ttutor.schemas import parse_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
AGAIN = "fetch or write it again"


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and all tensors of a folder.

    Raises:
        FileError: the folder, its config or its safetensors are missing or damaged; pickles are not read instead.
    """
    if not folder.is_dir():
        raise FileError(
            f"there is no folder {folder}; fetch a published model first, for example with "
            "huggingface_hub.snapshot_download, and give the folder that it returns"
        )
    config = _json(folder / CONFIG)
    if (folder / WEIGHTS).is_file():
        return config, _tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        parts = _parts(folder / INDEX)
        outside = [part for part in parts if Path(part).name != part]
        if outside:
            raise FileError(f"{folder / INDEX} names files outside its folder: {outside}")
        return config, {name: tensor for part in parts for name, tensor in _tensors(folder / part).items()}
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    because = f" ({', '.join(pickles)} is a pickle, which may run code when read: convert it)" if pickles else ""
    raise FileError(f"{folder} has neither {WEIGHTS} nor {INDEX}{because}")


def write_folder(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None
) -> Path:
    """Write a config and tensors, each whole or not at all; what the folder held of them gives way.

    Args:
        folder, config, tensors: where, and what.
        about: what the file of the tensors says besides, in its metadata; `read_about` reads it.
    """
    from safetensors.torch import save

    make_folder(folder)
    write_file(folder / WEIGHTS, save(dict(tensors), metadata={"format": "pt", **(about or {})}))
    write_file(folder / CONFIG, (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
    return folder


def read_about(folder: Path) -> dict[str, str]:
    """What the file of the tensors says of itself; nothing where there are several."""
    from safetensors import safe_open

    path = folder / WEIGHTS
    if not path.is_file():
        return {}
    with foreign_reader(path, AGAIN), safe_open(path, "pt") as tensors:
        return tensors.metadata() or {}


def refuse_earlier_model(folder: Path) -> None:
    """Leave a folder alone that holds a model already."""
    present = [name for name in (CONFIG, WEIGHTS, INDEX) if (folder / name).exists()]
    if present:
        raise FileError(f"{folder} holds a model already ({', '.join(present)}); give another folder")


def _parts(index: Path) -> list[str]:
    """The files among which an index says the tensors are spread."""
    where = _json(index).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(part, str) for part in where.values()):
        raise FileError(f"{index} should say in weight_map which file holds each tensor, but does not")
    return sorted(set(where.values()))


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileError(f"{path.parent} has no {path.name}")
    try:
        content = parse_json(path.read_bytes(), path, AGAIN)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    if not isinstance(content, dict):
        raise FileError(f"{path} should hold a JSON object, but holds a {type(content).__name__}")
    return content


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileError(f"{path.parent} has no {path.name}")
    with foreign_reader(path, AGAIN):
        return load_file(path)
