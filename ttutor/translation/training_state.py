"""A training as a checkpoint, and back: weights, averages, optimizer, random numbers, position in the data."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from ttutor.translation.checkpoint import Checkpoint, check_belongs, copy_into, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from ttutor.translation.trainer import Trainer


@dataclass
class Position:
    """How far a training has come, and the best validation on the way."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    target_tokens: int = 0
    best_step: int = 0
    best_loss: float | None = None


def save_training(trainer: "Trainer") -> None:
    """Write everything that the next step depends on.

    Raises:
        CheckpointError: the checkpoint cannot be written; those before stay.
    """
    parameters = dict(trainer.model.named_parameters())
    tensors = {f"model.{name}": parameter.detach() for name, parameter in parameters.items()}
    tensors |= {f"averaged.{name}": tensor for name, tensor in trainer.average.tensors.items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in trainer.optimizers.state().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in trainer.best.items()}
    tensors |= {f"random.{place}": state for place, state in enumerate(trainer.places.states())}
    state = asdict(trainer.position) | {
        "fingerprint": trainer.corpus.fingerprint(),
        "model": trainer.model.config.to_dict(),
        "progress": trainer.progress(),
    }
    save_checkpoint(trainer.folder.checkpoints, Checkpoint(tensors, state))


def restore_training(trainer: "Trainer") -> list[str]:
    """Put a trainer back where its newest whole checkpoint stands; returns a message for each damaged one passed over.

    Raises:
        CheckpointError: there is no whole checkpoint, or it is of another model or another text.
    """
    checkpoint, messages = load_checkpoint(trainer.folder.checkpoints)
    check_belongs(
        checkpoint,
        trainer.folder.checkpoints,
        fingerprint=trainer.corpus.fingerprint(),
        model=trainer.model.config.to_dict(),
    )
    parameters = dict(trainer.model.named_parameters())
    copy_into(parameters, checkpoint.group("model"), "the model")
    copy_into(trainer.average.tensors, checkpoint.group("averaged"), "the averaged weights")
    trainer.optimizers.restore(checkpoint.group("optimizer"))
    random = checkpoint.group("random")
    trainer.best = checkpoint.group("best")
    trainer.places.restore([random[str(place)] for place in range(len(random))])
    trainer.position = Position(**{one.name: checkpoint.state[one.name] for one in fields(Position)})
    return messages
