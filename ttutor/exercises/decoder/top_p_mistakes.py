"""Wrong answers to the exercise on top-p filtering, as students write them."""

import torch


def _ranked(logits, temperature):
    """Probabilities by falling size, and the tokens that they belong to."""
    return (logits / temperature).softmax(dim=-1).sort(dim=-1, descending=True)


def _kept(logits, temperature, is_kept, order):
    """Probabilities of the kept ones, brought back to the order of tokens and renormalised."""
    probabilities = (logits / temperature).softmax(dim=-1) * is_kept.gather(-1, order.argsort(dim=-1))
    return probabilities / probabilities.sum(dim=-1, keepdim=True)


def drops_crossing_token(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    return _kept(logits, temperature, ranked.cumsum(dim=-1) < p, order)


def drops_crossing_token_but_one(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = ranked.cumsum(dim=-1) < p
    is_kept[..., 0] = True
    return _kept(logits, temperature, is_kept, order)


def keeps_one_too_many(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    before = ranked.cumsum(dim=-1) - ranked
    is_kept = torch.roll(before, 1, dims=-1) < p
    is_kept[..., 0] = True
    return _kept(logits, temperature, is_kept, order)


def always_keeps_two(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = ranked.cumsum(dim=-1) - ranked < p
    is_kept[..., :2] = True
    return _kept(logits, temperature, is_kept, order)


def not_unsorted(logits, p, temperature):
    ranked, _ = _ranked(logits, temperature)
    kept = ranked * (ranked.cumsum(dim=-1) - ranked < p)
    return kept / kept.sum(dim=-1, keepdim=True)


def gathered_by_order(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    kept = ranked * (ranked.cumsum(dim=-1) - ranked < p)
    return (kept / kept.sum(dim=-1, keepdim=True)).gather(-1, order)


def mask_not_unsorted(logits, p, temperature):
    ranked, _ = _ranked(logits, temperature)
    kept = (logits / temperature).softmax(dim=-1) * (ranked.cumsum(dim=-1) - ranked < p)
    return kept / kept.sum(dim=-1, keepdim=True)


def not_sorted(logits, p, temperature):
    probabilities = (logits / temperature).softmax(dim=-1)
    kept = probabilities * (probabilities.cumsum(dim=-1) - probabilities < p)
    return kept / kept.sum(dim=-1, keepdim=True)


def sorted_upwards(logits, p, temperature):
    ranked, order = (logits / temperature).softmax(dim=-1).sort(dim=-1)
    return _kept(logits, temperature, ranked.cumsum(dim=-1) - ranked < p, order)


def temp_multiplied(logits, p, temperature):
    ranked, order = _ranked(logits * temperature, 1.0)
    return _kept(logits * temperature, 1.0, ranked.cumsum(dim=-1) - ranked < p, order)


def temp_ignored(logits, p, temperature):
    ranked, order = _ranked(logits, 1.0)
    return _kept(logits, 1.0, ranked.cumsum(dim=-1) - ranked < p, order)


def temp_on_probabilities(logits, p, temperature):
    probabilities = logits.softmax(dim=-1) / temperature
    probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    ranked, order = probabilities.sort(dim=-1, descending=True)
    return _kept(logits, 1.0, ranked.cumsum(dim=-1) - ranked < p, order)


def temp_after_cut(logits, p, temperature):
    ranked, order = _ranked(logits, 1.0)
    return _kept(logits, temperature, ranked.cumsum(dim=-1) - ranked < p, order)


def temp_for_cut_only(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    return _kept(logits, 1.0, ranked.cumsum(dim=-1) - ranked < p, order)


def not_renormalised(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    return (logits / temperature).softmax(dim=-1) * is_kept


def softmax_of_probabilities(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    probabilities = (logits / temperature).softmax(dim=-1)
    return probabilities.masked_fill(~is_kept, -torch.inf).softmax(dim=-1)


def zeroed_logits(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    return (logits / temperature * is_kept).softmax(dim=-1)


def returns_logits(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    return (logits / temperature).masked_fill(~is_kept, -torch.inf)


def returns_log_probabilities(logits, p, temperature):
    return returns_logits(logits, p, temperature).log_softmax(dim=-1)


def renormalised_over_batch(logits, p, temperature):
    kept = not_renormalised(logits, p, temperature)
    return kept / kept.sum() * kept[..., 0].numel()


def renormalised_over_all(logits, p, temperature):
    kept = not_renormalised(logits, p, temperature)
    return kept / kept.sum()


def evenly_shared(logits, p, temperature):
    is_kept = (not_renormalised(logits, p, temperature) > 0).to(logits.dtype)
    return is_kept / is_kept.sum(dim=-1, keepdim=True)


def above_p(logits, p, temperature):
    probabilities = (logits / temperature).softmax(dim=-1)
    kept = probabilities * (probabilities >= p)
    return kept / kept.sum(dim=-1, keepdim=True)


def min_p(logits, p, temperature):
    probabilities = (logits / temperature).softmax(dim=-1)
    kept = probabilities * (probabilities >= (1 - p) * probabilities.amax(dim=-1, keepdim=True))
    return kept / kept.sum(dim=-1, keepdim=True)


def share_of_the_vocabulary(logits, p, temperature):
    ranked, order = _ranked(logits, temperature)
    is_kept = torch.arange(logits.shape[-1]) < round(p * logits.shape[-1])
    return _kept(logits, temperature, is_kept.expand_as(ranked), order)


def unstable(logits, p, temperature):
    powers = (logits / temperature).exp()
    probabilities = powers / powers.sum(dim=-1, keepdim=True)
    ranked, order = probabilities.sort(dim=-1, descending=True)
    kept = probabilities * (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    return kept / kept.sum(dim=-1, keepdim=True)


def above_p_or_nothing(logits, p, temperature):
    probabilities = (logits / temperature).softmax(dim=-1)
    kept = probabilities * (probabilities >= p)
    return (kept / kept.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


def nothing_dropped(logits, p, temperature):
    return (logits / temperature).softmax(dim=-1)


def greedy(logits, p, temperature):
    best = logits.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(logits).scatter(-1, best, 1.0)


def above_p_or_the_best(logits, p, temperature):
    probabilities = (logits / temperature).softmax(dim=-1)
    is_best = probabilities == probabilities.amax(dim=-1, keepdim=True)
    kept = probabilities * (is_best | (probabilities >= p))
    return kept / kept.sum(dim=-1, keepdim=True)


def inplace(logits, p, temperature):
    logits /= temperature
    ranked, order = _ranked(logits, 1.0)
    is_kept = (ranked.cumsum(dim=-1) - ranked < p).gather(-1, order.argsort(dim=-1))
    logits[~is_kept] = -torch.inf
    return logits.softmax(dim=-1)
