"""Exercise: the steps of Adam."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def adam_steps(
    gradients: Float[Tensor, "steps parameters"], rate: float, beta1: float, beta2: float, eps: float
) -> Float[Tensor, "steps parameters"]:
    """What Adam adds to each parameter at each step, from the gradients of all steps."""
    m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])
    steps = []
    for t, gradient in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient.square()
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        steps.append(-rate * m_hat / (v_hat.sqrt() + eps))
    return torch.stack(steps)


def reference(gradients, rate, beta1, beta2, eps):
    """PyTorch's Adam, from parameters of zero."""
    parameter = torch.zeros_like(gradients[0]).requires_grad_()
    optimizer = torch.optim.Adam([parameter], lr=rate, betas=(beta1, beta2), eps=eps)
    places = [torch.zeros_like(gradients[0])]
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        places.append(parameter.detach().clone())
    return torch.stack(places).diff(dim=0)


def _noisy(random):
    gradients = 3 * torch.randn(drawn(random, 5, 8), drawn(random, 3, 4), generator=random, dtype=torch.float64)
    return gradients, 0.01, drawn(random, 85, 92) / 100, 0.98, 1e-8


def _tiny(random):
    """The same gradient at every step, about as small as eps."""
    eps = 10.0 ** -drawn(random, 6, 9)
    sizes = torch.tensor([eps, -10 * eps, 0.3 * eps], dtype=torch.float64) * (1 + torch.rand(3, generator=random))
    return sizes.expand(drawn(random, 4, 6), 3).clone(), 0.5, 0.8, 0.95, eps


exercise = Exercise(
    id="training.adam_steps",
    title="Adam does not mind the scale, or does it?",
    statement=r"""Multiply the loss by 1,000. What happens to the steps of gradient descent, and to those of Adam?
For which gradients does Adam's $\varepsilon$ spoil the argument? Predict the first step of Adam, in units of the
learning rate, for gradients of 1, $10^{-3}$, $10^{-8}$ and $10^{-12}$ with $\varepsilon = 10^{-8}$ (the default of
PyTorch).

Then write the steps of Adam without an optimiser of PyTorch, and compute them: one row for each step, what is added to
the parameters.""",
    reference=reference,
    solution=adam_steps,
    explanation=r"Gradient descent makes steps a thousand times as long; Adam's do not change, as long as the "
    r"gradients are large against $\varepsilon$. The first step is $g / (|g| + \varepsilon)$: 1 for gradients "
    r"of 1 and $10^{-3}$ (nearly), one half where $|g| = \varepsilon$, and $10^{-4}$ for $10^{-12}$. A loss "
    r"scaled down far enough therefore stops the training: a possible reason for the paper's $\varepsilon = "
    r"10^{-9}$, and a trap with 16-bit numbers.",
    cases=(
        Case(name="six noisy steps", inputs=_noisy),
        Case(name="constant gradients as small as eps", inputs=_tiny),
    ),
    hints=r"""
At the first step $\hat m = g$ and $\hat v = g^2$.

The first step is $g / (|g| + \varepsilon)$: compare $|g|$ with $\varepsilon$, much larger, equal, much smaller.

Two running averages that start at zero, each divided by $1 - \beta^t$ when it is used (and kept as it was), $t$ counted
from 1; $\varepsilon$ is added to the root, after the correction.
""",
    forbids=("Adam", "AdamW", "NAdam", "RAdam", "Adamax"),
    difficulty=2,
    minutes=25,
    section="08-training",
)

exercise.mutations(r"""
no_averages: "m / (1 - beta1**t), v / (1 - beta2**t)" -> "gradient, gradient.square()"
    Right while the gradient stays the same: your step knows only the newest one. Adam remembers, by two running
    averages.
no_correction: "m / (1 - beta1**t), v / (1 - beta2**t)" -> "m, v"
    Your first step has the wrong size: both averages start at zero and are too small at first, unequally so. What does
    dividing by $1 - \beta^t$ undo?
one_correction: "v / (1 - beta2**t)" -> "v"
    One of the two averages is corrected and the other is not, so their ratio is off most at the first step. Both
    started at zero.
corrected_average_kept: "m_hat, v_hat = " -> "m, v = m_hat, v_hat = "
    The first step is right, and then the averages run away: you keep the corrected average and correct it again. $\hat
    m$ is used once and thrown away.
eps_inside_root: "(v_hat.sqrt() + eps)" -> "(v_hat + eps).sqrt()"
    Right for ordinary gradients; for tiny ones your steps are far too short. Is eps added to the root, or under it?
no_eps: " + eps" -> ""
    Right for ordinary gradients. A gradient as small as eps should give half a step, and gives a whole one: eps has no
    effect.
uphill: "-rate" -> "rate"
    Your steps climb. What is added to a parameter goes against its gradient.
no_root: ".sqrt()" -> ""
    You divide by the mean square itself. It has the square of the gradient's unit: what brings it back?
no_momentum: "-rate * m_hat" -> "-rate * gradient"
    Above the line stands the newest gradient; there belongs its running average, corrected.
""")


@exercise.must_hold("Without eps, Adam's steps do not change when all gradients are multiplied by the same number.")
def scale_matters(trial: Trial) -> str | None:
    gradients, rate, beta1, beta2, _ = trial.inputs
    once, more = (trial.run(factor * gradients, rate, beta1, beta2, 0.0) for factor in (1.0, 1000.0))
    difference = (once - more).abs().max().item() / rate
    return None if difference < 1e-6 else f"A thousandfold loss moved your steps by up to {difference:.2g} of the rate."


@exercise.must_hold(
    "After one gradient the two averages, corrected, are that gradient and its square: their quotient is a sign, and "
    "the step goes against it."
)
def first_step(trial: Trial) -> str | None:
    gradients, rate, beta1, beta2, _ = trial.inputs
    steps = trial.run(gradients[:1], rate, beta1, beta2, 0.0)[0] / rate
    if (steps + gradients[0].sign()).abs().max() < 1e-6:
        return None
    return f"Without eps your first step for a gradient of {gradients[0, 0]:.3g} is {steps[0]:.3g} times the rate."
