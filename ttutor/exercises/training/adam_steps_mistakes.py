"""Wrong answers to the exercise on Adam's steps."""

import torch


def adam(gradients, rate, beta1, beta2, eps):
    """Right: what some mistakes have in their middle."""
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps) for t, m, v, _ in averages])


def _averages(gradients, beta1, beta2):
    """Yield the step's number, both running averages and the gradient."""
    m = v = torch.zeros_like(gradients[0])
    for t, gradient in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient.square()
        yield t, m, v, gradient


def no_averages(gradients, rate, beta1, beta2, eps):
    return -rate * gradients / (gradients.abs() + eps)


def betas_exchanged(gradients, rate, beta1, beta2, eps):
    return adam(gradients, rate, beta2, beta1, eps)


def no_correction(gradients, rate, beta1, beta2, eps):
    return torch.stack([-rate * m / (v.sqrt() + eps) for _, m, v, _ in _averages(gradients, beta1, beta2)])


def only_the_first_corrected(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / (1 - beta1**t) / (v.sqrt() + eps) for t, m, v, _ in averages])


def only_the_second_corrected(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / ((v / (1 - beta2**t)).sqrt() + eps) for t, m, v, _ in averages])


def always_the_first_correction(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / (1 - beta1) / ((v / (1 - beta2)).sqrt() + eps) for _, m, v, _ in averages])


def steps_from_zero(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack(
        [
            -rate * (m / (1 - beta1 ** (t - 1) + 1e-12)) / ((v / (1 - beta2 ** (t - 1) + 1e-12)).sqrt() + eps)
            for t, m, v, _ in averages
        ]
    )


def corrected_in_place(gradients, rate, beta1, beta2, eps):
    """The corrected average is kept and averaged on."""
    m, v, steps = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0]), []
    for t, gradient in enumerate(gradients, start=1):
        m = (beta1 * m + (1 - beta1) * gradient) / (1 - beta1**t)
        v = (beta2 * v + (1 - beta2) * gradient.square()) / (1 - beta2**t)
        steps.append(-rate * m / (v.sqrt() + eps))
    return torch.stack(steps)


def eps_inside_the_root(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / (1 - beta1**t) / (v / (1 - beta2**t) + eps).sqrt() for t, m, v, _ in averages])


def eps_before_the_correction(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack(
        [-rate * m / (1 - beta1**t) * (1 - beta2**t) ** 0.5 / (v.sqrt() + eps) for t, m, v, _ in averages]
    )


def no_eps(gradients, rate, beta1, beta2, eps):
    return adam(gradients, rate, beta1, beta2, 0.0)


def uphill(gradients, rate, beta1, beta2, eps):
    return -adam(gradients, rate, beta1, beta2, eps)


def no_root(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * m / (1 - beta1**t) / (v / (1 - beta2**t) + eps) for t, m, v, _ in averages])


def sums_for_averages(gradients, rate, beta1, beta2, eps):
    m = v = torch.zeros_like(gradients[0])
    steps = []
    for t, gradient in enumerate(gradients, start=1):
        m, v = beta1 * m + gradient, beta2 * v + gradient.square()
        steps.append(-rate * m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps))
    return torch.stack(steps)


def gradient_over_root(gradients, rate, beta1, beta2, eps):
    averages = _averages(gradients, beta1, beta2)
    return torch.stack([-rate * gradient / ((v / (1 - beta2**t)).sqrt() + eps) for t, _, v, gradient in averages])


def places_for_steps(gradients, rate, beta1, beta2, eps):
    return adam(gradients, rate, beta1, beta2, eps).cumsum(dim=0)
