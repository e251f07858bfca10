"""What goes wrong when a text is written token by token."""

import torch


def written(step, bos_id, eos_id, max_len, *, feed="newest", keep="newest", choose=None):
    """Write as one should, or with other tokens fed, or with another cache handed on."""
    tokens, cache = [bos_id], None
    for _ in range(max_len):
        fed = {"newest": tokens[-1:], "all": tokens, "first": tokens[:1]}[feed]
        logits, came = step(torch.tensor([fed]), cache)
        if keep == "newest" or (keep == "first" and cache is None):
            cache = came
        token = int(logits[0, -1].argmax()) if choose is None else choose(logits)
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:]


def feeds_all_with_cache(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len, feed="all")


def feeds_all_without_cache(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len, feed="all", keep="none")


def first_position(step, bos_id, eos_id, max_len):
    def choose(logits):
        return int(logits[0, 0].argmax())

    return written(step, bos_id, eos_id, max_len, feed="all", keep="none", choose=choose)


def forgets_the_cache(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len, keep="none")


def keeps_the_first_cache(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len, keep="first")


def feeds_the_start_mark(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len, feed="first")


def no_stop(step, bos_id, eos_id, max_len):
    return written(step, bos_id, None, max_len)


def stops_after_one(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, 1)


def keeps_the_end_mark(step, bos_id, eos_id, max_len):
    tokens = written(step, bos_id, eos_id, max_len)
    return tokens if len(tokens) == max_len else [*tokens, eos_id]


def adds_an_end_mark(step, bos_id, eos_id, max_len):
    return [*written(step, bos_id, eos_id, max_len), eos_id]


def keeps_the_start_mark(step, bos_id, eos_id, max_len):
    return [bos_id, *written(step, bos_id, eos_id, max_len)]


def one_too_many(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len + 1)


def one_too_few(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, max_len - 1)


def until_the_end(step, bos_id, eos_id, max_len):
    return written(step, bos_id, eos_id, 1000)


def least_likely(step, bos_id, eos_id, max_len):
    def choose(logits):
        return int(logits[0, -1].argmin())

    return written(step, bos_id, eos_id, max_len, choose=choose)


def draws(step, bos_id, eos_id, max_len):
    def choose(logits):
        return int(torch.multinomial(logits[0, -1].softmax(dim=-1), 1))

    return written(step, bos_id, eos_id, max_len, choose=choose)


def second_best(step, bos_id, eos_id, max_len):
    def choose(logits):
        return int(logits[0, -1].topk(2).indices[1])

    return written(step, bos_id, eos_id, max_len, choose=choose)


def hard_coded_end(step, bos_id, eos_id, max_len):
    return written(step, bos_id, 3, max_len)
