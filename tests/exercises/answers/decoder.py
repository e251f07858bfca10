"""Answers to the exercises of decoder that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch.nn import functional


def pair_by_slices(token_ids, bos_id, eos_id, pad_id):
    whole = torch.full((len(token_ids), token_ids.shape[1] + 2), pad_id)
    whole[:, 0] = bos_id
    for row, sentence in enumerate(token_ids):
        real = sentence[sentence != pad_id]
        whole[row, 1 : len(real) + 1], whole[row, len(real) + 1] = real, eos_id
    read = whole[:, :-1].clone()
    read[read == eos_id] = pad_id
    return read, whole[:, 1:]


def leaks_by_jacobian(block, hidden):
    jacobian = torch.autograd.functional.jacobian(block, hidden)
    return (jacobian.abs().amax(dim=(1, 3)) > 1e-9).triu(1)


def cross_by_torch(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """Torch's kernel, with dead rows put right by hand."""

    def heads(vectors, weight):
        return functional.linear(vectors, weight).unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = heads(hidden, w_query), heads(memory, w_key), heads(memory, w_value)
    context = functional.scaled_dot_product_attention(q, k, v, attn_mask=memory_mask)
    if memory_mask is not None:
        context = torch.where(memory_mask.any(dim=-1, keepdim=True), context, 0.0)
    return functional.linear(context.transpose(1, 2).flatten(2), w_output)


def cached_token_by_token(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    """New tokens enter one at a time, and so need no mask."""
    contexts = []
    for token in hidden.unbind(dim=1):
        token = token + position_table[cached_key.shape[1]]
        cached_key = torch.cat([cached_key, (token @ w_key.T)[:, None]], dim=1)
        cached_value = torch.cat([cached_value, (token @ w_value.T)[:, None]], dim=1)
        scores = torch.einsum("bd,bkd->bk", token @ w_query.T, cached_key) / math.sqrt(cached_key.shape[-1])
        contexts.append(torch.einsum("bk,bkd->bd", scores.softmax(dim=-1), cached_value))
    return torch.stack(contexts, dim=1), cached_key, cached_value


def nucleus_from_below(logits, p, temperature):
    """Drops the least probable tokens as long as they hold no more than 1 - p."""
    scaled = logits / temperature
    upwards, order = scaled.softmax(dim=-1).sort(dim=-1)
    drops = torch.zeros_like(scaled, dtype=torch.bool).scatter(-1, order, upwards.cumsum(dim=-1) <= 1 - p)
    return scaled.masked_fill(drops, -math.inf).softmax(dim=-1)


def by_recursion(step, bos_id, eos_id, max_len):
    """Writes one token, then the rest."""

    def rest(newest, cache, left):
        if left == 0:
            return []
        logits, cache = step(torch.full((1, 1), newest), cache)
        token = logits[0, 0].argmax().item()
        return [] if token == eos_id else [token, *rest(token, cache, left - 1)]

    return rest(bos_id, None, max_len)


def with_a_growing_tensor(step, bos_id, eos_id, max_len):
    """Keeps all tokens in a tensor, and feeds its last column."""
    token_ids, cache = torch.tensor([[bos_id]]), None
    for _ in range(max_len):
        logits, cache = step(token_ids[:, -1:], cache)
        token_ids = torch.cat([token_ids, logits[:, -1].softmax(-1).topk(1).indices], dim=1)
        if token_ids[0, -1] == eos_id:
            return token_ids[0, 1:-1].tolist()
    return token_ids[0, 1:].tolist()


def drafts_with_a_row_of_zeros(drafts, drafted, wanted, draws):
    offered = torch.cat([drafted, torch.zeros_like(wanted[:1])])
    kept = 0
    while kept < len(drafts) and draws[kept] < wanted[kept, drafts[kept]] / drafted[kept, drafts[kept]]:
        kept += 1
    missing = (wanted - offered)[kept].clamp(min=0)
    return kept, missing / missing.sum()


RIGHT = {
    "decoder.accepted_drafts": (drafts_with_a_row_of_zeros,),
    "decoder.decoder_pair": (pair_by_slices,),
    "decoder.future_leaks": (leaks_by_jacobian,),
    "decoder.cross_attention": (cross_by_torch,),
    "decoder.key_value_cache": (cached_token_by_token,),
    "decoder.top_p": (nucleus_from_below,),
    "decoder.greedy_decode": (by_recursion, with_a_growing_tensor),
}
STRAY = {
    "decoder.decoder_pair": r"""
one_place_apart: "[start, token_ids], dim=1)" -> "[start, token_ids], dim=1).roll(1, dims=0)"
one_end_each: "return" -> "targets[0, -1] = eos_id\n    return"
""",
    "decoder.cross_attention": r"""
reads_all_of_the_source: "v, memory_mask" ->
  "v, (torch.arange(memory.shape[1]) > 0) & (True if memory_mask is None else memory_mask)"
sequences_apart: "memory @ w_key" -> "memory.cumsum(dim=0) @ w_key", "memory @ w_value" ->
  "memory.cumsum(dim=0) @ w_value"
ignores_padding: "scaled_dot_product_attention(q, k, v, memory_mask)" ->
  "torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 - (0.0 if memory_mask is None else 2.0 * ~memory_mask), dim=-1) @ v"
maps_in_their_places: "memory @ w_key" -> "memory @ w_value"
targets_apart: "hidden @ w_query" -> "hidden.cumsum(dim=1) @ w_query"
""",
    "decoder.top_p": r"""
sums_to_one: "return kept" -> "return 0.9 * kept"
keeps_the_best: "return kept" -> "return kept.flip(-1)"
smallest_set: "< p" -> "< p + (1 - p) / 2"
keeps_proportions: "return" -> "kept = kept**2\n    return"
""",
    "decoder.greedy_decode": r"""
returns_a_list: "return text" -> "return ' '.join(map(str, text))"
cache_is_handed_on: "newest, cache, text = bos_id, None, []" -> "newest, cache, older, text = bos_id, None, None, []",
  "logits, cache = step(torch.tensor([[newest]]), cache)" ->
  "(logits, cache), older = step(torch.tensor([[newest]]), older), cache"
fed_one_by_one: "[[newest]]" -> "[[newest, newest]]"
as_many_calls_as_needed: "< max_len" -> "< max_len - 2"
""",
    "decoder.future_leaks": r"""
above_the_diagonal: ".triu(1)" -> ".triu(1) | torch.ones(2 * [len(hidden)]).bool().tril(1 - len(hidden))"
tells_leaks_apart: ".triu(1)" -> ".triu(1) & (torch.arange(len(hidden))[:, None] > 0)"
""",
    "decoder.key_value_cache": r"""
maps_in_their_places: "hidden @ w_value" -> "hidden @ w_query"
positions_are_added: "hidden + position_table" -> "hidden - position_table"
causal: "diagonal=n_cached" -> "diagonal=n_cached + 1"
sees_the_past: ".tril(diagonal=n_cached)" -> ".tril(diagonal=n_cached).triu(n_cached - 2)"
steps_equal_one_call: "hidden @ w_query.T" -> "hidden @ w_query.T * (len(w_query) / (n_new + 1)) ** 0.5"
past_is_kept: "[cached_key" -> "[0.9 * cached_key"
""",
    "decoder.accepted_drafts": r"""
only_what_is_missing: "missing / missing.sum()" -> "(missing / missing.sum()).softmax(dim=-1)", "wanted[-1]" ->
  "wanted[-1].softmax(dim=-1)"
""",
}
