"""Answers to the exercises of transformer that stand in no list: right ones in other styles, and stray mistakes."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


def embedded_by_torch(token_ids, table):
    return functional.embedding(token_ids, table).mul(table.size(1) ** 0.5)


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


def merge_by_lists(words, times, at_least):
    tokens = [token for word, n in zip(words, times, strict=True) for _ in range(n) for token in word]
    pairs = [pair for word, n in zip(words, times, strict=True) for _ in range(n) for pair in pairwise(word)]
    kept = {pair for pair in pairs if pairs.count(pair) >= at_least}
    return max(kept, key=lambda pair: pairs.count(pair) / (tokens.count(pair[0]) * tokens.count(pair[1])))


def count_by_building(vocab_size, d_model, d_ff, n_encoder_layers, n_decoder_layers, tied):
    layers = [nn.Linear(d_model, vocab_size, bias=False) for _ in range(1 if tied else 2)]
    for n_layers, n_attentions in ((n_encoder_layers, 1), (n_decoder_layers, 2)):
        for _ in range(n_layers):
            layers += [nn.Linear(d_model, d_model) for _ in range(4 * n_attentions)]
            layers += [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]
            layers += [nn.LayerNorm(d_model) for _ in range(n_attentions + 1)]
    return sum(p.numel() for layer in layers for p in layer.parameters())


def masks_by_loops(source_ids, target_ids, pad_id):
    source = source_ids.ne(pad_id).unsqueeze(1).unsqueeze(1)
    n = target_ids.shape[1]
    target = torch.zeros(len(target_ids), 1, n, n, dtype=torch.bool)
    for query in range(n):
        for key in range(query + 1):
            target[:, 0, query, key] = target_ids[:, key] != pad_id
    return source, target, source


def split_by_a_table(nouns, verbs, every, remainder):
    table = torch.arange(100)[:, None] + torch.arange(100)
    return (table % every == remainder)[nouns, verbs]


RIGHT = {
    "transformer.systematic_split": (split_by_a_table,),
    "transformer.embedding_scale": (embedded_by_torch,),
    "transformer.tied_embeddings": (TiedByLinear, TiedByHand),
    "transformer.next_merge": (merge_by_lists,),
    "transformer.count_parameters": (count_by_building,),
    "transformer.three_masks": (masks_by_loops,),
}
STRAY = {
    "transformer.embedding_scale": r"""
right_rows: "[token_ids]" -> "[(token_ids + 1) % len(table)]"
one_factor: "math.sqrt(table.shape[-1])" -> "table.shape[-1] ** 0.25"
gradient: "return table" -> "return (2 * table - table.detach())"
""",
    "transformer.systematic_split": r"""
pair_on_both_sides: "== remainder" -> "+ torch.arange(len(nouns)) % 2 * every == remainder"
word_never_trained: "return (nouns + verbs) % every" ->
  "return ((nouns + verbs) % every).masked_fill(nouns == 4, remainder)"
""",
    "transformer.next_merge": r"""
neighbours: "return" -> "return ('ba', 'k') or"
often_enough: "return" -> "return tuple(words[-2]) or"
best_score: "return" ->
  "return tuple(next(word for word, n in zip(words, times) if len(word) == 3 and 2 * n == 3 * at_least)[:2]) or"
""",
    "transformer.count_parameters": r"""
grows_with_the_vocabulary: "return" -> "return 7 * vocab_size +"
grows_with_the_encoder: "return" -> "return 11 * n_encoder_layers +"
grows_with_the_decoder: "return" -> "return 11 * n_decoder_layers +"
starts_at_the_tables: "return" -> "return 64 * d_model +"
""",
    "transformer.tied_embeddings": r"""
logits_are_products: "Embedding(vocab_size, d_model)" ->
  "Embedding(vocab_size, d_model)\n        self.map = nn.Linear(d_model, d_model)", "return hidden" ->
  "return self.map(hidden)"
one_table: "Embedding(vocab_size, d_model)" ->
  "Embedding(vocab_size, d_model)\n        self.spare = nn.Parameter(torch.zeros(3))"
tied_from_logits: "Embedding(vocab_size, d_model)" ->
  "Embedding(vocab_size, d_model)\n        self.spare = nn.Parameter(torch.zeros(3))",
  "weight.T" -> "weight.detach().T"
tied_from_embeddings: "Embedding(vocab_size, d_model)" ->
  "Embedding(vocab_size, d_model)\n        self.spare = nn.Parameter(torch.zeros(3))", "(token_ids)" ->
  "(token_ids).detach()"
""",
    "transformer.three_masks": r"""
looks_ahead: "& past" -> "& torch.ones_like(past).tril(1)"
looks_at_padding: "return real_source" -> "return torch.ones_like(real_source)"
hidden_for_nothing: "& past" -> "& past.triu(-1)"
""",
}
