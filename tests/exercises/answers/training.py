"""Answers to the exercises on training: right ones in other styles, and mistakes that stand in no list."""

import math

import torch
from torch.nn import functional


def narrowed(token_ids):
    """Slices by another name."""
    length = token_ids.shape[1] - 1
    return token_ids.narrow(1, 0, length), token_ids.narrow(1, 1, length)


def token_by_token(token_ids):
    """Python lists, and a tensor in the end."""
    rows = token_ids.tolist()
    return [torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])]


def without_end_marks(token_ids):
    """What is read ends with the last word, as in the package's batches."""
    lengths = (token_ids != 0).sum(dim=1, keepdim=True)
    places = torch.arange(token_ids.shape[1])
    return torch.where(places < lengths - 1, token_ids, 0)[:, :-1], token_ids[:, 1:]


def target_of_the_token_before(token_ids):
    """Targets that lag by one."""
    return token_ids[:, :-1], token_ids[:, :-1].roll(1, dims=1)


def without_bos_of_the_last(token_ids):
    """Drops the start mark and shifts the wrong way."""
    return token_ids[:, 1:], token_ids[:, :-1].roll(1, dims=1)


def loss_by_loops(logits, targets, pad_id):
    """Place by place."""
    losses = []
    for row, sentence in zip(logits, targets, strict=True):
        for scores, target in zip(row, sentence, strict=True):
            if target != pad_id:
                losses.append(torch.logsumexp(scores, dim=0) - scores[target])
    return torch.stack(losses).mean()


def loss_of_selected_places(logits, targets, pad_id):
    """Select first, then compute."""
    real = targets != pad_id
    chosen, right = logits[real], targets[real]
    return -chosen.log_softmax(-1)[torch.arange(len(right)), right].mean()


def loss_by_where(logits, targets, pad_id):
    """Zero where padding is."""
    surprise = -torch.gather(torch.log_softmax(logits, 2), 2, targets.unsqueeze(2)).squeeze(2)
    return torch.where(targets == pad_id, 0.0, surprise).sum().div((targets != pad_id).sum())


def bits_over_all_places(logits, targets, pad_id):
    """Two mistakes at once: bits, and padding in the denominator."""
    return loss_by_where(logits, targets, pad_id) / math.log(2) * (targets != pad_id).float().mean()


def squared_pads(logits, targets, pad_id):
    """A penalty on the logits at padding."""
    padding = logits[targets == pad_id].masked_fill(logits[targets == pad_id].isinf(), 0.0)
    return loss_by_where(logits, targets, pad_id) + padding.square().mean()


def penalised_logits(logits, targets, pad_id):
    """A penalty on the size of the logits at real places."""
    real = logits[targets != pad_id]
    return loss_by_where(logits, targets, pad_id) + real.masked_fill(real.isinf(), 0.0).square().mean()


def smoothing_by_loops(targets, vocab_size, pad_id, smoothing):
    """Entry by entry."""
    rows = []
    for target in targets.tolist():
        row = [0.0] * vocab_size
        for token in range(vocab_size):
            if pad_id not in (target, token):
                row[token] = 1 - smoothing if token == target else smoothing / (vocab_size - 2)
        rows.append(row)
    return torch.tensor(rows)


def smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing):
    """A weighted sum of one-hot and uniform."""
    one_hot = functional.one_hot(targets, vocab_size).float()
    others = (1 - one_hot) * (torch.arange(vocab_size) != pad_id)
    shares = (1 - smoothing) * one_hot + smoothing / (vocab_size - 2) * others
    return shares * (targets != pad_id)[:, None]


def smoothing_as_annotated(targets, vocab_size, pad_id, smoothing):
    """Scatter and index_fill, as is often done."""
    shares = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2))
    shares.scatter_(1, targets.unsqueeze(1), 1.0 - smoothing)
    shares[:, pad_id] = 0
    return shares.index_fill(0, torch.nonzero(targets == pad_id).flatten(), 0.0)


def shares_by_rank(targets, vocab_size, pad_id, smoothing):
    """Gives one wrong word twice the share of another."""
    shares = smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing)
    ramp = torch.where(shares < 0.5, torch.linspace(0.5, 1.5, vocab_size), 1.0)
    low = (shares * ramp).masked_fill(shares >= 0.5, 0.0)
    fixed = low / low.sum(1, keepdim=True).clamp(min=1e-9) * smoothing + shares.masked_fill(shares < 0.5, 0.0)
    return fixed * (targets != pad_id)[:, None]


def halved(targets, vocab_size, pad_id, smoothing):
    """Everything is half of what it should be."""
    return smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing) / 2


def a_little_for_padding(targets, vocab_size, pad_id, smoothing):
    """Padding gets a thousandth."""
    shares = smoothing_by_one_hot(targets, vocab_size, pad_id, smoothing)
    shares[:, pad_id] += 1e-3
    return shares


def rate_by_branches(step, d_model, warmup, factor):
    """An if instead of a minimum."""
    peak = factor / math.sqrt(d_model * warmup)
    step = step or 1
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)


def rate_by_torch(step, d_model, warmup, factor):
    """Tensors, in double precision."""
    step = torch.tensor(max(step, 1), dtype=torch.float64)
    return factor * d_model**-0.5 * torch.minimum(step.rsqrt(), step * warmup**-1.5)


def quadratic_warmup(step, d_model, warmup, factor):
    """Rises with the square of the step."""
    step = max(step, 1)
    return factor * d_model**-0.5 * min(step**-0.5, step**2 * warmup**-2.5)


def decays_with_the_cube_root(step, d_model, warmup, factor):
    """Falls too slowly."""
    rate = rate_by_branches(min(step, warmup), d_model, warmup, factor)
    return rate if step < warmup else rate * (warmup / step) ** (1 / 3)


def a_tenth_too_much_afterwards(step, d_model, warmup, factor):
    """Jumps when the warm-up ends."""
    return rate_by_branches(step, d_model, warmup, factor) * (1.1 if step >= warmup else 1)


RIGHT = {
    "training.teacher_forcing": (narrowed, token_by_token, without_end_marks),
    "training.masked_loss": (loss_by_loops, loss_of_selected_places, loss_by_where),
    "training.label_smoothing": (smoothing_by_loops, smoothing_by_one_hot, smoothing_as_annotated),
    "training.warmup_rate": (rate_by_branches, rate_by_torch),
}

STRAY = {
    "training.teacher_forcing": (
        (target_of_the_token_before, "target_comes_next"),
        (without_bos_of_the_last, "begins_with_bos"),
    ),
    "training.masked_loss": (
        (bits_over_all_places, "uniform_guess"),
        (squared_pads, "padding_does_not_matter"),
        (penalised_logits, "ignores_a_constant"),
    ),
    "training.label_smoothing": (
        (shares_by_rank, "equal_shares"),
        (halved, "rows_sum_to_one"),
        (a_little_for_padding, "padding_gets_nothing"),
    ),
    "training.warmup_rate": (
        (quadratic_warmup, "rises_straight"),
        (decays_with_the_cube_root, "falls_with_the_root"),
        (a_tenth_too_much_afterwards, "peaks_at_warmup"),
    ),
}
