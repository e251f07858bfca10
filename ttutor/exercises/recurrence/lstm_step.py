"""Exercise: one step of an LSTM, from its four affine maps."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def lstm_gates(
    affine: Float[Tensor, "batch gates_d_model"], memory_cell: Float[Tensor, "batch d_model"]
) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, "batch d_model"]]:
    """The new hidden state and the new cell state, in this order."""
    i, f, g, o = rearrange(affine, "batch (gates d_model) -> gates batch d_model", gates=4)
    memory_cell = f.sigmoid() * memory_cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * memory_cell.tanh(), memory_cell


def _inputs(random):
    batch, d_model = drawn(random, 2, 3), drawn(random, 5, 8)
    return (
        2 * torch.randn(batch, 4 * d_model, generator=random, dtype=torch.float64),
        2 * torch.randn(batch, d_model, generator=random, dtype=torch.float64),
    )


exercise = Exercise(
    id="recurrence.lstm_gates",
    title="A page with a lock",
    statement="The affine maps of an LSTM, its sums before sigmoid and tanh, have been computed and stand side by "
    "side in `affine`, four times $d_\\mathrm{model}$ wide, in PyTorch's order: input, forget, candidate, output. "
    "Finish the step, $c_t = f_t \\odot c_{t-1} + i_t \\odot g_t$ and $h_t = o_t \\odot \\tanh(c_t)$: "
    "return the new hidden state and the new cell state.",
    reference=lstm_gates,
    solution=lstm_gates,
    explanation="Only one line touches the old cell state, and only by a factor and a sum. Everything else in "
    "the LSTM is there to decide on that factor and that summand.",
    cases=(Case(name="a few rows", inputs=_inputs, points=2),),
    hints="""
Three of the four parts are gates, numbers between 0 and 1. The fourth may be negative. Which is it?

`rearrange` with `(gates d_model)` or `torch.chunk` cuts the last axis into four. Then write the two equations down one
after the other.

The new cell comes first: forget times old plus input times candidate. What is shown is the output gate times the tanh
of the *new* cell, and the cell itself is handed on without that tanh.
""",
    forbids=("LSTM", "LSTMCell"),
    difficulty=2,
    minutes=15,
    section="01-recurrence",
)

exercise.mutations("""
gate_order: "i, f, g, o" -> "i, f, o, g"
    You take the third part for the output gate and the fourth for the candidate. PyTorch has them the other way round.
forget_input_exchanged: "i, f, g, o" -> "f, i, g, o"
    Input and forget gate are exchanged: the first quarter is the input gate.
interleaved: "(gates d_model)" -> "(d_model gates)"
    You take every fourth number. Each gate is one block of neighbours: in the pattern, which of the two names varies
    faster?
candidate_sigmoid: "g.tanh()" -> "g.sigmoid()"
    Your candidate is never negative, so that the cell can only be filled and not emptied.
tanh_gates: "f.sigmoid()" -> "f.tanh()", "i.sigmoid()" -> "i.tanh()", "o.sigmoid()" -> "o.tanh()"
    Your gates can be negative. A gate says how much, from nothing to all.
raw_output: "memory_cell.tanh()" -> "memory_cell"
    The cell state is right. It is shown as it is, and can be larger than 1 in what others read; what is missing?
old_cell_shown: "memory_cell = f" -> "old, memory_cell = memory_cell, f", "memory_cell.tanh()" -> "old.tanh()"
    The cell state is right. What you show is made from the *old* one.
cell_squashed: "= f.sigmoid()" -> "= torch.tanh(f.sigmoid()", "g.tanh()" -> "g.tanh())",
  "memory_cell.tanh()" -> "memory_cell"
    You hand on a cell state that went through a tanh. At every step it would shrink again; that is what the LSTM was
    built to avoid.
blend: "i.sigmoid()" -> "(1 - f.sigmoid())"
    You let in what the forget gate does not keep. That is the GRU's blend; the LSTM has a gate of its own for what
    comes in.
forget_inverted: "f.sigmoid()" -> "(-f).sigmoid()"
    Your forget gate forgets where it should keep: it is named badly, and 1 means keep.
pair_exchanged: "o.sigmoid() * memory_cell.tanh(), memory_cell" -> "memory_cell, o.sigmoid() * memory_cell.tanh()"
    Right numbers, exchanged: the hidden state comes first.
""")


@exercise.must_hold("With the forget gate open and the input gate shut the cell state should stay as it is.")
def keeps(trial: Trial) -> str | None:
    affine, memory_cell = trial.inputs
    width = memory_cell.shape[1]
    affine = affine.clone()
    affine[:, :width], affine[:, width : 2 * width] = -60, 60
    gap = (trial.run(affine, memory_cell)[1] - memory_cell).abs().max().item()
    return None if gap < 1e-6 else f"With f = 1 and i = 0 your cell state moved by up to {gap:.2g}."


@exercise.must_hold("With the output gate shut the hidden state should be zero.")
def output_shuts(trial: Trial) -> str | None:
    affine, memory_cell = trial.inputs
    affine = affine.clone()
    affine[:, 3 * memory_cell.shape[1] :] = -60
    shown = trial.run(affine, memory_cell)[0].abs().max().item()
    return None if shown < 1e-6 else f"With o = 0 your hidden state still holds {shown:.2g}."
