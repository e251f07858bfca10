"""Exercise: SwiGLU and GeGLU, from the two tensors in which their three matrices are often stored."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def gated_network(
    hidden: Float[Tensor, "tokens d_model"],
    w_in: Float[Tensor, "twice_d_ff d_model"],
    w_out: Float[Tensor, "d_model d_ff"],
    activation: str,
) -> Float[Tensor, "tokens d_model"]:
    """A gated feed-forward network without biases; the matrices are stored as `nn.Linear` stores them."""
    opened, carried = (hidden @ w_in.T).chunk(2, dim=-1)
    share = torch.sigmoid(opened) if activation == "silu" else (1 + torch.erf(opened / 2**0.5)) / 2
    gate = opened * share
    return (gate * carried) @ w_out.T


def reference(hidden, w_in, w_out, activation):
    w_gate, w_widen = _halves(w_in)
    function = {"silu": functional.silu, "gelu": functional.gelu}[activation]
    gate, wide = functional.linear(hidden, w_gate), functional.linear(hidden, w_widen)
    return functional.linear(function(gate) * wide, w_out)


def _halves(w_in):
    d_ff = len(w_in) // 2
    return w_in[:d_ff], w_in[d_ff:]


def _network(activation):
    def make(random):
        d_model, d_ff = drawn(random, 6, 7), drawn(random, 8, 10)
        hidden = 1.5 * torch.randn(drawn(random, 4, 5), d_model, generator=random, dtype=torch.float64)
        w_in = torch.randn(2 * d_ff, d_model, generator=random, dtype=torch.float64)
        return hidden, w_in, torch.randn(d_model, d_ff, generator=random, dtype=torch.float64), activation

    return make


exercise = Exercise(
    id="variants.gated_network",
    title="Three matrices in two tensors",
    statement=r"""
Many programs store the gate and the carrier of a gated network in *one* tensor `w_in`, for a single large product: its
first half of rows is $W_g^\top$, its second half $W_1^\top$ (both as `nn.Linear` stores them, one row for each output),
and `w_out` is $W_2^\top$. Write the network $\big(\phi(x W_g) \odot x W_1\big)\,W_2$ with these two tensors, for two
activations $\phi$ of the gate. With `activation="silu"` it is SwiGLU, and $\phi(z) = z\,\sigma(z)$ with the logistic
function $\sigma$; with `activation="gelu"` it is GeGLU, and $\phi(z) = z\,\Phi(z)$, where $\Phi(z) = \tfrac12\big(1 +
\mathrm{erf}(z/\sqrt2)\big)$ is the share of a standard normal distribution below $z$ (`torch.erf` is the function erf),
exactly and not by its approximation with a tanh. Write both out: PyTorch's own SiLU, GELU and GLU are not
allowed here.
""".strip(),
    reference=reference,
    solution=gated_network,
    explanation="""
One map opens and closes, the other carries, the third brings the result back to the model's width. Summaries that show
the product alone leave the third out, and with it a third of the parameters. For large positive inputs the gate is
nearly the identity, so the network is nearly a product of two linear maps: something that ReLU layers do not compute.
""".strip(),
    cases=(
        Case(name="SwiGLU", inputs=_network("silu")),
        Case(name="GeGLU", inputs=_network("gelu")),
    ),
    hints="""
What are the shapes after each of the two products, and what must come out?

One product gives both wide vectors side by side. Which features are the gate's?

Only the first half goes through the activation; then both are multiplied and narrowed.
""",
    forbids=("silu", "gelu", "glu", "GatedFeedForward", "SiLU", "GELU", "GLU"),
    difficulty=1,
    minutes=15,
    section="09-variants",
)

exercise.mutations(r"""
always_silu: ' if activation == "silu" else (1 + torch.erf(opened / 2**0.5)) / 2' -> ""
    You always use SiLU; GeGLU has GELU.
always_gelu: 'torch.sigmoid(opened) if activation == "silu" else ' -> ""
    You always use GELU; SwiGLU has SiLU.
tanh_gelu: "torch.erf(opened / 2**0.5)" -> "torch.tanh((2 / torch.pi) ** 0.5 * (opened + 0.044715 * opened**3))"
    Nearly: your GELU is its approximation by a tanh. Here the exact one is asked for.
sigmoid_gate: "gate = opened * share" -> "gate = torch.sigmoid(opened)"
    Your gate is a plain sigmoid, as in the gated unit of 2017. The activation has one more factor.
gate_on_the_other: "opened, carried" -> "carried, opened"
    The activation stands on the wrong one of the two wide maps: which half of the rows is the gate?
rows_by_turns: "(hidden @ w_in.T)" -> "(hidden @ torch.cat([w_in[::2], w_in[1::2]]).T)"
    You take every other row for the gate. The gate's rows stand together, before the carrier's.
activation_after: "share = " -> "opened = opened * carried\n    share = ", "(gate * carried)" -> "gate"
    You multiply first and squash the product. The activation belongs on the gate alone.
no_third_matrix: "(gate * carried) @ w_out.T" -> "gate * carried"
    Your output is as wide as the inner layer. What brings it back to the width of the stream?
no_gate: "share = " -> "opened = carried\n    share = ", "(gate * carried)" -> "gate"
    This is the plain network of 2017: the gate's half is not used.
gate_alone: "(gate * carried)" -> "gate"
    The gate opens and closes nothing: the second wide map is not used.
sum_for_product: "gate * carried" -> "gate + carried"
    You add gate and carrier. A gate multiplies: where it is 0, nothing passes.
with_residual: "return (" -> "return hidden + ("
    You add the input. The residual connection stands outside the network.
""")


@exercise.must_hold("Where the gate is closed, nothing should come through.")
def closed_gate(trial: Trial) -> str | None:
    hidden, w_in, *rest = trial.inputs
    w_gate, w_widen = _halves(w_in)
    largest = trial.run(hidden, torch.cat([torch.zeros_like(w_gate), w_widen]), *rest).abs().max().item()
    return None if largest < 1e-9 else f"With a gate matrix of zeros your output is still up to {largest:.3g}."


@exercise.must_hold("What passes the gate is not squashed: the output is linear in the carrier's matrix.")
def linear_carrier(trial: Trial) -> str | None:
    hidden, w_in, *rest = trial.inputs
    w_gate, w_widen = _halves(w_in)
    off = (trial.run(hidden, torch.cat([w_gate, 2 * w_widen]), *rest) - 2 * trial.value).abs().max().item()
    return None if off < 1e-6 else f"Twice the carrier's matrix does not give twice the output; it is {off:.3g} off."
