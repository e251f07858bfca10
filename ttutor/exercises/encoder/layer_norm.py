"""Exercise: LayerNorm, token by token."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor import layers
from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.encoder.gradient import gradient_like
from ttutor.exercises.exercise import Case, Exercise, Property, Trial


def layer_norm(
    hidden: Float[Tensor, "... d_model"],
    gain: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float,
) -> Float[Tensor, "... d_model"]:
    """Give each token's vector mean 0 and variance 1, then scale its features by `gain` and shift them by `bias`."""
    centred = hidden - hidden.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return gain * centred / torch.sqrt(variance + eps) + bias


def reference(hidden, gain, bias, eps):
    return layers.layer_norm(hidden, gain, bias, eps)


def _gain_and_bias(generator, d_model, dtype=torch.float32):
    """As after training: no gain is one and no bias is zero."""
    return tuple(torch.randn(2, d_model, generator=generator, dtype=dtype) + torch.tensor([[2.0], [1.0]], dtype=dtype))


def _batch(generator):
    d_model = drawn(generator, 8, 10)
    hidden = 3 * torch.randn(2, 3, drawn(generator, 4, 6), d_model, generator=generator) + 2
    return hidden, *_gain_and_bias(generator, d_model), 1e-5


def _tiny(generator):
    """Numbers beside which eps counts, one token of zeros, and as many tokens as features: wrong axes line up."""
    hidden = 0.02 * torch.randn(7, 7, generator=generator) + 0.03
    hidden[4] = 0.0
    return hidden, *_gain_and_bias(generator, 7), one_of(generator, (5e-4, 1e-3, 2e-3))


def _far_from_zero(generator):
    d_model = drawn(generator, 6, 9)
    hidden = 5 * torch.randn(5, d_model, generator=generator, dtype=torch.float64) + 1e8
    return hidden, *_gain_and_bias(generator, d_model, torch.float64), 1e-5


def _mean_that_is_not_zero(trial: Trial) -> str | None:
    """Undo bias and gain and look at each token's mean."""
    _, gain, bias, _ = trial.inputs
    means = ((trial.value - bias) / gain).mean(dim=-1)
    worst = means.flatten()[means.abs().argmax()].item()
    return None if abs(worst) < 1e-3 else f"With gain and bias undone, the mean of one token is {worst:.3g}."


def _variance_that_is_not_one(trial: Trial) -> str | None:
    """Undo bias and gain and look at each token's variance, which eps makes a little smaller than one."""
    hidden, gain, bias, eps = trial.inputs
    before = hidden.var(dim=-1, unbiased=False)
    expected = before / (before + eps)
    found = ((trial.value - bias) / gain).var(dim=-1, unbiased=False)
    worst = (found - expected).abs().argmax()
    pair = found.flatten()[worst].item(), expected.flatten()[worst].item()
    if abs(pair[0] - pair[1]) < 1e-3:
        return None
    return f"With gain and bias undone, the variance of one token is {pair[0]:.3g} where eps would leave {pair[1]:.3g}."


def _token_that_hears_another(trial: Trial) -> str | None:
    """Change the last token of the last sequence: no other result may move."""
    hidden, *rest = trial.inputs
    changed = hidden.clone()
    last = changed.flatten(0, -2)[-1]  # a view
    last.mul_(2).add_(torch.arange(hidden.shape[-1]))
    moved = (trial.run(changed, *rest) - trial.value).flatten(0, -2)[:-1].abs().max().item()
    return None if moved == 0 else f"A change of the last token moved the result of another one by {moved:.2g}."


exercise = Exercise(
    id="encoder.layer_norm",
    title="LayerNorm, one token at a time",
    statement="""
Write LayerNorm yourself. Each token's vector is brought to mean 0 and variance 1; then every feature has a gain
$\\gamma$ and a bias $\\beta$ of its own:

$$y = \\gamma \\odot \\frac{x - \\bar{x}}{\\sqrt{\\mathrm{var}(x) + \\epsilon}} + \\beta.$$

The variance is the biased one, a plain mean of squares. `hidden` may have any number of axes, of which the last holds
the features, and it may lie far from zero. Write it without looking back at the chapter; a call of torch's own
`layer_norm` does not count. Gradients flow back to `hidden`, `gain` and `bias`, through mean and variance too.
""".strip(),
    reference=reference,
    solution=layer_norm,
    cases=(
        Case(name="four axes", inputs=_batch),
        Case(name="one sequence of tiny numbers, one token of zeros and a large eps", inputs=_tiny),
        Case(name="numbers far from zero, in float64", inputs=_far_from_zero),
    ),
    explanation="""
Centring comes first and is used twice: the variance is the mean square of what has been centred, never a difference
of two large means. Every step works along the last axis and keeps it, so the same lines serve a token, a sentence and a
batch of them, and no token hears of another. The small $\\epsilon$ stands beside the variance, where it also
keeps the *derivative* finite for a token whose features are all equal.
""".strip(),
    hints="""
Which numbers share one mean: those of a token, of a sequence, of a feature over all tokens? Change one token in
thought, and ask which results may move.

There are two formulas for a variance: the mean of the squared deviations, and the mean square minus the squared mean.
They agree on paper. Which survives numbers near 10⁸? And where does eps stand in the formula?

Three lines: subtract the mean over the last axis (`keepdim=True`, so that it lines up with `hidden`); average the
squares of what you have centred over the same axis; divide by the root of that average plus eps, and only then multiply
by the gain and add the bias.
""",
    properties=[
        Property(
            id="tokens_apart",
            says="No token's result should depend on another token: over which axes do you average?",
            broken=_token_that_hears_another,
        ),
        Property(
            id="mean_zero",
            says="Before gain and bias each token should have mean 0: what do you subtract, and when?",
            broken=_mean_that_is_not_zero,
        ),
        Property(
            id="variance_one",
            says="Before gain and bias each token's variance should be 1, or a little less where eps counts: "
            "what do you divide by?",
            broken=_variance_that_is_not_one,
        ),
        gradient_like(
            reference,
            ("hidden", "gain", "bias", "eps"),
            "The result is right, but training with it would go wrong: its gradient is not that of the "
            "formula. Does something on the way leave autograd?",
        ),
    ],
    forbids=(
        "layer_norm",
        "LayerNorm",
        "native_layer_norm",
        "group_norm",
        "GroupNorm",
        "instance_norm",
        "batch_norm",
    ),
    difficulty=1,
    minutes=10,
    section="05-encoder",
)

exercise.mutations(r"""
wrong_dim: "hidden.mean(dim=-1" -> "hidden.mean(dim=-2", "square().mean(dim=-1" -> "square().mean(dim=-2"
    You average over tokens, so that each token's result depends on its neighbours. LayerNorm looks at one token at a
    time: which axis holds a token's features?
whole_batch: "hidden.mean(dim=-1" -> "hidden.mean(dim=tuple(range(hidden.ndim - 1))",
  "square().mean(dim=-1" -> "square().mean(dim=tuple(range(hidden.ndim - 1))"
    Each feature is normalised over all tokens of the batch: that is BatchNorm. In LayerNorm the features of one token
    share a mean, and tokens share nothing.
over_batch: "hidden.mean(dim=-1" -> "hidden.mean(dim=0", "square().mean(dim=-1" -> "square().mean(dim=0"
    You average over the first axis, so that a sentence's result depends on the others in its batch. LayerNorm looks at
    one token at a time: which axis holds a token's features?
second_axis: "hidden.mean(dim=-1" -> "hidden.mean(dim=1", "square().mean(dim=-1" -> "square().mean(dim=1"
    Right for a single sequence; in a batch you average over its tokens, since axis 1 is another axis then. How do you
    name the last axis, whatever comes before it?
all_dims: "hidden.mean(dim=-1" -> "hidden.mean(dim=(-2, -1)", "square().mean(dim=-1" -> "square().mean(dim=(-2, -1)"
    You take one mean for each whole sequence. There should be one for each token: how many axes may the average run
    over?
no_keepdim: "hidden.mean(dim=-1, keepdim=True)" -> "hidden.mean(dim=-1)",
  "centred.square().mean(dim=-1, keepdim=True)" -> "hidden.var(dim=-1, unbiased=False)"
    The mean has lost the axis it was taken over, so that it lines up with the wrong one, or with none. Print its shape
    beside that of `hidden`, and look at `keepdim`.
unbiased: "centred.square().mean(dim=-1, keepdim=True)" -> "centred.var(dim=-1, keepdim=True)"
    Your results are too small by the factor √((d−1)/d), with d features: `torch.var` and `torch.std` divide by d−1
    unless told otherwise. The exercise asks for the plain mean of squares.
eps_outside: "torch.sqrt(variance + eps)" -> "(torch.sqrt(variance) + eps)"
    Right at ordinary sizes, too small for tiny numbers: you add eps to the standard deviation. In the formula it is
    added to the variance. On which side of the root is that?
no_eps: "variance + eps" -> "variance"
    A token whose features are all equal gives 0/0, which is NaN, and tiny numbers come out too large. What is eps there
    for?
eps_ignored: "variance + eps" -> "variance + 1e-5"
    Your result does not depend on eps: it is right for one value of it only. Is there a number in your code where the
    argument should stand?
no_sqrt: "torch.sqrt(variance + eps)" -> "(variance + eps)"
    You divide by the variance. Double the input: the result should stay, yours is halved. What has the unit of the
    features, the variance or its root?
no_affine: "gain * centred" -> "centred", ") + bias" -> ")"
    `gain` and `bias` have no effect: you return the normalised vector itself. What does the formula do with it next?
affine_order: "gain * centred / torch.sqrt(variance + eps) + bias" ->
  "gain * (centred / torch.sqrt(variance + eps) + bias)"
    Your bias is multiplied by the gain. Scale first, then shift: check where a pair of brackets closes.
rmsnorm: "hidden - hidden.mean(dim=-1, keepdim=True)" -> "hidden"
    That is RMSNorm: the mean is never removed, neither above the fraction nor in the root. What does LayerNorm subtract
    first?
mean_square: "variance = centred" -> "variance = hidden"
    You centre the vector above the fraction and not below it: the root holds the mean of the raw squares. The variance
    is the mean square of what is left after centring.
difference_of_squares: "centred.square().mean(dim=-1, keepdim=True)" ->
  "hidden.square().mean(dim=-1, keepdim=True) - hidden.mean(dim=-1, keepdim=True).square()"
    Right near zero, wrong far from it: the mean of squares minus the square of the mean is a small difference of huge
    numbers, and rounding eats it. Of what can you take the squares instead?
casts_to_float32: "hidden - hidden.mean(dim=-1, keepdim=True)" ->
  "(hidden - hidden.mean(dim=-1, keepdim=True)).float()\n    gain, bias = gain.float(), bias.float()"
    Your numbers are right, but a float64 input comes back as float32. A layer should answer in the dtype that it is
    asked in: where do you name one?
inplace: "hidden - hidden.mean(dim=-1, keepdim=True)" -> "hidden.sub_(hidden.mean(dim=-1, keepdim=True))"
    Your result is right, but `hidden` was changed. An operator such as `-=` edits the caller's data; in a residual
    layer the stream would be lost.
detached: "hidden.mean(" -> "hidden.detach().mean(", "variance = centred" -> "variance = centred.detach()"
    The values are right, the gradients are not: mean and variance are treated as constants, though they depend on the
    input. Look for `.detach()`, `.item()` or `no_grad`.
""")
