"""Folders of published models: a config as JSON, tensors as safetensors, and nothing that could run code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ttutor.errors import FileError
from ttutor.files import make_folder, write_file

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"


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


def write_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Path:
    """Write a config and tensors, each whole or not at all; what the folder held of them gives way."""
    from safetensors.torch import save

    make_folder(folder)
    write_file(folder / WEIGHTS, save(dict(tensors), metadata={"format": "pt"}))
    write_file(folder / CONFIG, (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
    return folder


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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as fault:  # no JSON, no UTF-8, nested without end
        raise FileError(f"{path} is no JSON: {fault}") from fault
    if not isinstance(content, dict):
        raise FileError(f"{path} should hold a JSON object, but holds a {type(content).__name__}")
    return content


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileError(f"{path.parent} has no {path.name}")
    try:
        return load_file(path)
    except SafetensorError as fault:
        raise FileError(f"{path} is damaged: {fault}") from fault
