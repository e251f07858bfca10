"""Answers to the exercises on training that stand in no list: right ones in other styles, and stray mistakes."""

import math

import numpy as np
import torch
from einops import einsum
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_


def narrowed(token_ids):
    """Slices by another name."""
    length = token_ids.shape[1] - 1
    return token_ids.narrow(1, 0, length), token_ids.narrow(1, 1, length)


def token_by_token(token_ids):
    """Python lists, and a tensor in the end."""
    rows = token_ids.tolist()
    return [torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])]


def target_of_the_token_before(token_ids):
    """Targets that lag by one."""
    return token_ids[:, :-1], token_ids[:, :-1].roll(1, dims=1)


def without_bos_of_the_last(token_ids):
    """Drops the start mark and shifts the wrong way."""
    return token_ids[:, 1:], token_ids[:, :-1].roll(1, dims=1)


def loss_of_selected_places(logits, targets, pad_id):
    """Select first, then compute."""
    real = targets != pad_id
    chosen, right = logits[real], targets[real]
    return -chosen.log_softmax(-1)[torch.arange(len(right)), right].mean()


def loss_by_where(logits, targets, pad_id):
    """Zero where padding is."""
    surprise = -torch.gather(torch.log_softmax(logits, 2), 2, targets.unsqueeze(2)).squeeze(2)
    return torch.where(targets == pad_id, 0.0, surprise).sum().div((targets != pad_id).sum())


def bits_over_all_places(logits, targets, pad_id):
    """Two mistakes at once: bits, and padding in the denominator."""
    return loss_by_where(logits, targets, pad_id) / math.log(2) * (targets != pad_id).float().mean()


def squared_pads(logits, targets, pad_id):
    """A penalty on the logits at padding."""
    padding = logits[targets == pad_id].masked_fill(logits[targets == pad_id].isinf(), 0.0)
    return loss_by_where(logits, targets, pad_id) + padding.square().mean()


def penalised_logits(logits, targets, pad_id):
    """A penalty on the size of the logits at real places."""
    real = logits[targets != pad_id]
    return loss_by_where(logits, targets, pad_id) + real.masked_fill(real.isinf(), 0.0).square().mean()


def surprise_at_the_likeliest(logits, targets, pad_id):
    """Never looks at what the target is."""
    return -logits.log_softmax(-1).amax(-1)[targets != pad_id].mean()


def smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing):
    """A weighted sum of one-hot and uniform."""
    one_hot = functional.one_hot(targets, vocab_size).float()
    others = (1 - one_hot) * (torch.arange(vocab_size) != pad_id)
    shares = (1 - smoothing) * one_hot + smoothing / (vocab_size - 2) * others
    return shares * (targets != pad_id)[:, None]


def smoothing_as_annotated(targets, vocab_size, pad_id, smoothing):
    """Scatter and index_fill, as is often done."""
    shares = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2))
    shares.scatter_(1, targets.unsqueeze(1), 1.0 - smoothing)
    shares[:, pad_id] = 0
    return shares.index_fill(0, torch.nonzero(targets == pad_id).flatten(), 0.0)


def shares_by_rank(targets, vocab_size, pad_id, smoothing):
    """Gives one wrong word twice the share of another."""
    shares = smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing)
    ramp = torch.where(shares < 0.5, torch.linspace(0.5, 1.5, vocab_size), 1.0)
    low = (shares * ramp).masked_fill(shares >= 0.5, 0.0)
    fixed = low / low.sum(1, keepdim=True).clamp(min=1e-9) * smoothing + shares.masked_fill(shares < 0.5, 0.0)
    return fixed * (targets != pad_id)[:, None]


def halved(targets, vocab_size, pad_id, smoothing):
    """Everything is half of what it should be."""
    return smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing) / 2


def a_little_for_padding(targets, vocab_size, pad_id, smoothing):
    """Padding gets a thousandth."""
    shares = smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing)
    shares[:, pad_id] += 1e-3
    return shares


def rate_by_branches(step, d_model, warmup, factor):
    """An if instead of a minimum."""
    peak = factor / math.sqrt(d_model * warmup)
    step = step or 1
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)


def rate_by_torch(step, d_model, warmup, factor):
    """Tensors, in double precision."""
    step = torch.tensor(max(step, 1), dtype=torch.float64)
    return factor * d_model**-0.5 * torch.minimum(step.rsqrt(), step * warmup**-1.5)


def quadratic_warmup(step, d_model, warmup, factor):
    """Rises with the square of the step."""
    step = max(step, 1)
    return factor * d_model**-0.5 * min(step**-0.5, step**2 * warmup**-2.5)


def decays_with_the_cube_root(step, d_model, warmup, factor):
    """Falls too slowly."""
    rate = rate_by_branches(min(step, warmup), d_model, warmup, factor)
    return rate if step < warmup else rate * (warmup / step) ** (1 / 3)


def a_tenth_too_much_afterwards(step, d_model, warmup, factor):
    """Jumps when the warm-up ends."""
    return rate_by_branches(step, d_model, warmup, factor) * (1.1 if step >= warmup else 1)


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


def n_real_in(parts):
    return sum(int((targets != 0).sum()) for _, targets in parts)


def accumulated(output_weight, parts, share, **options):
    """The sum of the parts' gradients, each times what ``share`` gives for its targets."""
    weight = output_weight.detach().requires_grad_()
    for hidden, targets in parts:
        loss = functional.cross_entropy(hidden @ weight.T, targets, **({"ignore_index": 0} | options))
        (loss * share(targets)).backward()
    return weight.grad


def accumulated_by_hand(output_weight, parts):
    n_real = n_real_in(parts)
    total = torch.zeros_like(output_weight)
    for hidden, targets in parts:
        hidden, targets = hidden[targets != 0], targets[targets != 0]
        error = (hidden @ output_weight.T).softmax(dim=1) - functional.one_hot(targets, len(output_weight))
        total += einsum(error, hidden, "positions vocab_size, positions d_model -> vocab_size d_model")
    return total / n_real


def accumulated_by_shares(output_weight, parts):
    n_real = n_real_in(parts)
    return accumulated(output_weight, parts, lambda targets: (targets != 0).sum() / n_real)


def padding_in_a_mean_of_means(output_weight, parts):
    return accumulated(output_weight, parts, lambda targets: 1 / len(parts), ignore_index=-1)


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
    m, v, steps = torch.zeros_like(gradients[0]), torch.zeros_like(gradients[0]), []
    for gradient in gradients:
        m, v = m.lerp(gradient, 1 - beta1), v.lerp(gradient**2, 1 - beta2)
        steps.append(rate * m / (v.sqrt() + eps))
    return torch.stack(steps)


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


def step_by_hand(model, optimizer, loss, batch, max_norm):
    """Clears and clips without torch's helpers."""
    model.train(True)
    for parameter in model.parameters():
        parameter.grad = None
    value = loss(model, batch)
    value.backward()
    norm = sum(float(parameter.grad.square().sum()) for parameter in model.parameters()) ** 0.5
    if norm > max_norm:
        for parameter in model.parameters():
            parameter.grad.mul_(max_norm / norm)
    optimizer.step()
    return float(value.detach())


def step_with_a_detached_loss(model, optimizer, loss, batch, max_norm):
    """Returns a tensor without axes that has left the graph."""
    model.train()
    optimizer.zero_grad(set_to_none=False)
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.detach()


def never_clipped_nor_cleared(model, optimizer, loss, batch, max_norm):
    """Two mistakes at once."""
    model.train()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
    return value.item()


def cleared_never_and_evaluated(model, optimizer, loss, batch, max_norm):
    """In evaluation mode, and gradients add up."""
    model.eval()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.item()


def twice_the_work(model, optimizer, loss, batch, max_norm):
    """Two steps, each with a loss of its own."""
    step_by_hand(model, optimizer, loss, batch, max_norm)
    return step_by_hand(model, optimizer, loss, batch, max_norm)


def steps_before_and_after(model, optimizer, loss, batch, max_norm):
    """Steps with what is there, then with what has come."""
    model.train()
    value = loss(model, batch)
    optimizer.step()
    optimizer.zero_grad()
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.item()


def validation_by_decorator(model, batches, loss):
    """A function within a function, without gradients."""

    @torch.no_grad()
    def measure():
        total = torch.zeros(())
        n_tokens = 0
        for batch in batches:
            value, n_here = loss(model, batch)
            total, n_tokens = total + value, n_tokens + n_here
        return (total / n_tokens).item()

    before = model.training
    model.train(False)
    try:
        return measure()
    finally:
        model.train(before)


def validation_in_a_list(model, batches, loss):
    """Inference mode and a list of pairs."""
    before = model.training
    with torch.inference_mode():
        pairs = [loss(model.eval(), batch) for batch in batches]
    if before:
        model.train()
    return float(sum(value for value, _ in pairs)) / sum(n_tokens for _, n_tokens in pairs)


def validation_with_noise(model, batches, loss):
    """Moves the weights a little between the batches."""
    before = model.training
    model.eval()
    with torch.no_grad():
        total, n_tokens = 0.0, 0
        for batch in batches:
            value, n_here = loss(model, batch)
            total, n_tokens = total + value.item(), n_tokens + n_here
            for parameter in model.parameters():
                parameter.mul_(0.9)
    model.train(before)
    return total / n_tokens


def validation_of_means_in_training(model, batches, loss):
    """Two mistakes at once: the mode, and a mean of means."""
    model.train()
    with torch.no_grad():
        pairs = [loss(model, batch) for batch in batches]
    return sum(value.item() / n_tokens for value, n_tokens in pairs) / len(pairs)


def validation_of_two_batches(model, batches, loss):
    """Stops after two."""
    before = model.training
    model.eval()
    with torch.no_grad():
        pairs = [loss(model, batch) for _, batch in zip(range(2), batches, strict=False)]
    model.train(before)
    return sum(value.item() for value, _ in pairs) / sum(n_tokens for _, n_tokens in pairs)


def distillation_by_kl_div(student_logits, teacher_logits, temperature):
    """The function of torch, with a target of probabilities."""
    student = functional.log_softmax(student_logits / temperature, dim=-1)
    with torch.no_grad():
        teacher = functional.softmax(teacher_logits / temperature, dim=-1)
    return functional.kl_div(student, teacher, reduction="none").sum(-1).mean() * temperature * temperature


def distillation_by_entropies(student_logits, teacher_logits, temperature):
    """Cross-entropy less the teacher's entropy."""
    q = (student_logits / temperature).log_softmax(-1)
    p = (teacher_logits / temperature).log_softmax(-1).detach()
    return temperature**2 * ((p.exp() * p).sum(-1) - (p.exp() * q).sum(-1)).mean()


def teacher_learns_a_little(student_logits, teacher_logits, temperature):
    """A tenth of the gradient reaches the teacher, and the loss is halved."""
    leaking = 0.1 * teacher_logits + 0.9 * teacher_logits.detach()
    return distillation_with_the_teacher(student_logits, leaking, temperature) / 2


def distillation_with_the_teacher(student_logits, teacher_logits, temperature):
    """Both get a gradient."""
    q, p = (student_logits / temperature).log_softmax(-1), (teacher_logits / temperature).log_softmax(-1)
    return temperature**2 * (p.exp() * (p - q)).sum(-1).mean()


def half_of_it_for_nobody(student_logits, teacher_logits, temperature):
    """Half of the loss, and no gradient."""
    return distillation_by_entropies(student_logits, teacher_logits, temperature).detach() / 2


def with_a_constant(student_logits, teacher_logits, temperature):
    """One more than it should be."""
    return distillation_by_entropies(student_logits, teacher_logits, temperature) + 1


def with_a_penalty(student_logits, teacher_logits, temperature):
    """Pulls the student's logits towards the teacher's, level and all."""
    pull = (student_logits - teacher_logits.detach()).square().mean()
    return distillation_by_entropies(student_logits, teacher_logits, temperature) + pull


RIGHT = {
    "training.teacher_forcing": (narrowed, token_by_token),
    "training.masked_loss": (loss_of_selected_places, loss_by_where),
    "training.label_smoothing": (smoothing_by_one_hot, smoothing_as_annotated),
    "training.warmup_rate": (rate_by_branches, rate_by_torch),
    "training.sentence_perplexity": (perplexity_by_a_loop, perplexity_as_tensors),
    "training.smoothed_gradient": (gradient_by_a_loop, gradient_by_one_hot),
    "training.accumulated_gradient": (accumulated_by_hand, accumulated_by_shares),
    "training.smoothing_for_floor": (smoothing_by_the_package, smoothing_by_secants),
    "training.adam_steps": (adam_at_once, adam_by_lerp),
    "training.plan_batches": (planned_with_numpy, planned_from_the_longest),
    "training.training_step": (step_by_hand, step_with_a_detached_loss),
    "training.validation_loss": (validation_by_decorator, validation_in_a_list),
    "training.distillation_loss": (distillation_by_kl_div, distillation_by_entropies),
}
STRAY = {
    "training.teacher_forcing": (
        (target_of_the_token_before, "target_comes_next"),
        (without_bos_of_the_last, "begins_with_bos"),
    ),
    "training.masked_loss": (
        (bits_over_all_places, "uniform_guess"),
        (squared_pads, "padding_does_not_matter"),
        (penalised_logits, "ignores_a_constant"),
        (surprise_at_the_likeliest, "asks_for_the_target"),
    ),
    "training.label_smoothing": (
        (shares_by_rank, "equal_shares"),
        (halved, "rows_sum_to_one"),
        (a_little_for_padding, "padding_gets_nothing"),
    ),
    "training.warmup_rate": (
        (quadratic_warmup, "rises_straight"),
        (decays_with_the_cube_root, "falls_with_the_root"),
        (a_tenth_too_much_afterwards, "peaks_at_warmup"),
    ),
    "training.sentence_perplexity": ((off_by_one_mean, "perplexity_is_exp_of_loss"),),
    "training.smoothed_gradient": ((wanted_sums_to_less, "rows_sum_to_zero"),),
    "training.accumulated_gradient": ((padding_in_a_mean_of_means, "cut_matters"),),
    "training.smoothing_for_floor": ((smoothing_out_of_range, "another_floor"),),
    "training.adam_steps": ((plain_descent, "scale_matters"), (uncorrected_and_uphill, "first_step")),
    "training.plan_batches": ((half_of_them, "plan_is_not_right"),),
    "training.training_step": (
        (never_clipped_nor_cleared, "step_has_a_limit"),
        (cleared_never_and_evaluated, "training_mode"),
        (twice_the_work, "one_loss_a_step"),
        (steps_before_and_after, "one_step_a_batch"),
    ),
    "training.validation_loss": (
        (validation_with_noise, "weights_stay"),
        (validation_of_means_in_training, "evaluation_mode"),
        (validation_of_two_batches, "each_batch_once"),
    ),
    "training.distillation_loss": (
        (teacher_learns_a_little, "teacher_stays"),
        (half_of_it_for_nobody, "student_learns"),
        (with_a_constant, "zero_for_equals"),
        (with_a_penalty, "ignores_a_constant"),
    ),
}
