"""torch's recurrent modules with the weights of ours."""

import torch
from torch import nn

from ttutor.recurrence import GRUCell, LSTMCell, RecurrentCell, RNNCell

TWINS = {RNNCell: nn.RNN, LSTMCell: nn.LSTM, GRUCell: nn.GRU}


def torch_twin(cell: RecurrentCell, backward_cell: RecurrentCell | None = None, **options) -> nn.RNNBase:
    """`nn.RNN`, `nn.LSTM` or `nn.GRU`, one layer, with the weights of our cell; of two, if it reads from both ends."""
    both = backward_cell is not None
    twin = TWINS[type(cell)](cell.d_input, cell.d_model, batch_first=True, bidirectional=both, **options).double()
    copy_weights(cell, twin, "_l0")
    if both:
        copy_weights(backward_cell, twin, "_l0_reverse")
    return twin


def copy_weights(cell: RecurrentCell, twin: nn.Module, suffix: str = "") -> None:
    """torch adds two biases where ours has one; the second stays zero but for the GRU's candidate, where it counts."""
    second_bias = torch.zeros_like(cell.from_input.bias)
    if isinstance(cell, GRUCell):
        second_bias[2 * cell.d_model :] = cell.candidate_bias.detach()
    tensors = (cell.from_input.weight, cell.from_hidden.weight, cell.from_input.bias, second_bias)
    for name, tensor in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), tensors, strict=True):
        getattr(twin, name + suffix).data = tensor.detach().clone()


def our_gradients(cell: RecurrentCell) -> list[torch.Tensor]:
    """Of the input's weights, the hidden vector's, and the bias."""
    return [cell.from_input.weight.grad, cell.from_hidden.weight.grad, cell.from_input.bias.grad]


def twin_gradients(twin: nn.RNNBase) -> list[torch.Tensor]:
    """In the order of `our_gradients`."""
    return [twin.weight_ih_l0.grad, twin.weight_hh_l0.grad, twin.bias_ih_l0.grad]
