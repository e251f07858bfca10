"""Exercise: one step of decoding with a key/value cache."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.attention import scaled_dot_product_attention
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Finding, Trial
from ttutor.exercises.probes import causal


def attend_with_cache(
    hidden: Float[Tensor, "batch new d_model"],
    cached_key: Float[Tensor, "batch cached d_head"],
    cached_value: Float[Tensor, "batch cached d_head"],
    position_table: Float[Tensor, "max_len d_model"],
    w_query: Float[Tensor, "d_head d_model"],
    w_key: Float[Tensor, "d_head d_model"],
    w_value: Float[Tensor, "d_head d_model"],
) -> tuple[Float[Tensor, "batch new d_head"], Float[Tensor, "batch keys d_head"], Float[Tensor, "batch keys d_head"]]:
    """Give the context of the new tokens, and the keys and values of all tokens so far."""
    n_cached, n_new = cached_key.shape[1], hidden.shape[1]
    hidden = hidden + position_table[n_cached : n_cached + n_new]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    mask = torch.ones(n_new, n_cached + n_new, dtype=torch.bool).tril(diagonal=n_cached)
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, mask), key, value


def reference(hidden, cached_key, cached_value, position_table, w_query, w_key, w_value):
    first, end = cached_key.shape[1], cached_key.shape[1] + hidden.shape[1]
    hidden = hidden + position_table[first:end]
    key = torch.cat([cached_key, hidden @ w_key.T], dim=1)
    value = torch.cat([cached_value, hidden @ w_value.T], dim=1)
    return scaled_dot_product_attention(hidden @ w_query.T, key, value, causal=True), key, value


def _call(generator, *, n_cached, n_new):
    """A call in which n_new tokens arrive after n_cached."""
    batch, d_head = drawn(generator, 2, 3), drawn(generator, 9, 11)
    d_model, max_len = drawn(generator, 12, 14), drawn(generator, 15, 20)
    hidden = 1.5 * torch.randn(batch, n_new, d_model, generator=generator)
    cached = 1.5 * torch.randn(2, batch, n_cached, d_head, generator=generator)
    position_table = torch.randn(max_len, d_model, generator=generator)
    maps = torch.randn(3, d_head, d_model, generator=generator) / d_model**0.5
    return hidden, cached[0], cached[1], position_table, *maps


def _prompt(generator):
    return _call(generator, n_cached=0, n_new=drawn(generator, 4, 6))


def _next_token(generator):
    return _call(generator, n_cached=drawn(generator, 5, 8), n_new=1)


def _two_more(generator):
    return _call(generator, n_cached=drawn(generator, 5, 6), n_new=drawn(generator, 3, 4))


exercise = Exercise(
    id="decoder.key_value_cache",
    title="Decoding with a key/value cache",
    statement="""
A decoder writes one token after another, and the keys and values of the old ones never change. Write one call of a
causal attention head (a single one, to keep the shapes small) that keeps them: `hidden` holds the new tokens only, the
cache holds the keys and values of all earlier ones, none at first.

The call adds to each new token its row of `position_table` (the first token ever stands at position 0), projects it to
query, key and value (weights as in `nn.Linear`), and lets it attend to all tokens up to itself, cached and new. It
returns three tensors: the context of the new tokens, and the keys and the values of all tokens so far, ready for the
next call. One new token may come, or several at once; the result must be what one call with the whole text would have
given. You may use `ttutor.attention.scaled_dot_product_attention`, or your own.
""".strip(),
    reference=reference,
    solution=attend_with_cache,
    cases=(
        Case(name="a prompt and an empty cache", inputs=_prompt),
        Case(name="one new token and several in the cache", inputs=_next_token),
        Case(name="several new tokens and several in the cache", inputs=_two_more),
    ),
    explanation="""
The length of the cache answers every question: where the new tokens stand, how many keys there are, and where the
diagonal of the mask begins. One new token needs no mask at all (it is the last), which is why code that is right for
single tokens can be wrong for a prompt. The cache is handed in and handed back, never kept: one function can serve many
texts.
""".strip(),
    hints="""
Which of query, key and value of an old token are needed when a new one arrives? And where does the new one stand in the
text?

The length of the cache answers three questions: at which row of the table to start, how many keys there are, and which
of them the first new token may see. Try all three on paper with four cached and three new tokens.

Add the rows from `n_cached` on to `hidden`; project; put old and new keys one after the other along the axis of tokens,
values alike; attend with a mask of `n_new` rows and `n_cached + n_new` columns whose diagonal starts at column
`n_cached`.
""",
    forbids=("KeyValueCache", "LayerCache", "DecoderCache", "AttentionHead"),
    difficulty=3,
    minutes=30,
    section="06-decoder",
)

exercise.mutations("""
pos0: "[n_cached : n_cached + n_new]" -> "[:n_new]"
    Right for the prompt, wrong from then on: each new call counts positions from 0 again. How long is the cache
    already?
pos_plus_1: "[n_cached : n_cached + n_new]" -> "[n_cached + 1 : n_cached + n_new + 1]"
    Your positions are one too high: with nothing in the cache, the first token stands at position 0.
same_position: "[n_cached : n_cached + n_new]" -> "[n_cached]"
    Right for one new token; of several, all get the position of the first. New tokens stand side by side: how many rows
    of the table does the call need?
overwrite: "[cached_key, hidden @ w_key.T]" -> "[hidden @ w_key.T]",
  "[cached_value, hidden @ w_value.T]" -> "[hidden @ w_value.T]",
  "n_new, n_cached + n_new, dtype" -> "n_new, n_new, dtype", "diagonal=n_cached" -> ""
    New tokens see only one another: the cache is replaced, never extended. How many keys should there be when four are
    cached and two come in?
returns_new_only: "mask), key, value" -> "mask), hidden @ w_key.T, hidden @ w_value.T"
    Your context is right, but you hand back the new keys and values alone; in the next call all earlier tokens will be
    forgotten.
prepend: "[cached_key, hidden @ w_key.T]" -> "[hidden @ w_key.T, cached_key]"
    New keys come first and new values last, so that key and value of a token no longer stand at the same place. At
    which end does a text grow?
v_stale: "torch.cat([cached_value, hidden @ w_value.T], dim=1)" -> "cached_value if n_cached else hidden @ w_value.T",
  "scaled_dot_product_attention(hidden @ w_query.T, key, value, mask)" ->
  "(hidden @ w_query.T @ key.mT / len(w_key) ** 0.5).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ value"
or: "torch.cat([cached_value, hidden @ w_value.T], dim=1)" -> "cached_value if n_cached else hidden @ w_value.T",
  "key, value, mask)" -> "key[:, : value.shape[1]], value, mask[:, : value.shape[1]])"
or: "hidden @ w_value.T]" -> "hidden @ w_value.T * (n_cached == 0)]"
    Right while the cache is empty; then there are fewer values than keys, which raises an error or leaves the new
    tokens without a say. Print both shapes: which of the two does not grow?
tril_no_offset: "diagonal=n_cached" -> ""
    With five tokens cached, your new token sees only key 0: the mask's diagonal starts in the upper left corner. The
    last query belongs to the last key, so where must it start?
mask_of_new_only: "n_new, n_cached + n_new, dtype" -> "n_new, n_new, dtype", "diagonal=n_cached" -> "",
  "scaled_dot_product_attention(hidden @ w_query.T, key, value, mask)" ->
  "(hidden @ w_query.T @ key.mT / len(w_key) ** 0.5).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ value"
    Right for a first call and for single tokens, an error for two tokens after a cache: your mask has columns for the
    new keys only. How many keys are there?
no_mask: "value, mask)" -> "value)"
    Tokens that come in together see one another in both directions. One new token needs no mask, several do: each may
    look back, none ahead.
no_mask_for_the_prompt: "value, mask)" -> "value, mask if n_cached else None)"
    With an empty cache your tokens see the future: the prompt is read without a mask. Being the first call is no reason
    to look ahead.
squeezed: "value, mask)" -> "value, mask).squeeze()"
    With one new token your context loses an axis. A single token is still a sequence, of length one: look for `squeeze`
    or an index where a slice should be.
no_scale: "value, mask)" -> "value, mask, scale=1.0)"
    The cache is right, the weights are too sharp: the scores are not divided by √d_head.
inplace: "hidden = hidden + position" -> "hidden += position"
    Your result is right, but adding the positions has changed `hidden` for whoever called you: `+=` edits the tensor
    itself.
""")


@exercise.must_hold(
    "What is cached stays as it is, in front, and the new comes after it: along which axis and in which order do you "
    "put them together?"
)
def past_is_kept(trial: Trial) -> str | None:
    _, cached_key, cached_value = trial.inputs[:3]
    for name, before, after in zip(("keys", "values"), (cached_key, cached_value), trial.value[1:], strict=True):
        if not torch.equal(after[:, : before.shape[1]], before):
            return f"The {name} of the tokens that were cached are not where they were."
    return None


@exercise.must_hold(
    "Queries are compared with keys and receive values, and each of the three has a map of its own: which weight "
    "stands where in your code?"
)
def maps_in_their_places(trial: Trial) -> str | None:
    hidden, cached_key, cached_value, table, w_query, w_key, w_value = trial.inputs
    silent = torch.zeros_like(w_query)
    n_cached, no_keys = cached_key.shape[1], torch.zeros_like(cached_key)
    if trial.run(hidden, cached_key, cached_value, table, w_query, silent, w_value)[1][:, n_cached:].any():
        return "With `w_key` at zero, the new keys are not zero."
    if trial.run(hidden, cached_key, cached_value, table, w_query, w_key, silent)[2][:, n_cached:].any():
        return "With `w_value` at zero, the new values are not zero."
    mean = trial.run(hidden, no_keys, cached_value, table, silent, silent, w_value)[0]
    for what, key, maps in (("`w_query`", cached_key, (silent, w_key)), ("every key", no_keys, (w_query, silent))):
        context, _, _ = trial.run(hidden, key, cached_value, table, *maps, w_value)
        if (context - mean).abs().max() > 1e-4:
            return f"With {what} at zero all scores are equal, but your context is no plain mean of values."
    return None


@exercise.must_hold(
    "Each new token gets its own row of the table, added before anything else happens: which rows do you take, and "
    "what do you do with them?"
)
def positions_are_added(trial: Trial) -> str | None:
    hidden, cached_key, cached_value, table, *maps = trial.inputs
    start = cached_key.shape[1]
    placed = hidden + table[start : start + hidden.shape[1]]
    beforehand = trial.run(placed, cached_key, cached_value, torch.zeros_like(table), *maps)
    pairs = zip(beforehand, trial.value, strict=True)
    gap = max((one - other).abs().max().item() for one, other in pairs)
    if gap < 1e-4:
        return None
    return f"Adding the tokens' rows beforehand, and giving a table of zeros, changes your result by up to {gap:.2g}."


@exercise.must_hold(
    "Tokens that arrive together still may not see ahead: which cells of your mask are open?", id="causal"
)
def _token_that_is_seen_too_early(trial: Trial) -> str | Finding | None:
    of_context = Trial(run=lambda *inputs: trial.run(*inputs)[0], inputs=trial.inputs, value=trial.value[0])
    return causal("").broken(of_context)


@exercise.must_hold("Every new token may look at everything that is cached: which keys does your mask leave it?")
def sees_the_past(trial: Trial) -> str | None:
    hidden, cached_key, cached_value, *rest = trial.inputs
    if cached_key.shape[1] == 0:
        return None
    changed = cached_value.clone()
    changed[:, 0] += 5
    moved = (trial.run(hidden, cached_key, changed, *rest)[0] - trial.value[0]).abs().amax(dim=-1)
    return (
        None if (moved > 1e-6).all() else "A change of the first cached value leaves a new token's context as it was."
    )


@exercise.must_hold(
    "It should not matter in which portions the tokens arrive: what in your code depends on how many come at once?"
)
def steps_equal_one_call(trial: Trial) -> str | None:
    hidden, key, value, *rest = trial.inputs
    contexts = []
    for place in range(hidden.shape[1]):
        context, key, value = trial.run(hidden[:, place : place + 1], key, value, *rest)
        contexts.append(context)
    gap = (torch.cat(contexts, dim=1) - trial.value[0]).abs().max().item()
    return (
        None if gap < 1e-4 else f"One by one, the same tokens get contexts that differ from these by up to {gap:.2g}."
    )
