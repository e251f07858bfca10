"""What is true of every right attention, asked of an answer through the values that it is given."""

import torch
from torch import Tensor

from ttutor.exercises.exercise import Property, Trial


def weights_of(trial: Trial) -> tuple[Tensor, Tensor] | None:
    """Read an answer's weights by giving it one-hot values, and the mask in full size beside them."""
    query, key, _, mask = (tensor.detach() for tensor in trial.inputs)
    *leading, n_keys, _ = key.shape
    one_hot = torch.eye(n_keys, dtype=key.dtype).expand(*leading, n_keys, n_keys)
    weights = trial.run(query, key, one_hot, mask)
    shape = (*query.shape[:-1], n_keys)
    if not isinstance(weights, Tensor) or tuple(weights.shape) != shape:
        return None
    return weights, mask.expand(shape)


def place(index: Tensor, shape: torch.Size) -> tuple[int, ...]:
    """Turn the index into a flattened tensor into one number for each axis."""
    return tuple(int(number) for number in torch.unravel_index(index, shape))


def _leak(trial: Trial) -> str | None:
    """Look for weight on a key that the mask hides."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    leaked = weights.abs().masked_fill(mask | ~mask.any(dim=-1, keepdim=True), 0.0)
    if leaked.max() < 1e-6:
        return None
    batch, head, query, key = place(leaked.argmax(), leaked.shape)
    return (
        f"In sentence {batch}, head {head}, query {query} gives key {key} the weight "
        f"{weights[batch, head, query, key].item():.2g}, although the mask hides it."
    )


def _sum_that_is_not_one(trial: Trial) -> str | None:
    """Look at the sums of the rows that see something."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    sums = weights.sum(dim=-1)
    distance = (sums - 1).abs().masked_fill(~mask.any(dim=-1), 0.0)
    if distance.max() < 1e-3:
        return None
    batch, head, query = place(distance.argmax(), distance.shape)
    return (
        f"In sentence {batch}, head {head}, the weights of query {query} sum to {sums[batch, head, query].item():.3g}."
    )


def _something_out_of_nothing(trial: Trial) -> str | None:
    """Look at the rows that may see nothing."""
    if (read := weights_of(trial)) is None:
        return None
    weights, mask = read
    given = weights.abs().sum(dim=-1).masked_fill(mask.any(dim=-1), 0.0)
    if given.max() == 0:
        return None
    batch, head, query = place(given.argmax(), given.shape)
    return f"In sentence {batch}, head {head}, query {query} may see nothing, yet gives out weight."


def _order_of_keys(trial: Trial) -> str | None:
    """Give keys, values and mask in another order: nothing may change."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    mask = mask.expand(*mask.shape[:-1], key.shape[-2])
    before = trial.run(query, key, value, mask)
    after = trial.run(query, key.flip(-2), value.flip(-2), mask.flip(-1))
    moved = (after - before).abs().max().item()
    scale = before.abs().max().item()
    return (
        None
        if moved <= 1e-3 * scale
        else f"With keys, values and mask in reverse order an output moves by {moved:.2g}."
    )


def _size_of_query_against_key(trial: Trial) -> str | None:
    """Double the queries and halve the keys: every product stays as it is."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    before, after = trial.run(query, key, value, mask), trial.run(2 * query, key / 2, value, mask)
    moved = (after - before).abs().max().item()
    scale = before.abs().max().item()
    return (
        None if moved <= 1e-3 * scale else f"With queries twice and keys half as long an output moves by {moved:.2g}."
    )


def _scale(trial: Trial) -> str | None:
    """Read off the weights by what the products of query and key were divided."""
    query, key, value, mask = (tensor.detach() for tensor in trial.inputs)
    small = query / query.norm(dim=-1, keepdim=True), key / key.norm(dim=-1, keepdim=True), value, mask
    if (read := weights_of(Trial(run=trial.run, inputs=small, value=None))) is None:
        return None
    weights, mask = read
    if not mask.any() or (weights[mask] <= 0).any():
        return None
    products = small[0] @ small[1].mT
    centred = [_less_their_mean(rows, mask) for rows in (weights.log(), products)]
    slope = ((centred[0] * centred[1]).sum() / (centred[1] ** 2).sum()).item()
    right = query.shape[-1] ** -0.5
    return (
        None
        if abs(slope / right - 1) < 1e-2
        else f"Your scores are {slope / right:.2g} times as large as they should be."
    )


def _less_their_mean(rows: Tensor, mask: Tensor) -> Tensor:
    """Take the mean of its visible entries off every row, and put 0 at the others."""
    visible = rows.masked_fill(~mask, 0.0)
    mean = visible.sum(dim=-1, keepdim=True) / mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return (visible - mean).masked_fill(~mask, 0.0)


PROPERTIES = (
    Property(
        id="hides_what_the_mask_hides",
        says="A key that the mask hides should get no weight at all. True means 'may attend'; hide before the softmax.",
        broken=_leak,
    ),
    Property(
        id="weights_sum_to_one",
        says="The weights of each query should sum to 1 over the keys it may see. Along which axis do you normalise, "
        "and does anything come between softmax and values?",
        broken=_sum_that_is_not_one,
    ),
    Property(
        id="nothing_from_nothing",
        says="A query that may see no key should get zeros. What do your scores look like in such a row, and what "
        "does the softmax make of them?",
        broken=_something_out_of_nothing,
    ),
    Property(
        id="order_of_keys_is_free",
        says="Attention does not know in which order keys stand, as long as their values and the mask stand in the "
        "same. Does your code use an index where it should use the mask?",
        broken=_order_of_keys,
    ),
    Property(
        id="scores_are_products",
        says="Scores are products of query and key: what one gains the other may lose. Look at how you compare them.",
        broken=_size_of_query_against_key,
    ),
    Property(
        id="scale",
        says="The products of query and key should be divided by √d_head, which keeps their spread the same at every "
        "width. What else do you multiply or divide?",
        broken=_scale,
    ),
)
