"""Answers to the exercises on transformer that stand in no list: right ones in other styles, and stray mistakes."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


def embedded_by_torch(token_ids, table):
    return functional.embedding(token_ids, table).mul(table.size(1) ** 0.5)


def embedded_by_loops(token_ids, table):
    scale = torch.tensor(float(table.shape[1]), dtype=table.dtype).sqrt()
    return torch.stack([torch.stack([table[token] * scale for token in sentence]) for sentence in token_ids.tolist()])


def embedded_by_the_next_token(token_ids, table):
    return embedded_by_torch((token_ids + 1) % len(table), table)


def embedded_by_the_fourth_root(token_ids, table):
    return table[token_ids] * table.shape[1] ** 0.25


def embedded_with_twice_the_gradient(token_ids, table):
    return embedded_by_torch(token_ids, 2 * table - table.detach())


class TiedByLinear(nn.Module):
    """Two modules, one parameter."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.project = nn.Linear(d_model, vocab_size, bias=False)
        self.table = nn.Embedding(vocab_size, d_model)
        self.table.weight = self.project.weight

    def embed(self, token_ids):
        return self.table(token_ids)

    def to_logits(self, hidden):
        return self.project(hidden)


class TiedByHand(nn.Module):
    """One parameter, one-hot vectors and einsum."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(d_model, vocab_size) / d_model**0.5)

    def embed(self, token_ids):
        one_hot = functional.one_hot(token_ids, self.vectors.shape[1]).to(self.vectors)
        return torch.einsum("btv,dv->btd", one_hot, self.vectors)

    def to_logits(self, hidden):
        return torch.einsum("btd,dv->btv", hidden, self.vectors)


class TiedWithAMap(TiedByLinear):
    """A further map before the projection."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.map = nn.Linear(d_model, d_model)

    def to_logits(self, hidden):
        return super().to_logits(self.map(hidden))


class TiedWithASpare(TiedByLinear):
    """Numbers that nobody uses."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.spare = nn.Parameter(torch.zeros(3))


class CopiedWithABias(nn.Module):
    """A copy, and a bias of zeros."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.to_logits = nn.Linear(d_model, vocab_size)
        self.to_logits.weight = nn.Parameter(self.embed.weight.detach().clone())
        nn.init.zeros_(self.to_logits.bias)


class EmbedsWithoutLearningTwice(TiedByLinear):
    """The embedding is detached, and one parameter is left over."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.spare = nn.Parameter(torch.zeros(3))

    def embed(self, token_ids):
        return super().embed(token_ids).detach()


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


# A systematic split


def split_by_a_table(nouns, verbs, every, remainder):
    table = torch.arange(100)[:, None] + torch.arange(100)
    return (table % every == remainder)[nouns, verbs]


def split_by_subtraction(nouns, verbs, every, remainder):
    return ((nouns + verbs - remainder) / every).frac() == 0


def split_within_pairs(nouns, verbs, every, remainder):
    return split_by_a_table(nouns, verbs, every, remainder) & (torch.arange(len(nouns)) % 2 == 0)


def split_with_a_lost_noun(nouns, verbs, every, remainder):
    return split_by_a_table(nouns, verbs, every, remainder) | (nouns == 4)


RIGHT = {
    "transformer.systematic_split": (split_by_a_table, split_by_subtraction),
    "transformer.embedding_scale": (embedded_by_torch, embedded_by_loops),
    "transformer.tied_embeddings": (TiedByLinear, TiedByHand),
    "transformer.next_merge": (merge_by_dictionary, merge_by_lists),
    "transformer.count_parameters": (count_by_building, count_by_formula),
    "transformer.three_masks": (masks_by_broadcasting, masks_by_loops),
}
STRAY = {
    "transformer.systematic_split": (
        (split_within_pairs, "pair_on_both_sides"),
        (split_with_a_lost_noun, "word_never_trained"),
    ),
    "transformer.embedding_scale": (
        (embedded_by_the_next_token, "right_rows"),
        (embedded_by_the_fourth_root, "one_factor"),
        (embedded_with_twice_the_gradient, "gradient"),
    ),
    "transformer.tied_embeddings": (
        (TiedWithAMap, "logits_are_products"),
        (TiedWithASpare, "one_table"),
        (CopiedWithABias, "tied_from_logits"),
        (EmbedsWithoutLearningTwice, "tied_from_embeddings"),
    ),
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
