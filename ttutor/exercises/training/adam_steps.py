"""Exercise: the steps of Adam."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial
from ttutor.exercises.training import adam_steps_mistakes as wrong


def adam_steps(
    gradients: Float[Tensor, "steps parameters"], rate: float, beta1: float, beta2: float, eps: float
) -> Float[Tensor, "steps parameters"]:
    """What Adam adds to each parameter at each step, from the gradients of all steps."""
    ...


def solution(
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


def _scale_matters(trial: Trial) -> str | None:
    gradients, rate, beta1, beta2, _ = trial.inputs
    once, more = (trial.run(factor * gradients, rate, beta1, beta2, 0.0) for factor in (1.0, 1000.0))
    difference = (once - more).abs().max().item() / rate
    return None if difference < 1e-6 else f"A thousandfold loss moved your steps by up to {difference:.2g} of the rate."


def _first_step(trial: Trial) -> str | None:
    """After one gradient the corrected averages are that gradient and its square."""
    gradients, rate, beta1, beta2, _ = trial.inputs
    steps = trial.run(gradients[:1], rate, beta1, beta2, 0.0)[0] / rate
    if (steps + gradients[0].sign()).abs().max() < 1e-6:
        return None
    return f"Without eps your first step for a gradient of {gradients[0, 0]:.3g} is {steps[0]:.3g} times the rate."


def _noisy(random):
    return 3 * torch.randn(6, 4, generator=random, dtype=torch.float64), 0.01, 0.9, 0.98, 1e-8


def _tiny(random):
    """The same gradient at every step, about as small as eps."""
    sizes = torch.tensor([1e-8, -1e-7, 3e-9], dtype=torch.float64) * (1 + torch.rand(3, generator=random))
    return sizes.expand(5, 3).clone(), 0.5, 0.8, 0.95, 1e-8


EXERCISES = (
    Exercise(
        id="training.adam_steps",
        title="Adam does not mind the scale, or does it?",
        statement=r"""Multiply the loss by 1,000. What happens to the steps of gradient descent, and to those of Adam?
For which gradients does Adam's $\varepsilon$ spoil the argument? Predict the first step of Adam, in units of the
learning rate, for gradients of 1, $10^{-3}$, $10^{-8}$ and $10^{-12}$ with $\varepsilon = 10^{-8}$ (the default of
PyTorch).

Then write the steps of Adam without an optimiser of PyTorch, and compute them: one row for each step, what is added to
the parameters.""",
        stub=adam_steps,
        reference=reference,
        solution=solution,
        explanation=r"Gradient descent makes steps a thousand times as long; Adam's do not change, as long as the "
        r"gradients are large against $\varepsilon$. The first step is $g / (|g| + \varepsilon)$: 1 for gradients "
        r"of 1 and $10^{-3}$ (nearly), one half where $|g| = \varepsilon$, and $10^{-4}$ for $10^{-12}$. A loss "
        r"scaled down far enough therefore stops the training: a possible reason for the paper's $\varepsilon = "
        r"10^{-9}$, and a trap with 16-bit numbers.",
        cases=(
            Case(name="six noisy steps", inputs=_noisy),
            Case(name="constant gradients as small as eps", inputs=_tiny),
        ),
        hints=(
            r"At the first step $\hat m = g$ and $\hat v = g^2$.",
            (
                r"The first step is $g / (|g| + \varepsilon)$: compare $|g|$ with $\varepsilon$, much larger, equal, "
                "much smaller."
            ),
            (
                r"Two running averages that start at zero, each divided by $1 - \beta^t$ when it is used (and kept as "
                r"it was), $t$ counted from 1; $\varepsilon$ is added to the root, after the correction."
            ),
        ),
        mistakes=(
            Mistake(
                id="no_averages",
                says="Right while the gradient stays the same: your step knows only the newest one. Adam remembers, by "
                "two running averages.",
                answers=(wrong.no_averages,),
            ),
            Mistake(
                id="betas_exchanged",
                says="Right while the gradient stays the same. The two betas are exchanged: the first belongs to the "
                "gradient, the second to its square.",
                answers=(wrong.betas_exchanged,),
            ),
            Mistake(
                id="no_correction",
                says="Your first step has the wrong size: both averages start at zero and are too small at first, "
                "unequally so. What does dividing by $1 - \\beta^t$ undo?",
                answers=(wrong.no_correction,),
            ),
            Mistake(
                id="one_correction",
                says="One of the two averages is corrected and the other is not, so their ratio is off most at the "
                "first step. Both started at zero.",
                answers=(wrong.only_the_first_corrected, wrong.only_the_second_corrected),
            ),
            Mistake(
                id="correction_of_first_step",
                says="The first step is right, later ones grow: you always divide by $1 - \\beta$. The correction "
                "fades, since the power is $\\beta^t$.",
                answers=(wrong.always_the_first_correction,),
            ),
            Mistake(
                id="counts_from_zero",
                says="Your steps seem to count from 0, where the correction divides by $1 - \\beta^0 = 0$. The first "
                "step is $t = 1$.",
                answers=(wrong.steps_from_zero,),
            ),
            Mistake(
                id="corrected_average_kept",
                says="The first step is right, and then the averages run away: you keep the corrected average and "
                "correct it again. $\\hat m$ is used once and thrown away.",
                answers=(wrong.corrected_in_place,),
            ),
            Mistake(
                id="eps_inside_root",
                says="Right for ordinary gradients; for tiny ones your steps are far too short. Is eps added to the "
                "root, or under it?",
                answers=(wrong.eps_inside_the_root,),
            ),
            Mistake(
                id="eps_before_correction",
                says="Right for ordinary gradients. For tiny ones eps weighs too much at first: you add it to the root "
                "before the correction and so enlarge it.",
                answers=(wrong.eps_before_the_correction,),
            ),
            Mistake(
                id="no_eps",
                says="Right for ordinary gradients. A gradient as small as eps should give half a step, and gives a "
                "whole one: eps has no effect.",
                answers=(wrong.no_eps,),
            ),
            Mistake(
                id="uphill",
                says="Your steps climb. What is added to a parameter goes against its gradient.",
                answers=(wrong.uphill,),
            ),
            Mistake(
                id="no_root",
                says="You divide by the mean square itself. It has the square of the gradient's unit: what brings it "
                "back?",
                answers=(wrong.no_root,),
            ),
            Mistake(
                id="not_an_average",
                says="You add the new gradient in full. A running average gives it the share $1 - \\beta$.",
                answers=(wrong.sums_for_averages,),
            ),
            Mistake(
                id="no_momentum",
                says="Above the line stands the newest gradient; there belongs its running average, corrected.",
                answers=(wrong.gradient_over_root,),
            ),
            Mistake(
                id="places",
                says="Your rows are where the parameters are; asked for is what each step adds.",
                answers=(wrong.places_for_steps,),
            ),
        ),
        properties=(
            Property(
                id="scale_matters",
                says="Without eps, Adam's steps do not change when all gradients are multiplied by the same number.",
                broken=_scale_matters,
            ),
            Property(
                id="first_step",
                says="After one gradient the two averages, corrected, are that gradient and its square: their quotient "
                "is a sign, and the step goes against it.",
                broken=_first_step,
            ),
        ),
        forbids=("Adam", "AdamW", "NAdam", "RAdam", "Adamax"),
        difficulty=2,
        minutes=25,
        section="08-training",
    ),
)
