"""Checkpoints: everything a training needs to go on, in files that can be trusted.

A checkpoint is a folder `step-00000200` with `tensors.safetensors` (weights, averages, optimizer, random state) and
`state.json` (counters, the checksums of both files, and what else decides the result: text, recipe, tokenizer). It
appears whole or not at all. The last two are kept; one
that is truncated or has a flipped bit is found out by its checksum, and the one before is used. Nothing is ever
unpickled.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError
from ttutor.files import foreign_reader, make_folder, remove_leftovers, write_folder
from ttutor.schemas import read_as
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.recipe import TrainingRecipe

FORMAT = "ttutor-translation-checkpoint-3"
KEPT = 2
TENSORS, STATE = "tensors.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and a JSON-able state that holds at least the number of the step."""

    tensors: dict[str, Tensor]
    state: dict

    @property
    def step(self) -> int:
        """The number of steps that were made."""
        return self.state["step"]

    def part(self, schema: type, folder: Path) -> Any:
        """What the state says of a dataclass's fields; `folder` is where the checkpoint was found.

        Raises:
            FileError: a field is missing or of another type.
        """
        stored = json.dumps({one.name: self.state.get(one.name) for one in fields(schema)}).encode()
        return read_as(schema, stored, f"the checkpoint in {folder}", "train anew")

    def group(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `prefix.`, without it."""
        start = f"{prefix}."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


@dataclass(frozen=True)
class StateFile:
    """What stands in `state.json`."""

    format: str
    tensors_sha256: str
    state: dict[str, Any]
    sha256: str = ""

    def checksum(self) -> str:
        """Of everything but itself."""
        body = {"format": self.format, "tensors_sha256": self.tensors_sha256, "state": self.state}
        return _sha256(json.dumps(body, sort_keys=True).encode())


def signature(
    fingerprint: str, recipe: TrainingRecipe, tokenizer: SubwordTokenizer, style: TextStyle, precision: str
) -> dict[str, Any]:
    """What decides a result beside the weights: text, recipe, tokenizer, and how text and numbers are written.

    A checkpoint holds it, and belongs to no training of another signature.
    """
    return {
        "text": fingerprint,
        "tokenizer": tokenizer.digest,
        "recipe": asdict(recipe),
        "style": asdict(style),
        "precision": precision,
    }


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint under `folder`; of those before it one is kept.

    Checkpoints of later steps are removed first: they are damaged, or of a training that was thrown away, and must not
    pass for the newest.
    """
    make_folder(folder)
    for later in checkpoint_paths(folder):
        if step_of(later) > checkpoint.step:
            shutil.rmtree(later, ignore_errors=True)
    tensors = safetensors.torch.save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
    body = StateFile(FORMAT, _sha256(tensors), checkpoint.state)
    state = json.dumps({**asdict(body), "sha256": body.checksum()}, indent=1)
    path = folder / f"step-{checkpoint.step:08d}"
    write_folder(path, {TENSORS: tensors, STATE: state.encode()})
    for old in checkpoint_paths(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    remove_leftovers(folder)
    return path


def load_checkpoint(folder: Path, command: str = "ttutor train") -> tuple[Checkpoint, list[str]]:
    """The newest checkpoint under `folder` that is whole, with a message for each damaged one that was passed over.

    Where there is none, the error names the command that trains.
    """
    complaints: list[str] = []
    for path in checkpoint_paths(folder):
        try:
            return read_checkpoint(path), complaints
        except FileError as error:
            complaints.append(str(error))
    if not complaints:
        raise FileError(f"there is no checkpoint in {folder}; train first with `{command}`")
    raise FileError(f"no checkpoint in {folder} is whole: {'; '.join(complaints)}; train anew with `{command}`")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read one checkpoint's folder and hold it against its checksums."""
    try:
        tensors_bytes, state_bytes = (path / TENSORS).read_bytes(), (path / STATE).read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror or error})") from None
    body = read_as(StateFile, state_bytes, path / STATE, "the checkpoint before it may be whole", format_=FORMAT)
    if body.sha256 != body.checksum() or type(body.state.get("step")) is not int:
        raise FileError(f"{path / STATE} is damaged: its checksum differs")
    if body.tensors_sha256 != _sha256(tensors_bytes):
        raise FileError(f"{path / TENSORS} is damaged: its checksum differs")
    with foreign_reader(path / TENSORS, "the checkpoint before it may be whole"):
        return Checkpoint(safetensors.torch.load(tensors_bytes), body.state)


def check_tensors(parameters: Mapping[str, Tensor], stored: Mapping[str, Tensor], what: str) -> None:
    """Make sure that stored tensors are those of a model, by name and shape."""
    missing, extra = sorted(set(parameters) - set(stored)), sorted(set(stored) - set(parameters))
    if missing or extra:
        raise FileError(
            f"this checkpoint is of another model: {what} expected {len(parameters)} tensors, found {len(stored)}; "
            f"missing: {', '.join(missing[:3]) or 'none'}; unexpected: {', '.join(extra[:3]) or 'none'}"
        )
    for name, parameter in parameters.items():
        if parameter.shape != stored[name].shape:
            raise FileError(
                f"this checkpoint is of another model: {what} expected {name} of shape "
                f"{tuple(parameter.shape)}, found {tuple(stored[name].shape)}"
            )


def copy_into(parameters: Mapping[str, Tensor], stored: Mapping[str, Tensor], what: str) -> None:
    """Copy stored tensors into a model's, by name; refuse a checkpoint of another model."""
    check_tensors(parameters, stored, what)
    for name, parameter in parameters.items():
        parameter.detach().copy_(stored[name])


FILE_OF = {"tokenizer": "tokenizer.json", "recipe": "recipe.toml", "style": "run.json", "precision": "run.json"}


def check_belongs(checkpoint: Checkpoint, folder: Path, signature: dict[str, Any], *, model: dict) -> None:
    """Make sure that a checkpoint is of this training and of this model.

    Args:
        checkpoint: what was found.
        folder: where, for the message.
        signature: of the training that it should be of.
        model: the settings of the model that the recipe describes.
    """
    stored = checkpoint.state.get("signature")
    found = stored if isinstance(stored, dict) else {}
    if found.get("text") != signature["text"]:
        raise FileError(
            f"the text has changed since the checkpoint in {folder} was written, or the checkpoint is of another run; "
            "restore the files as they were, or train anew in another folder"
        )
    if difference := _difference(checkpoint.state.get("model"), model):
        raise FileError(
            f"the checkpoint in {folder} is of another model than its recipe describes: {difference}; "
            "restore recipe.toml as it was, or train anew in another folder"
        )
    for name, file in FILE_OF.items():
        if found.get(name) != signature[name]:
            difference = _difference(found.get(name), signature[name])
            raise FileError(
                f"{file} has changed since the checkpoint in {folder} was written{difference and f': {difference}'}; "
                f"restore it as it was, or train anew in another folder"
            )


def _difference(stored: object, now: object) -> str:
    """The settings in which two tables differ; nothing where they do not, or are no tables."""
    if not isinstance(now, dict) or stored == now:
        return ""
    found = stored if isinstance(stored, dict) else {}
    names = [name for name in now | found if now.get(name) != found.get(name)]
    return ", ".join(f"{name}={found.get(name)} (the recipe has {now.get(name)})" for name in names)


def checkpoint_paths(folder: Path) -> list[Path]:
    """The folders of all checkpoints, newest first; a file or folder of another name is none of ours."""
    return sorted((path for path in folder.glob("step-*") if path.name[5:].isdecimal()), key=step_of, reverse=True)


def step_of(path: Path) -> int:
    """The step that a checkpoint's folder is named after."""
    return int(path.name.removeprefix("step-"))


def remove_checkpoints(folder: Path) -> None:
    """Remove all checkpoints under `folder`, then the folder too if nothing else stands in it and it is no link."""
    for path in checkpoint_paths(folder):
        shutil.rmtree(path)
    remove_leftovers(folder)
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
