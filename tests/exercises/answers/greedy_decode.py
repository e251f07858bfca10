"""Answers to the exercise on writing token by token: right ones in other styles, and mistakes that stand in no list."""

import torch


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


RIGHT = {"decoder.greedy_decode": (by_recursion, with_a_growing_tensor)}

STRAY = {
    "decoder.greedy_decode": (
        (as_one_string, "returns_a_list"),
        (every_other_cache, "cache_is_handed_on"),
        (twice_the_newest, "fed_one_by_one"),
        (two_tokens_early, "as_many_calls_as_needed"),
    ),
}
