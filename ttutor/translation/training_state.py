"""A training as a checkpoint, and back: weights, averages, optimizer, random numbers, position in the data."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from ttutor.translation.checkpoint import Checkpoint, copy_into, load_checkpoint, save_checkpoint
from ttutor.translation.errors import CheckpointError

if TYPE_CHECKING:
    from ttutor.translation.trainer import Trainer

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What Adam remembers of each parameter."""


def save_training(trainer: "Trainer") -> None:
    """Write everything that the next step depends on.

    Raises:
        CheckpointError: the checkpoint cannot be written; those before stay.
    """
    parameters = dict(trainer.model.named_parameters())
    tensors = {f"model.{name}": parameter.detach() for name, parameter in parameters.items()}
    tensors |= {f"averaged.{name}": tensor for name, tensor in trainer.average.tensors.items()}
    for name, parameter in parameters.items():
        moments = trainer.optimizer.state.get(parameter, {})
        tensors |= {f"optimizer.{moment}.{name}": tensor for moment, tensor in moments.items()}
    tensors["rng"] = trainer.rng_state
    state = asdict(trainer.position) | {
        "fingerprint": trainer.corpus.fingerprint(),
        "model": trainer.model.config.to_dict(),
    }
    save_checkpoint(trainer.folder.checkpoints, Checkpoint(tensors, state))


def restore_training(trainer: "Trainer") -> list[str]:
    """Put a trainer back where its newest whole checkpoint stands; returns a message for each damaged one passed over.

    Raises:
        CheckpointError: there is no whole checkpoint, or it is of another model or another text.
    """
    checkpoint, messages = load_checkpoint(trainer.folder.checkpoints)
    state = dict(checkpoint.state)
    if state.pop("fingerprint") != trainer.corpus.fingerprint():
        raise CheckpointError(
            f"the text has changed since the checkpoint in {trainer.folder.checkpoints} was written; "
            "restore the files as they were, or train anew in another folder"
        )
    expected, found = trainer.model.config.to_dict(), state.pop("model")
    if expected != found:
        different = ", ".join(f"{name}={found.get(name)}" for name in expected if expected[name] != found.get(name))
        raise CheckpointError(
            f"the checkpoint in {trainer.folder.checkpoints} is of another model than its recipe describes: {different}"
        )
    parameters = dict(trainer.model.named_parameters())
    copy_into(parameters, checkpoint.group("model"), "the model")
    copy_into(trainer.average.tensors, checkpoint.group("averaged"), "the averaged weights")
    if state["step"]:
        for moment in MOMENTS:
            stored = checkpoint.group(f"optimizer.{moment}")
            for name, parameter in parameters.items():
                trainer.optimizer.state[parameter][moment] = stored[name].clone()
    trainer.rng_state = checkpoint.tensors["rng"]
    trainer.position = type(trainer.position)(**state)
    return messages
