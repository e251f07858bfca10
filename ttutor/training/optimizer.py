r"""What turns gradients into steps: AdamW for all weights or, for the matrices inside the layers, Muon.

Adam divides each number of the gradient by its own usual size (Kingma and Ba 2015). A matrix of a layer is more than
its numbers, though: a step on it counts by what it changes about the layer's answers, and a few directions of a
gradient commonly outweigh all others. Muon (Jordan et al. 2024, see `ttutor.training.muon`) goes about equally far
in every direction. Embeddings, biases and norms stay with AdamW, since their rows and numbers act one by one.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ttutor.errors import FileError
from ttutor.training.muon import Muon
from ttutor.training.parallel_batches import ParallelBatches
from ttutor.transformer import Transformer


class Optimizers:
    """The optimizers of a training as one; between them they hold each parameter of the model once.

    Args:
        model: what is trained, in place.
        kind: "adamw", or "muon" for Muon on the matrices of encoder and decoder.
        weight_decay: pull towards zero.
        lanes: where they work, at the same time.
    """

    def __init__(self, model: Transformer, kind: str, weight_decay: float, lanes: ParallelBatches):
        matrices = matrices_of_layers(model) if kind == "muon" else []
        with_muon = {id(matrix) for matrix in matrices}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in with_muon]
        adamw = torch.optim.AdamW(rest, betas=(0.9, 0.98), eps=1e-9, weight_decay=weight_decay, fused=True)
        n_lanes = len(lanes.generators)
        shares = [share for share in (matrices[lane::n_lanes] for lane in range(n_lanes)) if share]
        self.parts: list[torch.optim.Optimizer] = [adamw, *(Muon(share, weight_decay=weight_decay) for share in shares)]
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
        self._lanes = lanes

    def step(self, learning_rate: float) -> None:
        """Change every parameter by its gradient."""
        for part in self.parts:
            part.param_groups[0]["lr"] = learning_rate
        self._lanes.map(lambda part: part.step(), self.parts)

    def state(self) -> dict[str, Tensor]:
        """What they remember of the steps so far: by the name of a moment, a dot and the name of a parameter."""
        return {
            f"{moment}.{self._names[parameter]}": tensor
            for part in self.parts
            for parameter, moments in part.state.items()
            for moment, tensor in moments.items()
        }

    def restore(self, stored: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        parameters = {name: parameter for parameter, name in self._names.items()}
        part_of = {parameter: part for part in self.parts for parameter in _parameters(part)}
        for key, tensor in stored.items():
            moment, _, name = key.partition(".")
            parameter = parameters.get(name)
            if parameter is None or tensor.shape != (torch.Size() if moment == "step" else parameter.shape):
                raise FileError(f"this checkpoint is of another model: its optimizer remembers {key}; train anew")
            part_of[parameter].state[parameter][moment] = tensor.to(parameter.device, copy=True)
        for part in self.parts:
            moments = {"momentum_buffer"} if isinstance(part, Muon) else {"step", "exp_avg", "exp_avg_sq"}
            needed = moments if stored else set()  # at step 0 there are none
            for parameter in _parameters(part):
                if set(part.state.get(parameter, ())) != needed:
                    name, listed = self._names[parameter], ", ".join(sorted(moments))
                    raise FileError(f"this checkpoint's optimizer should remember {listed} of {name}; train anew")


def matrices_of_layers(model: Transformer) -> list[nn.Parameter]:
    """The matrices inside encoder and decoder: all that is neither embedding nor output, neither bias nor norm."""
    stacks = (model.encoder, model.decoder)
    return [parameter for stack in stacks for parameter in stack.parameters() if parameter.ndim == 2]


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
