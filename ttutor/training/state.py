"""A training as a checkpoint, and back: weights, averages, optimizer, random numbers, position in the data."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ttutor.errors import FileError
from ttutor.training.averaging import AveragedWeights
from ttutor.training.checkpoint import (
    Checkpoint,
    check_belongs,
    check_tensors,
    copy_into,
    load_checkpoint,
    save_checkpoint,
)
from ttutor.training.optimizer import Optimizers
from ttutor.training.parallel_batches import ParallelBatches
from ttutor.training.processes import Processes, checksum
from ttutor.transformer import Transformer


@dataclass
class Position:
    """How far a training has come, the best validation on the way, and the losses since the last one."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    target_tokens: int = 0
    best_step: int = 0
    best_loss: float | None = None
    loss_sum: float = 0.0
    loss_steps: int = 0


@dataclass(frozen=True)
class TrainingState:
    """Everything that the next step depends on: the parts of a trainer, shared with it and changed in place.

    A checkpoint is the same whatever it was computed on, and by however many processes.
    """

    model: Transformer
    average: AveragedWeights
    optimizers: Optimizers
    lanes: ParallelBatches
    position: Position = field(default_factory=Position)
    best: dict[str, Tensor] = field(default_factory=dict)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors but the random numbers, by the names they have in a checkpoint."""
        groups = {
            "model": {name: parameter.detach() for name, parameter in self.model.named_parameters()},
            "averaged": self.average.tensors,
            "optimizer": self.optimizers.state(),
            "best": self.best,
        }
        return {f"{group}.{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}

    def save(
        self,
        folder: Path,
        processes: Processes,
        n_lanes: int,
        signature: dict[str, Any],
        *,
        progress: float,
        uses_best: bool,
    ) -> None:
        """Write a checkpoint; of several processes the first writes, for all.

        Args:
            folder, processes, n_lanes, signature: where, for whom, of how many lanes, of which training.
            progress: the share of the training that is done.
            uses_best: whether the best weights are those to translate with, not the averaged ones as they stand.

        Raises:
            FileError: the checkpoint cannot be written; those before stay.
            RunError: the processes have come to different weights; nothing is written.
        """
        tensors = self.tensors()
        check_weights(processes, tensors)
        random = processes.merged_rows(torch.stack(self.lanes.states()), n_lanes)
        if not processes.is_first:
            return
        tensors |= {f"random.{lane}": state for lane, state in enumerate(random)}
        state = asdict(self.position) | {
            "signature": signature,
            "model": self.model.config.to_dict(),
            "progress": progress,
            "uses_best": uses_best,
        }
        save_checkpoint(folder, Checkpoint({name: tensor.cpu() for name, tensor in tensors.items()}, state))

    def restore(self, folder: Path, processes: Processes, signature: dict[str, Any]) -> list[str]:
        """Go back to the newest whole checkpoint; returns a message for each damaged one passed over."""
        checkpoint, messages = load_checkpoint(folder)
        check_belongs(checkpoint, folder, signature, model=self.model.config.to_dict())
        parameters = dict(self.model.named_parameters())
        copy_into(parameters, checkpoint.group("model"), "the model")
        copy_into(self.average.tensors, checkpoint.group("averaged"), "the averaged weights")
        self.optimizers.restore(checkpoint.group("optimizer"))
        random = checkpoint.group("random")
        lanes = [str(lane) for lane in range(len(random))]
        if set(random) != set(lanes):
            raise FileError(f"the checkpoint in {folder} lacks the state of its random numbers; train anew")
        self.lanes.restore(processes.shard([random[lane] for lane in lanes]))
        if checkpoint.group("best"):
            check_tensors(parameters, checkpoint.group("best"), "the best weights")
        self.best.clear()
        self.best.update(
            (name, tensor.to(parameters[name].device)) for name, tensor in checkpoint.group("best").items()
        )
        vars(self.position).update(vars(checkpoint.part(Position, folder)))
        return messages


def check_weights(processes: Processes, tensors: dict[str, Tensor]) -> None:
    """Make sure that all processes hold the same tensors, bit for bit."""
    if processes.count > 1:
        processes.check_equal(
            {name: checksum(tensors[name]) for name in sorted(tensors)},  # read back, they come in any order
            "they must be equal bit for bit, so one has miscalculated, or their processors round differently; "
            "go on from the last checkpoint by --resume, on machines of one kind",
        )
