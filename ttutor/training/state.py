"""A training as a checkpoint, and back: weights, averages, optimizer, random numbers, position in the data."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ttutor.training.checkpoint import Checkpoint, check_belongs, copy_into, load_checkpoint, save_checkpoint
from ttutor.training.processes import checksum

if TYPE_CHECKING:
    from ttutor.training.trainer import Trainer


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
    """Write everything that the next step depends on; of several processes the first writes, for all.

    A checkpoint is the same whatever it was computed on, and by however many processes.

    Raises:
        CheckpointError: the checkpoint cannot be written; those before stay.
        TrainingError: the processes have come to different weights; nothing is written.
    """
    parameters = dict(trainer.model.named_parameters())
    tensors = {f"model.{name}": parameter.detach() for name, parameter in parameters.items()}
    tensors |= {f"averaged.{name}": tensor for name, tensor in trainer.average.tensors.items()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in trainer.optimizers.state().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in trainer.best.items()}
    check_weights(trainer, tensors)
    random = trainer.processes.merged_rows(torch.stack(trainer.places.states()), trainer.recipe.batches_per_step)
    if not trainer.processes.is_first:
        return
    tensors |= {f"random.{place}": state for place, state in enumerate(random)}
    state = asdict(trainer.position) | {
        "fingerprint": trainer.corpus.fingerprint(),
        "model": trainer.model.config.to_dict(),
        "progress": trainer.progress(),
    }
    on_cpu = {name: tensor.cpu() for name, tensor in tensors.items()}
    save_checkpoint(trainer.folder.checkpoints, Checkpoint(on_cpu, state))


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
    trainer.best = {name: tensor.to(trainer.device) for name, tensor in checkpoint.group("best").items()}
    trainer.places.restore(trainer.processes.mine([random[str(place)] for place in range(len(random))]))
    trainer.position = Position(**{one.name: checkpoint.state[one.name] for one in fields(Position)})
    return messages


def check_processes(trainer: "Trainer") -> None:
    """Make sure, before the first step, that all processes are about to do the same.

    Raises:
        TrainingError: they are not; the message says what differs.
    """
    facts = {
        "the text": trainer.corpus.fingerprint(),
        "the recipe": trainer.recipe.to_toml(),
        "the vocabulary": trainer.tokenizer.to_json(),
        "the step where they begin": trainer.position.step,
        "the precision": trainer.precision,
        "the device": trainer.device.type,
        "the number of threads": torch.get_num_threads(),
        "the version of PyTorch": torch.__version__,
    }
    trainer.processes.check_equal(facts, "give all machines the same files, versions and command")
    trainer.processes.use(trainer.device)


def check_weights(trainer: "Trainer", tensors: dict[str, Tensor]) -> None:
    """Make sure that all processes hold the same tensors, bit for bit.

    Raises:
        TrainingError: they do not; the message says which.
    """
    if trainer.processes.count > 1:
        trainer.processes.check_equal(
            {name: checksum(tensors[name]) for name in sorted(tensors)},  # read back, they come in any order
            "they must be equal bit for bit, so one has miscalculated, or their processors round differently; "
            "go on from the last checkpoint by --resume, on machines of one kind",
        )
