"""Answers to the exercises on decoder that stand in no list: right ones in other styles, and stray mistakes."""

import math

import torch
from torch.nn import functional

# Pairs


def pair_by_padding(token_ids, bos_id, eos_id, pad_id):
    said = functional.pad(token_ids, (0, 1), value=pad_id)
    is_end = torch.arange(said.shape[1]) == (token_ids != pad_id).sum(dim=1, keepdim=True)
    return functional.pad(token_ids, (1, 0), value=bos_id), said.masked_fill(is_end, eos_id)


def pair_by_slices(token_ids, bos_id, eos_id, pad_id):
    whole = torch.full((len(token_ids), token_ids.shape[1] + 2), pad_id)
    whole[:, 0] = bos_id
    for row, sentence in enumerate(token_ids):
        real = sentence[sentence != pad_id]
        whole[row, 1 : len(real) + 1], whole[row, len(real) + 1] = real, eos_id
    read = whole[:, :-1].clone()
    read[read == eos_id] = pad_id
    return read, whole[:, 1:]


def pair_that_reads_another_sentence(token_ids, bos_id, eos_id, pad_id):
    read, said = pair_by_padding(token_ids, bos_id, eos_id, pad_id)
    return read.roll(1, dims=0), said


def pair_with_two_ends(token_ids, bos_id, eos_id, pad_id):
    read, said = pair_by_padding(token_ids, bos_id, eos_id, pad_id)
    said[0, -1] = eos_id
    return read, said


# Leaks


def leaks_by_noise(block, hidden):
    n_tokens, before = len(hidden), block(hidden)
    found = torch.zeros(n_tokens, n_tokens, dtype=torch.bool)
    for later in range(n_tokens):
        changed = torch.cat([hidden[:later], -2 * hidden[later : later + 1].roll(1, 1) + 0.3, hidden[later + 1 :]])
        difference = block(changed) - before
        found[:later, later] = difference[:later].abs().sum(dim=1) > 1e-9
    return found


def leaks_by_jacobian(block, hidden):
    jacobian = torch.autograd.functional.jacobian(block, hidden)
    return (jacobian.abs().amax(dim=(1, 3)) > 1e-9).triu(1)


def leaks_with_a_piece_of_the_past(block, hidden):
    found = leaks_by_noise(block, hidden)
    found[-1, 0] = True
    return found


def leaks_without_the_first_output(block, hidden):
    found = leaks_by_noise(block, hidden)
    found[0] = False
    return found


# Cross-attention


def cross_by_torch(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """Torch's kernel, with dead rows put right by hand."""

    def heads(vectors, weight):
        return functional.linear(vectors, weight).unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = heads(hidden, w_query), heads(memory, w_key), heads(memory, w_value)
    context = functional.scaled_dot_product_attention(q, k, v, attn_mask=memory_mask)
    if memory_mask is not None:
        context = torch.where(memory_mask.any(dim=-1, keepdim=True), context, 0.0)
    return functional.linear(context.transpose(1, 2).flatten(2), w_output)


def cross_by_einsum(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """Weights cut into heads instead of vectors, and a softmax by hand."""
    wq, wk, wv = (weight.reshape(n_heads, -1, hidden.shape[-1]) for weight in (w_query, w_key, w_value))
    scores = torch.einsum("btm,hem,hen,bsn->bhts", hidden, wq, wk, memory) / math.sqrt(wq.shape[1])
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    if memory_mask is not None:
        powers = powers * memory_mask
    weights = powers / powers.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(powers.dtype).tiny)
    context = torch.einsum("bhts,hem,bsm->bthe", weights, wv, memory)
    return context.flatten(2) @ w_output.mT


def cross_without_the_last_word(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """The end of the source is cut off."""
    mask = torch.ones(len(memory), 1, 1, memory.shape[1], dtype=torch.bool) if memory_mask is None else memory_mask
    mask = mask & (torch.arange(memory.shape[1]) != mask.sum(dim=-1, keepdim=True) - 1)
    return cross_by_einsum(hidden, memory, w_query, w_key, w_value, w_output, n_heads, mask)


def cross_with_faint_padding(hidden, memory, w_query, w_key, w_value, w_output, n_heads, memory_mask=None):
    """Padding is made less likely, not impossible."""
    q, k, v = (
        (vectors @ weight.T).unflatten(-1, (n_heads, -1)).transpose(1, 2)
        for vectors, weight in ((hidden, w_query), (memory, w_key), (memory, w_value))
    )
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores if memory_mask is None else scores - 2.0 * ~memory_mask
    return (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2) @ w_output.T


def cross_with_the_source_of_others(hidden, memory, *rest):
    """Every sequence reads the sum of all sources."""
    return cross_by_einsum(hidden, memory.cumsum(dim=0), *rest)


def cross_with_running_questions(hidden, *rest):
    """Each target token asks for what all earlier ones have asked, too."""
    return cross_by_einsum(hidden.cumsum(dim=1), *rest)


def cross_with_one_map_for_keys_and_values(hidden, memory, w_query, w_key, w_value, *rest):
    return cross_by_einsum(hidden, memory, w_query, w_value, w_value, *rest)


# The key/value cache


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


def cached_in_buffers(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    """Room made in advance and filled; a list is returned."""
    old, new = cached_key.shape[1], hidden.shape[1]
    hidden = hidden + position_table.narrow(0, old, new)
    both = []
    for cached, weight in ((cached_key, w_key), (cached_value, w_value)):
        room = cached.new_empty(len(cached), old + new, cached.shape[2])
        room[:, :old], room[:, old:] = cached, hidden @ weight.T
        both.append(room)
    positions = torch.arange(old + new)
    mask = positions <= positions[old:, None]
    return [functional.scaled_dot_product_attention(hidden @ w_query.T, *both, attn_mask=mask), *both]


def _cached(inputs, mask_of, scale=1.0):
    """The right step, of which the mask or the scale may be another."""
    hidden, cached_key, cached_value, position_table, w_query, w_key, w_value = inputs
    old, new = cached_key.shape[1], hidden.shape[1]
    hidden = hidden + position_table[old : old + new]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    distance = torch.arange(old, old + new)[:, None] - torch.arange(old + new)
    scores = (hidden @ w_query.T @ key.mT / math.sqrt(key.shape[-1]) * scale).masked_fill(~mask_of(distance), -math.inf)
    return scores.softmax(dim=-1) @ value, key, value


def cached_with_one_look_ahead(*inputs):
    return _cached(inputs, lambda distance: distance >= -1)


def cached_with_short_memory(*inputs):
    return _cached(inputs, lambda distance: (distance >= 0) & (distance < 3))


def cached_with_a_scale_of_the_portion(*inputs):
    return _cached(inputs, lambda distance: distance >= 0, scale=1 / math.sqrt(inputs[0].shape[1] + 1))


def cached_with_a_fading_past(hidden, cached_key, *rest):
    context, key, value = _cached((hidden, 0.9 * cached_key, *rest), lambda distance: distance >= 0)
    return context, key, value


def cached_with_values_of_the_questions(hidden, cached_key, cached_value, table, w_query, w_key, w_value):
    return _cached((hidden, cached_key, cached_value, table, w_query, w_key, w_query), lambda distance: distance >= 0)


def cached_with_positions_taken_off(hidden, cached_key, cached_value, table, *maps):
    return _cached((hidden, cached_key, cached_value, -table, *maps), lambda distance: distance >= 0)


# Top-p


def nucleus_from_below(logits, p, temperature):
    """Drops the least probable tokens as long as they hold no more than 1 - p."""
    scaled = logits / temperature
    upwards, order = scaled.softmax(dim=-1).sort(dim=-1)
    drops = torch.zeros_like(scaled, dtype=torch.bool).scatter(-1, order, upwards.cumsum(dim=-1) <= 1 - p)
    return scaled.masked_fill(drops, -math.inf).softmax(dim=-1)


def nucleus_by_comparison(logits, p, temperature):
    """Without sorting: a token is kept while all that is more probable holds less than p."""
    probabilities = (logits / temperature).softmax(dim=-1)
    is_better = probabilities[..., None, :] > probabilities[..., :, None]
    kept = probabilities.where((is_better * probabilities[..., None, :]).sum(dim=-1) < p, 0.0)
    return functional.normalize(kept, p=1.0, dim=-1)


def nucleus_with_a_rest(logits, p, temperature):
    """A tenth of everything is kept back."""
    return 0.9 * nucleus_by_comparison(logits, p, temperature)


def nucleus_turned_round(logits, p, temperature):
    return nucleus_by_comparison(logits, p, temperature).flip(-1)


def nucleus_with_a_margin(logits, p, temperature):
    return nucleus_by_comparison(logits, p + (1 - p) / 2, temperature)


def nucleus_squared(logits, p, temperature):
    return functional.normalize(nucleus_by_comparison(logits, p, temperature) ** 2, p=1.0, dim=-1)


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


def twice_the_newest(step, bos_id, eos_id, max_len):
    """Feeds the newest token two times, with the right cache."""
    newest, cache, text = bos_id, None, []
    for _ in range(max_len):
        logits, cache = step(torch.tensor([[newest, newest]]), cache)
        newest = int(logits[0, -1].argmax())
        if newest == eos_id:
            break
        text.append(newest)
    return text


def every_other_cache(step, bos_id, eos_id, max_len):
    """Hands on the cache of the call before the last one, and stops too late."""
    newest, caches, text = bos_id, [None, None], []
    for _ in range(max_len + 2):
        logits, cache = step(torch.tensor([[newest]]), caches[-2])
        caches.append(cache)
        newest = int(logits[0, -1].argmax())
        if newest == eos_id:
            break
        text.append(newest)
    return text


def two_tokens_early(step, bos_id, eos_id, max_len):
    """Stops two tokens before the limit."""
    return by_recursion(step, bos_id, eos_id, max_len - 2)


def as_one_string(step, bos_id, eos_id, max_len):
    """The right tokens, written as a text."""
    return " ".join(map(str, by_recursion(step, bos_id, eos_id, max_len)))


# Which guesses are kept?


def drafts_by_products(drafts, drafted, wanted, draws):
    places = torch.arange(len(drafts))
    is_kept = draws * drafted[places, drafts] < wanted[places, drafts]
    kept = int(is_kept.int().cumprod(dim=0).sum())
    if kept == len(drafts):
        return kept, wanted[kept]
    missing = torch.relu(wanted[kept] - drafted[kept])
    return kept, missing / missing.sum()


def drafts_with_a_row_of_zeros(drafts, drafted, wanted, draws):
    offered = torch.cat([drafted, torch.zeros_like(wanted[:1])])
    kept = 0
    while kept < len(drafts) and draws[kept] < wanted[kept, drafts[kept]] / drafted[kept, drafts[kept]]:
        kept += 1
    missing = (wanted - offered)[kept].clamp(min=0)
    return kept, missing / missing.sum()


def drafts_by_softmax(drafts, drafted, wanted, draws):
    kept, distribution = drafts_by_products(drafts, drafted, wanted, draws)
    return kept, distribution.softmax(dim=-1)


RIGHT = {
    "decoder.accepted_drafts": (drafts_by_products, drafts_with_a_row_of_zeros),
    "decoder.decoder_pair": (pair_by_padding, pair_by_slices),
    "decoder.future_leaks": (leaks_by_noise, leaks_by_jacobian),
    "decoder.cross_attention": (cross_by_torch, cross_by_einsum),
    "decoder.key_value_cache": (cached_token_by_token, cached_in_buffers),
    "decoder.top_p": (nucleus_from_below, nucleus_by_comparison),
    "decoder.greedy_decode": (by_recursion, with_a_growing_tensor),
}
STRAY = {
    "decoder.accepted_drafts": ((drafts_by_softmax, "only_what_is_missing"),),
    "decoder.decoder_pair": (
        (pair_that_reads_another_sentence, "one_place_apart"),
        (pair_with_two_ends, "one_end_each"),
    ),
    "decoder.future_leaks": (
        (leaks_with_a_piece_of_the_past, "above_the_diagonal"),
        (leaks_without_the_first_output, "tells_leaks_apart"),
    ),
    "decoder.cross_attention": (
        (cross_without_the_last_word, "reads_all_of_the_source"),
        (cross_with_the_source_of_others, "sequences_apart"),
        (cross_with_faint_padding, "ignores_padding"),
        (cross_with_one_map_for_keys_and_values, "maps_in_their_places"),
        (cross_with_running_questions, "targets_apart"),
    ),
    "decoder.key_value_cache": (
        (cached_with_values_of_the_questions, "maps_in_their_places"),
        (cached_with_positions_taken_off, "positions_are_added"),
        (cached_with_one_look_ahead, "causal"),
        (cached_with_short_memory, "sees_the_past"),
        (cached_with_a_scale_of_the_portion, "steps_equal_one_call"),
        (cached_with_a_fading_past, "past_is_kept"),
    ),
    "decoder.top_p": (
        (nucleus_with_a_rest, "sums_to_one"),
        (nucleus_turned_round, "keeps_the_best"),
        (nucleus_with_a_margin, "smallest_set"),
        (nucleus_squared, "keeps_proportions"),
    ),
    "decoder.greedy_decode": (
        (as_one_string, "returns_a_list"),
        (every_other_cache, "cache_is_handed_on"),
        (twice_the_newest, "fed_one_by_one"),
        (two_tokens_early, "as_many_calls_as_needed"),
    ),
}
