"""What goes wrong when a loss is averaged over sentences with padding."""

import math

import torch
from torch import nn


def surprise(logits, targets):
    return -logits.log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0]


def mean_over_real(values, targets, pad_id):
    return values[targets != pad_id].mean()


def counts_pads(logits, targets, pad_id):
    return surprise(logits, targets).mean()


def mean_over_all(logits, targets, pad_id):
    return surprise(logits, targets).masked_fill(targets == pad_id, 0.0).mean()


def mean_of_means(logits, targets, pad_id):
    real = targets != pad_id
    sums = surprise(logits, targets).masked_fill(~real, 0.0).sum(dim=-1)
    return (sums / real.sum(dim=-1)).mean()


def summed(logits, targets, pad_id):
    return surprise(logits, targets)[targets != pad_id].sum()


def per_sentence(logits, targets, pad_id):
    return summed(logits, targets, pad_id) / len(targets)


def perplexity(logits, targets, pad_id):
    return mean_over_real(surprise(logits, targets), targets, pad_id).exp()


def bits(logits, targets, pad_id):
    return mean_over_real(surprise(logits, targets), targets, pad_id) / math.log(2)


def ignores_class(logits, targets, pad_id):
    without = logits.index_fill(-1, torch.tensor([pad_id]), -torch.inf)
    return mean_over_real(surprise(without, targets), targets, pad_id)


def mean_probability(logits, targets, pad_id):
    right = logits.softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
    return -mean_over_real(right, targets, pad_id)


def log_of_mean(logits, targets, pad_id):
    right = logits.softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
    return -mean_over_real(right, targets, pad_id).log()


def hard_coded_pad(logits, targets, pad_id):
    return surprise(logits, targets)[targets != 0].mean()


def log_after_softmax(logits, targets, pad_id):
    right = logits.softmax(dim=-1).gather(-1, targets[..., None])[..., 0]
    return -right[targets != pad_id].log().mean()


def exponentials_by_hand(logits, targets, pad_id):
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return mean_over_real(logits.exp().sum(dim=-1).log() - chosen, targets, pad_id)


def largest_logit(logits, targets, pad_id):
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return mean_over_real(logits.amax(dim=-1) - chosen, targets, pad_id)


def over_the_tokens(logits, targets, pad_id):
    right = logits.log_softmax(dim=1).gather(-1, targets[..., None])[..., 0]
    return -mean_over_real(right, targets, pad_id)


def raw_logits(logits, targets, pad_id):
    return -mean_over_real(logits.gather(-1, targets[..., None])[..., 0], targets, pad_id)


def over_the_batch(logits, targets, pad_id):
    right = logits.log_softmax(dim=0).gather(-1, targets[..., None])[..., 0]
    return -mean_over_real(right, targets, pad_id)


def softmax_twice(logits, targets, pad_id):
    return mean_over_real(surprise(logits.softmax(dim=-1), targets), targets, pad_id)


def not_negated(logits, targets, pad_id):
    return -mean_over_real(surprise(logits, targets), targets, pad_id)


def one_for_each_token(logits, targets, pad_id):
    return surprise(logits, targets).masked_fill(targets == pad_id, 0.0)


def detached(logits, targets, pad_id):
    return mean_over_real(surprise(logits, targets), targets, pad_id).detach()


def as_a_number(logits, targets, pad_id):
    return mean_over_real(surprise(logits, targets), targets, pad_id).item()


def smoothed(logits, targets, pad_id):
    log_probabilities = logits.log_softmax(dim=-1)
    every = -log_probabilities.masked_fill(log_probabilities.isinf(), 0.0).mean(dim=-1)
    return mean_over_real(0.9 * surprise(logits, targets) + 0.1 * every, targets, pad_id)


def shifts_again(logits, targets, pad_id):
    return mean_over_real(surprise(logits[:, :-1], targets[:, 1:]), targets[:, 1:], pad_id)


def multiplies_by_zero(logits, targets, pad_id):
    real = targets != pad_id
    return (surprise(logits, targets) * real).sum() / real.sum()


def reshaped(logits, targets, pad_id):
    batch, n_places, vocab_size = logits.shape
    return nn.functional.cross_entropy(logits.reshape(batch, vocab_size, n_places), targets, ignore_index=pad_id)


def flattened_apart(logits, targets, pad_id):
    flat = logits.transpose(0, 1).reshape(-1, logits.shape[-1])
    return nn.functional.cross_entropy(flat, targets.reshape(-1), ignore_index=pad_id)


def classes_in_front(logits, targets, pad_id):
    flat = logits.log_softmax(dim=-1).reshape(logits.shape[-1], -1)
    return nn.functional.nll_loss(flat.T, targets.reshape(-1), ignore_index=pad_id)


def all_classes_summed(logits, targets, pad_id):
    return -mean_over_real(logits.log_softmax(dim=-1).sum(dim=-1), targets, pad_id)


def all_classes(logits, targets, pad_id):
    return -mean_over_real(logits.log_softmax(dim=-1), targets, pad_id)


def writes_into_logits(logits, targets, pad_id):
    logits.masked_fill_((targets == pad_id)[..., None], 0.0)
    return mean_over_real(surprise(logits, targets), targets, pad_id)
