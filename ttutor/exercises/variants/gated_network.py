"""Exercise: SwiGLU and GeGLU, with the matrix that is often left out."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial


def gated_network(
    hidden: Float[Tensor, "tokens d_model"],
    w_gate: Float[Tensor, "d_ff d_model"],
    w_widen: Float[Tensor, "d_ff d_model"],
    w_narrow: Float[Tensor, "d_model d_ff"],
    activation: str,
) -> Float[Tensor, "tokens d_model"]:
    """A gated feed-forward network without biases; the matrices are stored as `nn.Linear` stores them."""
    ...


def solution(
    hidden: Float[Tensor, "tokens d_model"],
    w_gate: Float[Tensor, "d_ff d_model"],
    w_widen: Float[Tensor, "d_ff d_model"],
    w_narrow: Float[Tensor, "d_model d_ff"],
    activation: str,
) -> Float[Tensor, "tokens d_model"]:
    """A gated feed-forward network without biases; the matrices are stored as `nn.Linear` stores them."""
    opened = hidden @ w_gate.T
    share = torch.sigmoid(opened) if activation == "silu" else (1 + torch.erf(opened / 2**0.5)) / 2
    gate = opened * share
    return (gate * (hidden @ w_widen.T)) @ w_narrow.T


def reference(hidden, w_gate, w_widen, w_narrow, activation):
    function = {"silu": functional.silu, "gelu": functional.gelu}[activation]
    gate, wide = functional.linear(hidden, w_gate), functional.linear(hidden, w_widen)
    return functional.linear(function(gate) * wide, w_narrow)


def _gated(hidden, w_gate, w_widen, w_narrow, gate):
    return (gate(hidden @ w_gate.T) * (hidden @ w_widen.T)) @ w_narrow.T


def _function(activation):
    return {"silu": functional.silu, "gelu": functional.gelu}[activation]


def always_silu(hidden, w_gate, w_widen, w_narrow, activation):
    return _gated(hidden, w_gate, w_widen, w_narrow, functional.silu)


def always_gelu(hidden, w_gate, w_widen, w_narrow, activation):
    return _gated(hidden, w_gate, w_widen, w_narrow, functional.gelu)


def tanh_gelu(hidden, w_gate, w_widen, w_narrow, activation):
    def gelu(opened):
        return functional.gelu(opened, approximate="tanh")

    return _gated(hidden, w_gate, w_widen, w_narrow, functional.silu if activation == "silu" else gelu)


def sigmoid_gate(hidden, w_gate, w_widen, w_narrow, activation):
    return _gated(hidden, w_gate, w_widen, w_narrow, torch.sigmoid)


def gate_on_the_other(hidden, w_gate, w_widen, w_narrow, activation):
    return _gated(hidden, w_widen, w_gate, w_narrow, _function(activation))


def activation_after(hidden, w_gate, w_widen, w_narrow, activation):
    return _function(activation)((hidden @ w_gate.T) * (hidden @ w_widen.T)) @ w_narrow.T


def no_third_matrix(hidden, w_gate, w_widen, w_narrow, activation):
    return _function(activation)(hidden @ w_gate.T) * (hidden @ w_widen.T)


def no_gate(hidden, w_gate, w_widen, w_narrow, activation):
    return _function(activation)(hidden @ w_widen.T) @ w_narrow.T


def gate_alone(hidden, w_gate, w_widen, w_narrow, activation):
    return _function(activation)(hidden @ w_gate.T) @ w_narrow.T


def sum_for_product(hidden, w_gate, w_widen, w_narrow, activation):
    return (_function(activation)(hidden @ w_gate.T) + hidden @ w_widen.T) @ w_narrow.T


def with_residual(hidden, w_gate, w_widen, w_narrow, activation):
    return hidden + reference(hidden, w_gate, w_widen, w_narrow, activation)


def _closed(trial: Trial) -> str | None:
    """A gate of zeros lets nothing through."""
    hidden, w_gate, *rest = trial.inputs
    largest = trial.run(hidden, torch.zeros_like(w_gate), *rest).abs().max().item()
    return None if largest < 1e-9 else f"With a gate matrix of zeros your output is still up to {largest:.3g}."


def _linear_in_the_rest(trial: Trial) -> str | None:
    """What passes the gate is linear."""
    hidden, w_gate, w_widen, *rest = trial.inputs
    off = (trial.run(hidden, w_gate, 2 * w_widen, *rest) - 2 * trial.value).abs().max().item()
    return None if off < 1e-6 else f"Twice the second matrix does not give twice the output; it is {off:.3g} off."


def _network(activation):
    def make(random):
        hidden = 1.5 * torch.randn(5, 6, generator=random, dtype=torch.float64)
        w_gate, w_widen = (torch.randn(8, 6, generator=random, dtype=torch.float64) for _ in range(2))
        return hidden, w_gate, w_widen, torch.randn(6, 8, generator=random, dtype=torch.float64), activation

    return make


EXERCISES = (
    Exercise(
        id="variants.gated_network",
        title="Three matrices, not two",
        statement=r"""
Write $(\phi(x W_g) \odot x W_1)\,W_2$. With `activation="silu"` it is SwiGLU, and $\phi(z) = z\,\sigma(z)$; with
`activation="gelu"` it is GeGLU, and $\phi(z) = z\,\Phi(z)$ with the normal distribution's $\Phi(z) =
\tfrac12\big(1 + \mathrm{erf}(z/\sqrt2)\big)$, exactly and not by its approximation.
""".strip(),
        stub=gated_network,
        reference=reference,
        solution=solution,
        explanation="""
One map opens and closes, the other carries, the third brings the result back to the model's width. Summaries that show
the product alone leave the third out, and with it a third of the parameters. For large positive inputs the gate is
nearly the identity, so the network is nearly a product of two linear maps: something that ReLU layers do not compute.
""".strip(),
        cases=(
            Case(name="SwiGLU", inputs=_network("silu")),
            Case(name="GeGLU", inputs=_network("gelu")),
        ),
        hints=(
            "What are the shapes after each matrix, and what must come out?",
            "Two of the three matrices act on the same vector; only one of the results goes through the activation.",
            "Gate and carrier are multiplied feature by feature, and then narrowed.",
        ),
        mistakes=(
            Mistake(id="always_silu", says="You always use SiLU; GeGLU has GELU.", answers=(always_silu,)),
            Mistake(id="always_gelu", says="You always use GELU; SwiGLU has SiLU.", answers=(always_gelu,)),
            Mistake(
                id="tanh_gelu",
                says="Nearly: your GELU is its approximation by a tanh. Here the exact one is asked for.",
                answers=(tanh_gelu,),
            ),
            Mistake(
                id="sigmoid_gate",
                says="Your gate is a plain sigmoid, as in the gated unit of 2017. The activation has one more factor.",
                answers=(sigmoid_gate,),
            ),
            Mistake(
                id="gate_on_the_other",
                says="The activation stands on the wrong one of the two wide maps.",
                answers=(gate_on_the_other,),
            ),
            Mistake(
                id="activation_after",
                says="You multiply first and squash the product. The activation belongs on the gate alone.",
                answers=(activation_after,),
            ),
            Mistake(
                id="no_third_matrix",
                says="Your output is as wide as the inner layer. What brings it back to the width of the stream?",
                answers=(no_third_matrix,),
            ),
            Mistake(
                id="no_gate",
                says="This is the plain network of 2017: the gate's matrix is not used.",
                answers=(no_gate,),
            ),
            Mistake(
                id="gate_alone",
                says="The gate opens and closes nothing: the second wide map is not used.",
                answers=(gate_alone,),
            ),
            Mistake(
                id="sum_for_product",
                says="You add gate and carrier. A gate multiplies: where it is 0, nothing passes.",
                answers=(sum_for_product,),
            ),
            Mistake(
                id="with_residual",
                says="You add the input. The residual connection stands outside the network.",
                answers=(with_residual,),
            ),
        ),
        properties=(
            Property(id="closed_gate", says="Where the gate is closed, nothing should come through.", broken=_closed),
            Property(
                id="linear_carrier",
                says="What passes the gate is not squashed: the output is linear in the second matrix.",
                broken=_linear_in_the_rest,
            ),
        ),
        forbids=("silu", "gelu", "GatedFeedForward", "SiLU", "GELU"),
        difficulty=1,
        minutes=15,
        section="09-variants",
    ),
)
