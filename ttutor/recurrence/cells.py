r"""Recurrent cells: one step that reads an input and rewrites the state.

A cell's **state** is a tuple of tensors ``batch d_model``. The first is the hidden vector $h$, which others may read;
the LSTM keeps a second one, its cell $c$, to itself. Vectors are rows, so $xW$ is what ``nn.Linear`` computes.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.names import Answering
from ttutor.shapes import check_shapes

State = tuple[Float[Tensor, "batch d_model"], ...]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "linear": nn.Identity(),
}


class RecurrentCell(Answering, nn.Module):
    r"""What all cells have: an affine map of the input, a linear map of the hidden vector, and where the state begins.

    The maps make all gates at once, one after the other along the last axis. All parameters start uniformly between
    $-1/\sqrt{d_\mathrm{model}}$ and $1/\sqrt{d_\mathrm{model}}$, as torch's do.

    Args:
        d_input: width of each input.
        d_model: width of each tensor of the state.
    """

    n_gates = 1  # what is computed from input and hidden vector at each step, the candidate included
    n_parts = 1  # tensors of the state

    def __init__(self, d_input: int, d_model: int) -> None:
        super().__init__()
        if d_input < 1 or d_model < 1:
            raise ValueError(f"widths must be at least 1, but d_input={d_input} and d_model={d_model}")
        self.d_input, self.d_model = d_input, d_model
        self.from_input = nn.Linear(d_input, self.n_gates * d_model)
        self.from_hidden = nn.Linear(d_model, self.n_gates * d_model, bias=False)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(d_model**-0.5), d_model**-0.5)

    def initial_state(self, inputs: Float[Tensor, "batch ..."]) -> State:
        """A state of zeros, one row for each row of the inputs, with their dtype and device."""
        return tuple(inputs.new_zeros(inputs.shape[0], self.d_model) for _ in range(self.n_parts))

    def _check(self, inputs: Tensor, state: State) -> None:
        """Refuse inputs and states of another width, and a state of another kind of cell."""
        if len(state) != self.n_parts:
            raise ValueError(
                f"the state of {type(self).__name__} is a tuple of {self.n_parts} tensors, but came as one of "
                f"{len(state)}; `initial_state` gives one to begin with"
            )
        parts = {f"state[{i}]": (part, "batch d_model") for i, part in enumerate(state)}
        check_shapes({"d_input": self.d_input, "d_model": self.d_model}, inputs=(inputs, "batch d_input"), **parts)


class RNNCell(RecurrentCell):
    r"""The plain recurrence: $h_t = \tanh(x_t W + h_{t-1} U + b)$.

    Elman (1990), figure 2: the hidden vector is copied into a context that is read with the next input.

    Args:
        d_input, d_model: as for `RecurrentCell`.
        activation: ``"tanh"`` or ``"linear"``. Linear steps compose: two of them are again one such step,
            which is what `ttutor.recurrence.linear_scan` makes use of.

    Differs from the paper: Elman's units are logistic, ours tanh.

    Example:
        >>> cell = RNNCell(d_input=3, d_model=4)
        >>> inputs = torch.randn(2, 3)
        >>> (hidden,) = cell(inputs, cell.initial_state(inputs))
        >>> hidden.shape
        torch.Size([2, 4])
    """

    def __init__(self, d_input: int, d_model: int, *, activation: str = "tanh") -> None:
        super().__init__(d_input, d_model)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, but is {activation!r}")
        self.activation = ACTIVATIONS[activation]

    def forward(self, inputs: Float[Tensor, "batch d_input"], state: State) -> State:
        """Read one input; give the new state."""
        self._check(inputs, state)
        (hidden,) = state
        return (self.activation(self.from_input(inputs) + self.from_hidden(hidden)),)


class LSTMGates(NamedTuple):
    """One tensor for each gate of an `LSTMCell`; the first, second and last lie between 0 and 1."""

    input: Float[Tensor, "..."]
    forget: Float[Tensor, "..."]
    candidate: Float[Tensor, "..."]
    output: Float[Tensor, "..."]


class LSTMCell(RecurrentCell):
    r"""Long short-term memory: a cell that is added to, not rewritten, and three gates that guard it.

    $$i, f, o = \sigma(xW_{i,f,o} + h_{t-1}U_{i,f,o} + b_{i,f,o}), \qquad g = \tanh(xW_g + h_{t-1}U_g + b_g)$$
    $$c_t = f \odot c_{t-1} + i \odot g, \qquad h_t = o \odot \tanh(c_t)$$

    Hochreiter and Schmidhuber (1997), section 4; the forget gate $f$ is that of Gers et al. (2000), section 3. Along
    the cell, and as long as the gates stay as they are, $\partial c_t / \partial c_{t-1} = f$.

    Differs from the paper: in 1997 there was no forget gate, that is $f = 1$.

    Example:
        >>> cell = LSTMCell(d_input=3, d_model=4)
        >>> inputs = torch.randn(2, 3)
        >>> hidden, memory_cell = cell(inputs, cell.initial_state(inputs))
        >>> cell.gates(inputs, (hidden, memory_cell)).forget.shape
        torch.Size([2, 4])
    """

    n_gates, n_parts = 4, 2

    def gates(self, inputs: Float[Tensor, "batch d_input"], state: State) -> LSTMGates:
        """What the gates would be for this input in this state."""
        self._check(inputs, state)
        hidden, _ = state
        affine = self.from_input(inputs) + self.from_hidden(hidden)
        i, f, g, o = rearrange(affine, "batch (gates d_model) -> gates batch d_model", gates=4)
        return LSTMGates(torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o))

    def biases(self) -> LSTMGates:
        """Each gate's bias, as a view into the parameter: a larger ``biases().forget`` makes the cell forget less."""
        return LSTMGates(*rearrange(self.from_input.bias, "(gates d_model) -> gates d_model", gates=4))

    def forward(self, inputs: Float[Tensor, "batch d_input"], state: State) -> State:
        """Read one input; give the new state, hidden vector and cell."""
        gate = self.gates(inputs, state)
        _, cell = state
        cell = gate.forget * cell + gate.input * gate.candidate
        return gate.output * torch.tanh(cell), cell


class GRUGates(NamedTuple):
    """One tensor for each gate of a `GRUCell`; the first two lie between 0 and 1."""

    reset: Float[Tensor, "..."]
    update: Float[Tensor, "..."]
    candidate: Float[Tensor, "..."]


class GRUCell(RecurrentCell):
    r"""The gated recurrent unit: each feature of the hidden vector is kept or replaced, by degrees.

    $$r, z = \sigma(xW_{r,z} + h_{t-1}U_{r,z} + b_{r,z}), \qquad
      n = \tanh\!\big(xW_n + b_n + r \odot (h_{t-1}U_n + b_u)\big)$$
    $$h_t = z \odot h_{t-1} + (1 - z) \odot n$$

    Cho et al. (2014), section 2.3, equations 5 to 8.

    Differs from the paper: there the reset gate acts on the hidden vector before it is multiplied by $U_n$; here, as in
    torch, after, so that one matrix product serves all three gates.
    """

    n_gates = 3

    def __init__(self, d_input: int, d_model: int) -> None:
        super().__init__(d_input, d_model)
        self.candidate_bias = nn.Parameter(torch.empty(d_model).uniform_(-(d_model**-0.5), d_model**-0.5))

    def gates(self, inputs: Float[Tensor, "batch d_input"], state: State) -> GRUGates:
        """What the gates would be for this input in this state."""
        self._check(inputs, state)
        (hidden,) = state
        split = "batch (gates d_model) -> gates batch d_model"
        r, z, n = rearrange(self.from_input(inputs), split, gates=3)
        r_past, z_past, n_past = rearrange(self.from_hidden(hidden), split, gates=3)
        reset, update = torch.sigmoid(r + r_past), torch.sigmoid(z + z_past)
        return GRUGates(reset, update, torch.tanh(n + reset * (n_past + self.candidate_bias)))

    def biases(self) -> GRUGates:
        """Each gate's bias, as a view into the parameter: a larger ``biases().update`` makes the cell keep more."""
        return GRUGates(*rearrange(self.from_input.bias, "(gates d_model) -> gates d_model", gates=3))

    def forward(self, inputs: Float[Tensor, "batch d_input"], state: State) -> State:
        """Read one input; give the new state."""
        gate = self.gates(inputs, state)
        (hidden,) = state
        return (gate.update * hidden + (1 - gate.update) * gate.candidate,)
