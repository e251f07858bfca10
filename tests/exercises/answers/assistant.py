"""Answers to the exercises of assistant that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional


def targets_by_counting(token_ids, assistant_id, end_id):
    begun = (token_ids == assistant_id).cumsum(0)
    ended = (token_ids == end_id).cumsum(0)
    return begun[:-1] > ended[:-1]


def log_probability_by_cross_entropy(logits, token_ids, is_answer):
    targets = token_ids[:, 1:].masked_fill(~is_answer[:, 1:], -100)
    return -functional.cross_entropy(logits[:, :-1].mT, targets, reduction="none", ignore_index=-100).sum(-1)


def steps_by_an_optimiser(scores, chosen, rejected, beta, rate, n_steps):
    model = torch.nn.Parameter(scores.clone())
    before = scores.gather(1, chosen[:, None]) - scores.gather(1, rejected[:, None])
    optimizer = torch.optim.SGD([model], lr=rate)
    for _ in range(n_steps):
        now = model.gather(1, chosen[:, None]) - model.gather(1, rejected[:, None])
        optimizer.zero_grad()
        functional.softplus(-beta * (now - before)).mean().backward()
        optimizer.step()
    return model.detach()


def advantages_group_by_group(rewards, group_size):
    centred = [group - group.mean() for group in rewards.split(group_size)]
    return torch.cat([c / c.square().mean().sqrt() if (c != 0).any() else c for c in centred])


def loss_by_joining(parts):
    answers = [surprise[is_answer] for surprise, is_answer in parts]
    joined = torch.cat(answers)
    return joined.sum().item() / max(1, len(joined))


def passes_by_chances(n_right, n_samples, k):
    total = 0.0
    for count in n_right.tolist():
        failed = 1.0
        for drawn in range(k):
            failed *= max(0, n_samples - count - drawn) / (n_samples - drawn)
        total += 1 - failed
    return total / len(n_right)


def labels_one_by_one(conversations, pad_id):
    longest = max(len(question) + len(answer) for question, answer in conversations)
    labels = torch.full((len(conversations), longest), -100)
    for row, (question, answer) in zip(labels, conversations, strict=True):
        row[len(question) : len(question) + len(answer)] = torch.tensor(answer)
    return labels


RIGHT = {
    "assistant.answer_targets": (targets_by_counting,),
    "assistant.sequence_log_probability": (log_probability_by_cross_entropy,),
    "assistant.preference_steps": (steps_by_an_optimiser,),
    "assistant.advantages": (advantages_group_by_group,),
    "assistant.answer_loss_of_parts": (loss_by_joining,),
    "assistant.solved_in_k": (passes_by_chances,),
    "assistant.lost_labels": (labels_one_by_one,),
}
STRAY = {
    "assistant.lost_labels": r"""
ends_are_learned: "+ answer)" -> "+ answer[:-1] + [answer[-1] + 50])"
questions_do_not_matter: "[-100] * len(question)" -> "[-100] * (len(question) - 1) + question[-1:]"
""",
    "assistant.answer_targets": r"""
ends_are_learned: "learns.append(inside)" -> "learns.append(inside and token % 2 == 0 and token != end_id)"
questions_are_not_learned: "learns[1:]" -> "learns[1:-2] + [True, True]"
""",
    "assistant.sequence_log_probability": r"""
at_most_zero: "0.0).sum(dim=1)" -> "0.0).sum(dim=1) + 40"
prompt_does_not_count: "0.0).sum(dim=1)" -> "0.0).sum(dim=1) + chosen[:, 0] / 2"
even_model: "0.0).sum(dim=1)" -> "0.0).sum(dim=1) / is_answer.sum(dim=1).sqrt()"
""",
    "assistant.preference_steps": r"""
bystanders_stay: "return model.detach()" -> "return model.detach() - model.detach().mean(dim=1, keepdim=True)"
is_content_at_last: "reference = scores.clone()" ->
  "reference = scores + 40 * functional.one_hot(chosen, scores.shape[1])"
""",
    "assistant.advantages": r"""
sums_to_zero: "groups.mean(dim=1, keepdim=True)" -> "groups.median(dim=1, keepdim=True).values"
constant_does_not_matter: "deviation = groups.std(dim=1, keepdim=True, unbiased=False)" ->
  "deviation = groups.square().mean(dim=1, keepdim=True).sqrt()"
""",
    "assistant.answer_loss_of_parts": r"""
cut_does_not_matter: "total / count if count else 0.0" -> "total / count / len(parts) if count else 0.0"
is_a_number: "total / count if count else 0.0" -> "-total / count if count else 0.0"
nothing_to_learn_is_zero: "total / count if count else 0.0" -> "total / count if count else 1.0"
""",
    "assistant.solved_in_k": r"""
is_a_share: "sum(shares) / len(shares)" -> "1 + sum(shares) / len(shares)"
one_try_is_the_share: "1 - math.comb(n_samples - count, k) / choices" ->
  "1 - math.comb(n_samples - count, k) / choices * 0.9"
enough_right_is_certain: "1 - math.comb(n_samples - count, k) / choices" ->
  "1 - (1 - count / n_samples) ** (1 + 1.1 * (k - 1))"
""",
}
