"""Answers to the exercises on inside that stand in no list: right ones in other styles, and stray mistakes."""

import torch
from torch.nn import functional

# The lens, from the stream to probabilities


def lens_by_statistics(streams, gain, bias, unembedding):
    mean, variance = streams.mean(-1, keepdim=True), streams.var(-1, keepdim=True, unbiased=False)
    logits = ((streams - mean) * torch.rsqrt(variance + 1e-5) * gain + bias) @ unembedding.T
    return logits.softmax(-1)


def lens_by_layer(streams, gain, bias, unembedding):
    read = []
    for stream in streams:
        centred = stream - stream.mean(dim=1)[:, None]
        scaled = centred / ((centred**2).mean(dim=1) + 1e-5).sqrt()[:, None]
        powers = torch.exp(functional.linear(gain * scaled + bias, unembedding))
        read.append(powers / powers.sum(dim=1)[:, None])
    return torch.stack(read)


def lens_without_the_softmax_of_all(streams, gain, bias, unembedding):
    return lens_by_statistics(streams, gain, bias, unembedding).square()


def lens_of_a_clamped_stream(streams, gain, bias, unembedding):
    return lens_by_statistics(streams.clamp(-1, 1), gain, bias, unembedding)


# A stricter score for induction


def score_by_table(weights, token_ids):
    n = len(token_ids)
    same = (token_ids[:, None] == token_ids[None]) & torch.ones(n, n, dtype=torch.bool).tril(-1)
    latest = torch.where(same, torch.arange(n), -1).amax(dim=1)
    queries = (latest >= 0).nonzero()[:, 0]
    return weights[:, queries, latest[queries] + 1].mean(dim=1)


def score_by_memory(weights, token_ids):
    seen, found = {}, []
    for place, token in enumerate(token_ids.tolist()):
        if token in seen:
            found.append(weights[:, place, seen[token] + 1])
        seen[token] = place
    return sum(found) / len(found)


def score_below_zero(weights, token_ids):
    return score_by_memory(weights, token_ids) - 0.5


def score_of_big_names(weights, token_ids):
    return score_by_memory(weights, token_ids.clamp(max=int(token_ids.median())))


# Write a fact, and disturb the neighbours least


def fact_by_inverse(weight, bias, key, output, other_keys):
    inverse = torch.linalg.inv(other_keys.T @ other_keys)
    row = key @ inverse / (key @ inverse @ key)
    return weight + (output - bias - weight @ key)[:, None] * row[None]


def fact_by_whitening(weight, bias, key, output, other_keys):
    values, vectors = torch.linalg.eigh(other_keys.T @ other_keys)
    row = vectors @ ((vectors.T @ key) / values)
    return torch.addr(weight, output - bias - torch.mv(weight, key), row / row.dot(key))


def fact_by_a_single_feature(weight, bias, key, output, other_keys):
    row = torch.zeros_like(key)
    row[0] = 1 / key[0]
    return weight + torch.outer(output - bias - weight @ key, 50 * row)


def fact_along_the_mean(weight, bias, key, output, other_keys):
    mean = other_keys.mean(dim=0)
    return weight + torch.outer(output - bias - weight @ key, mean / (mean @ key))


# Take away what a head tells, not what it always says


def layer_by_sums(context, typical, head, w_output):
    d_head, total = context.shape[-1], 0.0
    for one in range(context.shape[1]):
        part = context[:, one]
        if one == head:
            part = typical[:, one].reshape(-1, d_head).mean(dim=0).expand_as(part)
        total = total + part @ w_output[:, one * d_head : (one + 1) * d_head].T
    return total


def layer_by_difference(context, typical, head, w_output):
    d_head = context.shape[-1]
    joined = context.transpose(1, 2).flatten(2)
    gone = context[:, head] - typical[:, head].sum(dim=(0, 1)) / (typical.shape[0] * typical.shape[2])
    return joined @ w_output.T - gone @ w_output[:, head * d_head : (head + 1) * d_head].T


def layer_with_half_a_head(context, typical, head, w_output):
    return (layer_by_sums(context, typical, head, w_output) + layer_by_sums(context, context, head, w_output)) / 2 + (
        context[:, head, :, :1] / 2
    )


def layer_with_the_median(context, typical, head, w_output):
    median = typical[:, head].flatten(0, 1).median(dim=0).values
    return layer_by_sums(context, median.expand(1, typical.shape[1], 1, -1), head, w_output)


# The probe that finds everything


def probe_by_normal_equations(hidden, labels, is_train, n_labels):
    inputs = functional.pad(hidden, (0, 1), value=1.0)
    fitted = inputs[is_train]
    targets = torch.eye(n_labels, dtype=hidden.dtype)[labels[is_train]]
    solved = torch.linalg.pinv(fitted) @ targets
    right = (inputs[~is_train] @ solved).max(dim=1).indices.eq(labels[~is_train])
    return right.sum().item() / right.numel()


def probe_by_centring(hidden, labels, is_train, n_labels):
    targets = functional.one_hot(labels, n_labels).to(hidden)
    mean, share = hidden[is_train].mean(dim=0), targets[is_train].mean(dim=0)
    solved = torch.linalg.lstsq(hidden[is_train] - mean, targets[is_train] - share).solution
    said = ((hidden[~is_train] - mean) @ solved + share).argmax(dim=1)
    return float((said == labels[~is_train]).double().mean())


def probe_in_percent(hidden, labels, is_train, n_labels):
    return probe_by_centring(hidden, labels, is_train, n_labels) * 100


def probe_with_centres_of_all(hidden, labels, is_train, n_labels):
    centres = torch.stack([hidden[labels == label].mean(dim=0) for label in range(n_labels)])
    said = torch.cdist(hidden[~is_train], centres).argmin(dim=1)
    return (said == labels[~is_train]).double().mean().item()


RIGHT = {
    "inside.lens_readings": (lens_by_statistics, lens_by_layer),
    "inside.twin_score": (score_by_table, score_by_memory),
    "inside.written_fact": (fact_by_inverse, fact_by_whitening),
    "inside.without_head": (layer_by_sums, layer_by_difference),
    "inside.honest_probe": (probe_by_normal_equations, probe_by_centring),
}
STRAY = {
    "inside.lens_readings": (
        (lens_without_the_softmax_of_all, "sums_to_one"),
        (lens_of_a_clamped_stream, "forgets_the_size"),
    ),
    "inside.twin_score": ((score_below_zero, "at_most_one"), (score_of_big_names, "perfect_head")),
    "inside.written_fact": (
        (fact_by_a_single_feature, "answers_the_key"),
        (fact_along_the_mean, "moves_others_less"),
    ),
    "inside.without_head": (
        (layer_with_half_a_head, "head_is_gone"),
        (layer_with_the_median, "average_stays"),
    ),
    "inside.honest_probe": (
        (probe_with_centres_of_all, "held_out_is_unknown"),
        (probe_in_percent, "is_a_share"),
    ),
}
