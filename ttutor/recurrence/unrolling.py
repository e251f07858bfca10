"""Reading a sequence: the same cell, once for every token, in a loop that nothing can shorten."""

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ttutor.recurrence.cells import RecurrentCell, State
from ttutor.shapes import check_shapes


def unroll(
    cell: RecurrentCell,
    inputs: Float[Tensor, "batch tokens d_input"],
    is_real: Bool[Tensor, "batch tokens"] | None = None,
    state: State | None = None,
) -> list[State]:
    r"""All states $s_0, s_1, \dots, s_T$ of a cell that reads the tokens in order: $s_t = \mathrm{cell}(x_t, s_{t-1})$.

    Padding is passed over: the state stays as it was. So the last state of a row is that after its last real token,
    wherever in the row the padding stands.

    Args:
        cell: what reads one token.
        inputs: one vector for each token.
        is_real: which tokens count (True = real); all when left out.
        state: where to begin; the cell's ``initial_state`` when left out.

    Example:
        >>> from ttutor.recurrence import LSTMCell
        >>> states = unroll(LSTMCell(3, 4), torch.randn(2, 5, 3))
        >>> len(states), len(states[0]), states[0][0].shape
        (6, 2, torch.Size([2, 4]))
    """
    named = {"inputs": (inputs, "batch tokens d_input")}
    if is_real is not None:
        named["is_real"] = (is_real, "batch tokens")
    check_shapes({"d_input": cell.d_input}, **named)
    states = [cell.initial_state(inputs) if state is None else state]
    # Taken apart at once: each slice inputs[:, t] would have a gradient of the whole length.
    for t, token in enumerate(inputs.unbind(dim=1)):
        new = cell(token, states[-1])
        states.append(new if is_real is None else keep_where(is_real[:, t], new, states[-1]))
    return states


def keep_where(is_real: Bool[Tensor, " batch"], new: State, old: State) -> State:
    """The new state in rows whose token is real, the old one in the others."""
    is_real = rearrange(is_real, "batch -> batch 1")
    return tuple(torch.where(is_real, after, before) for after, before in zip(new, old, strict=True))


def hidden_of(states: list[State]) -> Float[Tensor, "batch tokens d_model"]:
    """The hidden vectors after each token, from the states that `unroll` gave; the initial one is left out.

    Example:
        >>> from ttutor.recurrence import RNNCell
        >>> hidden_of(unroll(RNNCell(3, 4), torch.randn(2, 5, 3))).shape
        torch.Size([2, 5, 4])
    """
    initial, *later = states
    if not later:
        return initial[0].new_zeros(initial[0].shape[0], 0, initial[0].shape[1])
    return torch.stack([state[0] for state in later], dim=1)


class RecurrentEncoder(nn.Module):
    r"""A sequence in, one hidden vector for each token out, and the state after the last.

    With a second cell it reads from both ends and puts the two hidden vectors of each token side by side, so that each
    tells of what comes before *and* after (Schuster and Paliwal 1997; Bahdanau et al. 2015, section 3.2).

    Args:
        cell: reads from the first token to the last.
        backward_cell: reads from the last to the first; nobody does when left out.

    Example:
        >>> from ttutor.recurrence import GRUCell
        >>> encoder = RecurrentEncoder(GRUCell(3, 4), GRUCell(3, 4))
        >>> hidden, (last,) = encoder(torch.randn(2, 5, 3))
        >>> hidden.shape, last.shape
        (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(self, cell: RecurrentCell, backward_cell: RecurrentCell | None = None) -> None:
        super().__init__()
        self.cell = cell
        self.backward_cell = backward_cell

    def forward(
        self, inputs: Float[Tensor, "batch tokens d_input"], is_real: Bool[Tensor, "batch tokens"] | None = None
    ) -> tuple[Float[Tensor, "batch tokens d_output"], State]:
        """Read; give the hidden vector of each token and the state at the end (of each direction, side by side).

        At padding the hidden vector is that of the last real token before it.
        """
        states = unroll(self.cell, inputs, is_real)
        if self.backward_cell is None:
            return hidden_of(states), states[-1]
        mirrored = unroll(self.backward_cell, inputs.flip(1), None if is_real is None else is_real.flip(1))
        hidden = torch.cat([hidden_of(states), hidden_of(mirrored).flip(1)], dim=-1)
        return hidden, tuple(torch.cat(parts, dim=-1) for parts in zip(states[-1], mirrored[-1], strict=True))
