"""Answers to the exercises on steps and measurements of a training: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_


def step_that_clears_at_the_end(model, optimizer, loss, batch, max_norm):
    """Leaves no gradients behind instead of expecting none."""
    value = loss(model.train(), batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return value.item()


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


def distillation_by_loops(student_logits, teacher_logits, temperature):
    """Position by position."""
    losses = []
    for student, teacher in zip(student_logits.flatten(0, 1), teacher_logits.detach().flatten(0, 1), strict=True):
        student, teacher = student / temperature, teacher / temperature
        q, p = student - student.logsumexp(0), teacher - teacher.logsumexp(0)
        losses.append(torch.dot(p.exp(), p - q))
    return temperature**2 * torch.stack(losses).mean()


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
    "training.training_step": (step_that_clears_at_the_end, step_by_hand, step_with_a_detached_loss),
    "training.validation_loss": (validation_by_decorator, validation_in_a_list),
    "training.distillation_loss": (distillation_by_kl_div, distillation_by_loops, distillation_by_entropies),
}

STRAY = {
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
