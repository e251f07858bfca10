"""Answers to chapter 8's own exercises: right ones in other styles, and mistakes that stand in no list."""

import math

import numpy as np
import torch
from einops import einsum
from torch.nn import functional

from ttutor.exercises.training import accumulated_gradient, adam_steps_mistakes

# Probability, loss and perplexity of a sentence


def perplexity_by_a_loop(probabilities):
    product, total = 1.0, 0.0
    for probability in probabilities.tolist():
        product *= probability
        total -= math.log(probability)
    return product, total / len(probabilities), math.exp(total / len(probabilities))


def perplexity_as_tensors(probabilities):
    log = probabilities.log()
    return log.sum().exp(), -log.mean(), torch.exp(-log.mean())


def off_by_one_mean(probabilities):
    loss = -probabilities.log().sum().item() / (len(probabilities) - 1)
    return probabilities.prod().item(), loss, 2**loss


# The gradient of a smoothed loss


def gradient_by_a_loop(logits, targets, epsilon):
    rows = []
    for row, target in zip(logits, targets, strict=True):
        powers = (row - row.max()).exp()
        row = powers / powers.sum() - epsilon / len(row)
        row[target] -= 1 - epsilon
        rows.append(row / len(targets))
    return torch.stack(rows)


def gradient_by_one_hot(logits, targets, epsilon):
    n_positions, vocab_size = logits.shape
    wanted = torch.lerp(
        torch.eye(vocab_size, dtype=logits.dtype)[targets], torch.tensor(1 / vocab_size).double(), epsilon
    )
    return torch.softmax(logits, dim=1).sub(wanted).div(n_positions)


def wanted_sums_to_less(logits, targets, epsilon):
    wanted = functional.one_hot(targets, logits.shape[1]) * (1 - epsilon)
    return (logits.softmax(dim=1) - wanted) / logits.numel()


# Gradients added up


def accumulated_by_hand(output_weight, parts):
    n_real = accumulated_gradient._n_real(parts)
    total = torch.zeros_like(output_weight)
    for hidden, targets in parts:
        hidden, targets = hidden[targets != 0], targets[targets != 0]
        error = (hidden @ output_weight.T).softmax(dim=1) - functional.one_hot(targets, len(output_weight))
        total += einsum(error, hidden, "positions vocab_size, positions d_model -> vocab_size d_model")
    return total / n_real


def accumulated_by_shares(output_weight, parts):
    n_real = accumulated_gradient._n_real(parts)
    return accumulated_gradient._gradient(output_weight, parts, lambda targets: (targets != 0).sum() / n_real)


def padding_in_a_mean_of_means(output_weight, parts):
    return accumulated_gradient._gradient(output_weight, parts, lambda targets: 1 / len(parts), ignore_index=-1)


# How much smoothing


def smoothing_by_the_package(vocab_size, floor):
    from ttutor.training.loss import smoothing_floor

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if smoothing_floor(vocab_size, middle) < floor:
            low = middle
        else:
            high = middle
    return low


def smoothing_by_secants(vocab_size, floor):
    def excess(epsilon):
        right, other = 1 - epsilon + epsilon / vocab_size, epsilon / vocab_size
        return -right * math.log(right) - (vocab_size - 1) * other * math.log(other) - floor

    one, two = 0.05, 0.1
    for _ in range(50):
        if abs(excess(two)) < 1e-12 or excess(one) == excess(two):
            break
        one, two = two, two - excess(two) * (two - one) / (excess(two) - excess(one))
    return torch.tensor(two, dtype=torch.float64)


def smoothing_out_of_range(vocab_size, floor):
    return floor / 2 + 1


# Adam


def adam_at_once(gradients, rate, beta1, beta2, eps):
    """Both averages as sums with the powers of beta as weights."""
    age = torch.arange(len(gradients))[:, None] - torch.arange(len(gradients))

    def average(numbers, beta):
        shares = torch.where(age >= 0, torch.tensor(beta, dtype=numbers.dtype) ** age.clamp(min=0), 0.0)
        return shares @ numbers / shares.sum(dim=1, keepdim=True)

    return -rate * average(gradients, beta1) / (average(gradients.square(), beta2).sqrt() + eps)


def adam_by_lerp(gradients, rate, beta1, beta2, eps):
    m, v = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0])
    moves = torch.empty_like(gradients)
    for t, gradient in enumerate(gradients):
        m.lerp_(gradient, 1 - beta1)
        v.lerp_(gradient**2, 1 - beta2)
        moves[t] = -rate * (m / (1 - beta1 ** (t + 1))) / (torch.sqrt(v / (1 - beta2 ** (t + 1))) + eps)
    return moves


def plain_descent(gradients, rate, beta1, beta2, eps):
    return -rate * gradients


def uncorrected_and_uphill(gradients, rate, beta1, beta2, eps):
    return -adam_steps_mistakes.no_correction(gradients, rate, beta1, beta2, eps)


# Batches


def planned_with_numpy(lengths, budget):
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * lengths[order[end]] <= budget:
            end += 1
        batches.append(order[start:end])
        start = end
    return batches


def planned_from_the_longest(lengths, budget):
    left, batches = sorted(range(len(lengths)), key=lengths.__getitem__), []
    while left:
        n_sentences = budget // lengths[left[-1]]
        batches.append(tuple(left[-n_sentences:]))
        left = left[:-n_sentences]
    return tuple(batches)


def half_of_them(lengths, budget):
    return [[index] for index in range(0, len(lengths), 2)]


RIGHT = {
    "training.sentence_perplexity": (perplexity_by_a_loop, perplexity_as_tensors),
    "training.smoothed_gradient": (gradient_by_a_loop, gradient_by_one_hot),
    "training.accumulated_gradient": (accumulated_by_hand, accumulated_by_shares),
    "training.smoothing_for_floor": (smoothing_by_the_package, smoothing_by_secants),
    "training.adam_steps": (adam_at_once, adam_by_lerp),
    "training.plan_batches": (planned_with_numpy, planned_from_the_longest),
}
STRAY = {
    "training.sentence_perplexity": ((off_by_one_mean, "perplexity_is_exp_of_loss"),),
    "training.smoothed_gradient": ((wanted_sums_to_less, "rows_sum_to_zero"),),
    "training.accumulated_gradient": ((padding_in_a_mean_of_means, "cut_matters"),),
    "training.smoothing_for_floor": ((smoothing_out_of_range, "another_floor"),),
    "training.adam_steps": ((plain_descent, "scale_matters"), (uncorrected_and_uphill, "differs")),
    "training.plan_batches": ((half_of_them, "plan_is_not_right"),),
}
