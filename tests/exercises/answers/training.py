"""Answers to the exercises of training that stand in no list: right ones in other styles, and stray mistakes."""

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


def loss_of_selected_places(logits, targets, pad_id):
    """Select first, then compute."""
    real = targets != pad_id
    chosen, right = logits[real], targets[real]
    return -chosen.log_softmax(-1)[torch.arange(len(right)), right].mean()


def loss_by_where(logits, targets, pad_id):
    """Zero where padding is."""
    surprise = -torch.gather(torch.log_softmax(logits, 2), 2, targets.unsqueeze(2)).squeeze(2)
    return torch.where(targets == pad_id, 0.0, surprise).sum().div((targets != pad_id).sum())


def smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing):
    """A weighted sum of one-hot and uniform."""
    one_hot = functional.one_hot(targets, vocab_size).float()
    others = (1 - one_hot) * (torch.arange(vocab_size) != pad_id)
    shares = (1 - smoothing) * one_hot + smoothing / (vocab_size - 2) * others
    return shares * (targets != pad_id)[:, None]


def rate_by_torch(step, d_model, warmup, factor):
    """Tensors, in double precision."""
    step = torch.tensor(max(step, 1), dtype=torch.float64)
    return factor * d_model**-0.5 * torch.minimum(step.rsqrt(), step * warmup**-1.5)


def perplexity_as_tensors(probabilities):
    log = probabilities.log()
    return log.sum().exp(), -log.mean(), torch.exp(-log.mean())


def gradient_by_a_loop(logits, targets, epsilon):
    rows = []
    for row, target in zip(logits, targets, strict=True):
        powers = (row - row.max()).exp()
        row = powers / powers.sum() - epsilon / len(row)
        row[target] -= 1 - epsilon
        rows.append(row / len(targets))
    return torch.stack(rows)


def n_real_in(parts):
    return sum(int((targets != 0).sum()) for _, targets in parts)


def accumulated_by_hand(output_weight, parts):
    n_real = n_real_in(parts)
    total = torch.zeros_like(output_weight)
    for hidden, targets in parts:
        hidden, targets = hidden[targets != 0], targets[targets != 0]
        error = (hidden @ output_weight.T).softmax(dim=1) - functional.one_hot(targets, len(output_weight))
        total += einsum(error, hidden, "positions vocab_size, positions d_model -> vocab_size d_model")
    return total / n_real


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


def adam_at_once(gradients, rate, beta1, beta2, eps):
    """Both averages as sums with the powers of beta as weights."""
    age = torch.arange(len(gradients))[:, None] - torch.arange(len(gradients))

    def average(numbers, beta):
        shares = torch.where(age >= 0, torch.tensor(beta, dtype=numbers.dtype) ** age.clamp(min=0), 0.0)
        return shares @ numbers / shares.sum(dim=1, keepdim=True)

    return -rate * average(gradients, beta1) / (average(gradients.square(), beta2).sqrt() + eps)


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


def all_logits_less_the_last(decoder, token_ids, pad_id):
    """The decoder reads everything; what it says at the end is left out."""
    return functional.cross_entropy(decoder(token_ids)[:, :-1].transpose(1, 2), token_ids[:, 1:], ignore_index=pad_id)


RIGHT = {
    "training.low_loss": (all_logits_less_the_last,),
    "training.teacher_forcing": (narrowed, token_by_token),
    "training.masked_loss": (loss_of_selected_places, loss_by_where),
    "training.label_smoothing": (smoothing_by_one_hot,),
    "training.warmup_rate": (rate_by_torch,),
    "training.sentence_perplexity": (perplexity_as_tensors,),
    "training.smoothed_gradient": (gradient_by_a_loop,),
    "training.accumulated_gradient": (accumulated_by_hand,),
    "training.smoothing_for_floor": (smoothing_by_secants,),
    "training.adam_steps": (adam_at_once,),
    "training.plan_batches": (planned_with_numpy, planned_from_the_longest),
    "training.training_step": (step_by_hand, step_with_a_detached_loss),
    "training.validation_loss": (validation_by_decorator, validation_in_a_list),
    "training.distillation_loss": (distillation_by_kl_div, distillation_by_entropies),
}
STRAY = {
    "training.low_loss": r"""
padding_does_not_count: "/ is_real.sum()" -> "/ wanted.shape[1]"
""",
    "training.teacher_forcing": r"""
target_comes_next: "token_ids[:, 1:]" -> "token_ids[:, :-1].roll(1, dims=1)"
begins_with_bos: "token_ids[:, :-1], token_ids[:, 1:]" -> "token_ids[:, 1:], token_ids[:, :-1].roll(1, dims=1)"
""",
    "training.masked_loss": r"""
uniform_guess: "/ real.sum()" -> "/ real.numel() / 0.6931471805599453"
padding_does_not_matter: "return" -> "return logits[~real].masked_fill(logits[~real].isinf(), 0.0).square().mean() +"
ignores_a_constant: "return" -> "return logits[real].masked_fill(logits[real].isinf(), 0.0).square().mean() +"
asks_for_the_target: "gather(-1, targets[..., None])[..., 0]" -> "amax(-1)"
""",
    "training.label_smoothing": r"""
equal_shares: "shares[targets == pad_id] = 0" ->
  "shares[targets == pad_id] = 0\n    low = shares * (shares < 0.5) * torch.linspace(0.5, 1.5, vocab_size)",
  "return shares" -> "return shares * (shares > 0.5) + smoothing * low / low.sum(1, True).clamp(1e-9)"
rows_sum_to_one: "return shares" -> "return shares / 2"
padding_gets_nothing: "return" -> "shares[:, pad_id] = 1e-3\n    return"
""",
    "training.warmup_rate": r"""
rises_straight: "step * warmup**-1.5" -> "step**2 * warmup**-2.5"
falls_with_the_root: "(step**-0.5" -> "(warmup ** (-1 / 6) * step ** (-1 / 3)"
peaks_at_warmup: "return" -> "return (1.1 if step >= warmup else 1) *"
""",
    "training.sentence_perplexity": r"""
perplexity_is_exp_of_loss: "mean().item()" -> "sum().item() / (len(probabilities) - 1)", "math.exp(loss)" -> "2**loss"
""",
    "training.smoothed_gradient": r"""
rows_sum_to_zero: "epsilon / vocab_size" -> "0.0", "/ n_positions" -> "/ logits.numel()"
""",
    "training.accumulated_gradient": r"""
cut_matters: 'ignore_index=0, reduction="sum"' -> "ignore_index=-1", "/ n_real" -> "/ len(parts)"
""",
    "training.smoothing_for_floor": r"""
another_floor: "return (low + high)" -> "return 2 + floor"
""",
    "training.adam_steps": r"""
scale_matters: "m_hat / (v_hat.sqrt() + eps)" -> "gradient"
first_step: "-rate * m_hat / (v_hat.sqrt() + eps)" -> "rate * m / (v.sqrt() + eps)"
""",
    "training.plan_batches": r"""
plan_is_not_right: "return [*batches, current]" -> "return [[index] for index in range(0, len(lengths), 2)]"
""",
    "training.training_step": r"""
training_mode: "model.train()" -> "model.eval()", "    optimizer.zero_grad()\n" -> ""
one_loss_a_step: "value = loss(model, batch)" -> "value = (loss(model, batch) + loss(model, batch)) / 2"
one_step_a_batch: "optimizer.zero_grad()\n    value = loss(model, batch)" ->
  "value = loss(model, batch)\n    optimizer.step()\n    optimizer.zero_grad()"
step_has_a_limit: "    optimizer.zero_grad()\n" -> "", "    clip_grad_norm_(model.parameters(), max_norm)\n" -> ""
""",
    "training.validation_loss": r"""
weights_stay: "n_tokens += n_here" ->
  "n_tokens += n_here\n            [parameter.mul_(0.9) for parameter in model.parameters()]"
evaluation_mode: "model.eval()" -> "model.train()", "value.item()" -> "value.item() / n_here", "n_tokens += n_here" ->
  "n_tokens += 1"
each_batch_once: "batch in batches" -> "_, batch in zip(range(2), batches)"
""",
    "training.distillation_loss": r"""
teacher_stays: "teacher_logits.detach()" -> "(0.1 * teacher_logits + 0.9 * teacher_logits.detach())", "return" ->
  "return 0.5 *"
student_learns: "divergence.mean()" -> "divergence.mean().detach() / 2"
zero_for_equals: "return" -> "return 1 +"
ignores_a_constant: "return" -> "return (student_logits - teacher_logits.detach()).square().mean() +"
""",
}
