"""Exercise: put the gain and the bias of a norm into the linear map that reads it."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def folded_norm(
    gain: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    weight: Float[Tensor, "d_out d_model"],
    constant: Float[Tensor, " d_out"],
) -> tuple[Float[Tensor, "d_out d_model"], Float[Tensor, " d_out"]]:
    """The weight and the constant of a linear map that gives the same after a norm without gain and bias."""
    return weight * gain, constant + weight @ bias


def reference(gain, bias, weight, constant):
    return torch.einsum("om,m->om", weight, gain), constant + (weight * bias).sum(dim=-1)


def _inputs(random):
    d_model, d_out = drawn(random, 6, 9), drawn(random, 3, 5)
    gain, bias = 1.5 + torch.rand(d_model, generator=random), torch.randn(d_model, generator=random)
    weight, constant = torch.randn(d_out, d_model, generator=random), torch.randn(d_out, generator=random)
    return tuple(part.double() for part in (gain, bias, weight, constant))


exercise = Exercise(
    id="encoder.folded_norm",
    title="A norm without gain and bias",
    statement="In a pre-norm layer the norm's result $\\gamma \\odot n + \\beta$, with $n$ of mean 0 and variance "
    "1, goes into a linear map: $y = W(\\gamma \\odot n + \\beta) + b$ for column vectors, with $W$ stored "
    "`d_out d_model`. Find $W'$ and $b'$ with $y = W' n + b'$ for every $n$, and return both. "
    "Then go one step further, on paper: is the norm's centring needed? Find $W''$ that gives $W' n$ when it reads "
    "$x/\\sigma$ in place of $n = (x - \\bar x \\mathbf 1)/\\sigma$.",
    reference=reference,
    solution=folded_norm,
    explanation="Multiply out: $W(\\gamma \\odot n) = (W\\,\\mathrm{diag}(\\gamma))\\,n$, which scales the "
    "*columns* of $W$, and $W\\beta$ does not depend on $n$, so it joins the constant. This is how engines for "
    "inference drop gain and bias. It works in pre-norm, where only linear maps read the norm. After a post-norm "
    "the stream itself carries $\\gamma$ and $\\beta$ on, and the next skip adds to it. The step further: subtract "
    "from each row of $W'$ its mean. Then each row sums to zero, a constant added to all features of $x$ changes "
    "nothing, and $W'' x/\\sigma = W'' n = W' n$, since $n$ has mean 0 as well.",
    cases=(Case(name="more features than outputs", inputs=_inputs),),
    hints="""
Write out one output, $y_o$, as a sum over features. Which factors stand beside $n_i$? Which terms have no $n_i$?

Sort the sum into what is multiplied by $n_i$ and what is not. The first part is a row of $W'$.

Broadcasting a vector of length `d_model` against `d_out d_model` scales columns. The part without $n$ is a matrix times
a vector, plus $b$.
""",
    difficulty=1,
    minutes=10,
    section="05-encoder",
)

exercise.mutations("""
bias_scaled_too: "@ bias" -> "* gain @ bias"
    Your constant multiplies the bias by the gain. In the norm the bias is added after the gain.
bias_forgotten: " + weight @ bias" -> ""
    The weight is right, and the norm's bias has vanished. What does the map make of it?
constant_forgotten: "constant + " -> ""
    The map's own constant is gone. It is still added at the end.
constant_scaled: "+ weight" -> "* gain.mean() + weight"
    The map's own constant is added after everything else: no gain reaches it.
gain_divided: "* gain" -> "/ gain"
    You divide by the gain. The norm multiplies by it, and the new map has to do the same work.
gain_forgotten: " * gain" -> ""
    The constant is right, but the weight is the old one. Where does the gain go?
bias_subtracted: "+ weight" -> "- weight"
    The bias comes in with the wrong sign. You replace the norm, you do not undo it.
""")


@exercise.mistake(
    "The gain belongs to the features that come in, and so to the columns of the weight. Which axis do you scale?"
)
def gain_on_the_rows(gain, bias, weight, constant):
    """Fits a square matrix only; others get what the broadcast would have wanted."""
    scaled = (weight.T * gain).T if len(weight) == len(gain) else weight * gain.mean()
    return scaled, constant + weight @ bias


@exercise.must_hold("Try both forms on one normalised vector: they have to give the same.")
def both_ways_agree(trial: Trial) -> str | None:
    gain, bias, weight, constant = trial.inputs
    normed = torch.linspace(-1.5, 1.5, len(gain), dtype=gain.dtype)
    new_weight, new_constant = trial.value
    if new_weight.shape != weight.shape or new_constant.shape != constant.shape:
        return f"Weight and constant are {tuple(new_weight.shape)} and {tuple(new_constant.shape)}."
    off = (new_weight @ normed + new_constant - (weight @ (gain * normed + bias) + constant)).abs().max().item()
    return None if off < 1e-6 else f"For one normalised vector the two ways differ by up to {off:.2g}."
