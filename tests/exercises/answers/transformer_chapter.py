"""Answers to chapter 7's own exercises: right ones in other styles, and mistakes that stand in no list."""

from itertools import pairwise

import torch
from torch import nn

# Merges


def merge_by_dictionary(words, times, at_least):
    seen, alone = {}, {}
    for word, n in zip(words, times, strict=True):
        for token in word:
            alone[token] = alone.get(token, 0) + n
        for left, right in zip(word, word[1:], strict=False):
            seen[left, right] = seen.get((left, right), 0) + n
    seen = {pair: n for pair, n in seen.items() if n >= at_least}
    return sorted(seen, key=lambda pair: -seen[pair] / alone[pair[0]] / alone[pair[1]])[0]


def merge_by_lists(words, times, at_least):
    tokens = [token for word, n in zip(words, times, strict=True) for _ in range(n) for token in word]
    pairs = [pair for word, n in zip(words, times, strict=True) for _ in range(n) for pair in pairwise(word)]
    kept = {pair for pair in pairs if pairs.count(pair) >= at_least}
    return max(kept, key=lambda pair: pairs.count(pair) / (tokens.count(pair[0]) * tokens.count(pair[1])))


def merge_of_strangers(words, times, at_least):
    return ("ba", "k")


def merge_of_a_rare_pair(words, times, at_least):
    return tuple(words[-2])


def merge_of_a_common_pair(words, times, at_least):
    return tuple(next(word for word, n in zip(words, times, strict=True) if len(word) == 3 and n == 6)[:2])


# Counting


def count_by_building(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    layers = [nn.Linear(d_model, vocab_size, bias=False) for _ in range(1 if tied else 2)]
    for n_layers, n_attentions in ((n_encoder_layers, 1), (n_decoder_layers, 2)):
        for _ in range(n_layers):
            layers += [nn.Linear(d_model, d_model) for _ in range(4 * n_attentions)]
            layers += [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]
            layers += [nn.LayerNorm(d_model) for _ in range(n_attentions + 1)]
    return sum(p.numel() for layer in layers for p in layer.parameters())


def count_by_formula(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    in_each = 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff
    layers = (n_encoder_layers + n_decoder_layers) * in_each + n_decoder_layers * d_model * (4 * d_model + 6)
    return layers + (2 - tied) * vocab_size * d_model


def count_with_positions(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    return count_by_formula(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied) + 64 * d_model


def count_with_a_wide_table(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    return count_by_formula(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied) + 7 * vocab_size


def count_of_odd_encoders(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    right = count_by_formula(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied)
    return right + 11 * n_encoder_layers


def count_of_odd_decoders(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    right = count_by_formula(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied)
    return right + 11 * n_decoder_layers


# Masks


def masks_by_broadcasting(source_ids, target_ids, pad_id):
    source = (source_ids != pad_id)[:, None, None, :]
    n = target_ids.shape[1]
    past = torch.arange(n)[None, :] <= torch.arange(n)[:, None]
    return source, (target_ids != pad_id)[:, None, None, :] & past, source.clone()


def masks_by_loops(source_ids, target_ids, pad_id):
    source = source_ids.ne(pad_id).unsqueeze(1).unsqueeze(1)
    n = target_ids.shape[1]
    target = torch.zeros(len(target_ids), 1, n, n, dtype=torch.bool)
    for query in range(n):
        for key in range(query + 1):
            target[:, 0, query, key] = target_ids[:, key] != pad_id
    return source, target, source


def masks_one_step_ahead(source_ids, target_ids, pad_id):
    source, target, memory = masks_by_loops(source_ids, target_ids, pad_id)
    n = target.shape[-1]
    return source, (target_ids != pad_id)[:, None, None] & torch.ones(n, n).tril(1).bool(), memory


def masks_that_see_padding(source_ids, target_ids, pad_id):
    source, target, memory = masks_by_loops(source_ids, target_ids, pad_id)
    return torch.ones_like(source), target, memory


def masks_with_a_window(source_ids, target_ids, pad_id):
    source, target, memory = masks_by_loops(source_ids, target_ids, pad_id)
    return source, target & torch.ones(target.shape[-1], target.shape[-1]).triu(-1).bool(), memory


RIGHT = {
    "transformer.next_merge": (merge_by_dictionary, merge_by_lists),
    "transformer.count_parameters": (count_by_building, count_by_formula),
    "transformer.three_masks": (masks_by_broadcasting, masks_by_loops),
}

STRAY = {
    "transformer.next_merge": (
        (merge_of_strangers, "neighbours"),
        (merge_of_a_rare_pair, "often_enough"),
        (merge_of_a_common_pair, "best_score"),
    ),
    "transformer.count_parameters": (
        (count_with_a_wide_table, "grows_with_the_vocabulary"),
        (count_of_odd_encoders, "grows_with_the_encoder"),
        (count_of_odd_decoders, "grows_with_the_decoder"),
        (count_with_positions, "starts_at_the_tables"),
    ),
    "transformer.three_masks": (
        (masks_one_step_ahead, "looks_ahead"),
        (masks_that_see_padding, "looks_at_padding"),
        (masks_with_a_window, "hidden_for_nothing"),
    ),
}
