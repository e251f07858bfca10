"""Exercise: the padding mask, which hides what only fills up a batch."""

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor import masks
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Property, Trial


def padding_mask(token_ids: Int[Tensor, "batch tokens"], pad_id: int) -> Bool[Tensor, "batch 1 1 tokens"]:
    """True where a key is a real token and may be looked at, False where it is padding."""
    return rearrange(token_ids != pad_id, "batch tokens -> batch 1 1 tokens")


def reference(token_ids, pad_id):
    return masks.padding_mask(token_ids, pad_id)


def _rows(generator, pad_id, *, left):
    """Sentences of as many lengths, padded on one side; ids 0 to 9, the pad's own left out."""
    n_sentences, width = drawn(generator, 3, 5), drawn(generator, 7, 9)
    lengths = (width - torch.randperm(n_sentences, generator=generator)).tolist()
    token_ids = torch.randint(9, (n_sentences, width), generator=generator)
    token_ids[token_ids >= pad_id] += 1
    token_ids[:, 2:5] = torch.tensor([0, 9, 0 if pad_id else 9])  # ids below and above that of the padding
    for row, length in zip(token_ids, lengths, strict=True):
        row[slice(0, width - length) if left else slice(length, width)] = pad_id
    return token_ids, pad_id


def _neighbour_that_matters(trial: Trial) -> str | None:
    """Turn every row round: the mask must turn with it."""
    token_ids, pad_id = trial.inputs
    turned = trial.run(token_ids.flip(-1), pad_id).flip(-1)
    moved = (turned != trial.value).nonzero()
    if not len(moved):
        return None
    row, *_, token = moved[0].tolist()
    return f"With the tokens of each row in reverse order, sentence {row} hides others: token {token} for one."


def _token_on_the_wrong_side(trial: Trial) -> str | None:
    """Find a word that is hidden, or padding that is not."""
    token_ids, pad_id = trial.inputs
    wrong_side = (trial.value[:, 0, 0] != (token_ids != pad_id)).nonzero()
    if not len(wrong_side):
        return None
    row, token = wrong_side[0].tolist()
    token_id = token_ids[row, token].item()
    kind = "padding and visible" if token_id == pad_id else "a word and hidden"
    return f"Token {token} of sentence {row} has the id {token_id} while pad_id is {pad_id}: it is {kind}."


exercise = Exercise(
    id="attention.padding_mask",
    title="Nobody looks at padding",
    statement="""
Sentences of unequal length share a batch by being filled up with a padding token. Draw the mask that keeps every query
from looking at it: bool, True where a key is a real token, with the axes `batch 1 1 tokens`, so that it broadcasts to
`batch heads queries keys`. The padding may have any id and may stand on either side.
""".strip(),
    reference=reference,
    solution=padding_mask,
    explanation="""
Each id is compared with the padding's by itself, so that it does not matter where the padding stands. The mask has
the axis of the *keys*: it says who may be looked at. What a padded position itself computes is never read, and
hiding it as a query too would make rows that see nothing.
""".strip(),
    cases=(
        Case(name="padding on the right", inputs=lambda generator: _rows(generator, 4, left=False)),
        Case(name="padding on the left", inputs=lambda generator: _rows(generator, 3, left=True)),
    ),
    hints="""
Which tokens are padding can be read off the ids one by one. The other question is which axis of `batch heads queries
keys` the tokens of this mask stand on.

Compare the ids with `pad_id`: that gives `batch tokens`. Padding must not be *looked at*, so the tokens are keys, the
last axis; heads and queries are in between, with size one.

One comparison with `!=`, then `rearrange(..., "batch tokens -> batch 1 1 tokens")`.
""",
    properties=[
        Property(
            id="each_token_by_itself",
            says="Whether a token is padding depends on its own id and `pad_id` alone, not on its neighbours.",
            broken=lambda trial: _neighbour_that_matters(trial),
        ),
        Property(
            id="hides_padding",
            says="Every padding token should be hidden, and no other. Which comparison do you make?",
            broken=lambda trial: _token_on_the_wrong_side(trial),
        ),
    ],
    forbids=("padding_mask", "lengths_mask"),
    difficulty=1,
    minutes=10,
    section="02-attention",
)

exercise.mutations("""
query_axis: " batch 1 1 tokens" -> " batch 1 tokens 1"
    Your mask hides queries, the rows. Padding must be hidden as *keys*: on which of the four axes do they stand?
no_dims: " batch 1 1 " -> " batch 1 "
or: " batch 1 1" -> " 1 1 batch"
or: 'rearrange(token_ids != pad_id, "batch tokens -> batch 1 1 tokens")' -> "token_ids != pad_id"
    `batch tokens` broadcasts against `batch heads queries keys` on the wrong axes, without an error where batch and
    queries have the same size. Add the axes of heads and queries.
inverted: "!=" -> "=="
    You mark the padding as visible and hide the words. Here True means 'may attend'.
full_size: 'tokens")' -> 'tokens").expand(-1, -1, token_ids.shape[1], -1)'
    Right, but drawn in full for every query. A mask that is the same for all of them can keep that axis at size one and
    broadcast; `batch heads queries keys` numbers fill memory fast.
both_axes: "return " -> 'return rearrange(token_ids != pad_id, "batch tokens -> batch 1 tokens 1") & '
    You hide padding as keys and as queries. A padded query then sees nothing, which needs a guard everywhere; what it
    computes is never read, so hide keys alone.
hard_coded_0: "token_ids != pad_id" -> "token_ids != 0"
or: "token_ids != pad_id" -> "token_ids > 0"
    You take the padding to have id 0, which is a word like others here. Use the argument.
larger_than_pad: "!=" -> ">"
or: "!=" -> "<"
    You take every id on one side of `pad_id` for padding. Only equality counts: other tokens may have smaller ids, and
    larger ones.
counts_from_left: "token_ids != pad_id" ->
  "torch.arange(token_ids.shape[1]) < (token_ids != pad_id).sum(dim=1, keepdim=True)"
or: "token_ids != pad_id" -> "~((token_ids == pad_id).cumsum(dim=1) > 0)"
    You count the real tokens of a row and call the first so many visible. That is right for padding on the right; these
    rows are padded on the left, as for generation. Ask each token by itself.
counts_from_right: "token_ids != pad_id" ->
  "torch.arange(token_ids.shape[1]) >= (token_ids == pad_id).sum(dim=1, keepdim=True)"
    You count the real tokens of a row and call the last so many visible. These rows are padded on the right. Ask each
    token by itself.
longest_row: "token_ids != pad_id" -> "(token_ids != pad_id).any(dim=0).expand_as(token_ids)"
or: "token_ids != pad_id" -> "(token_ids != pad_id).all(dim=0).expand_as(token_ids)"
    One pattern for all rows: a column counts as visible when any row, or every row, has a word there. Each sentence has
    its own padding.
additive: "token_ids != pad_id" -> "torch.zeros(token_ids.shape).masked_fill(token_ids == pad_id, -torch.inf)"
or: "token_ids != pad_id" -> "(token_ids == pad_id) * -1e9"
    These are numbers to be added to scores. The function promises a bool mask, True where a key may be seen.
ones_and_zeros: "token_ids != pad_id" -> "(token_ids != pad_id).float()"
or: "token_ids != pad_id" -> "(token_ids != pad_id).long()"
    The right pattern, in numbers. The function promises bool; with `~` or `masked_fill` numbers give errors or
    nonsense.
masked_ids: "token_ids != pad_id" -> "token_ids.masked_fill(token_ids == pad_id, 0)"
    You return token ids with the padding replaced. A mask says yes or no for each token.
inplace: "token_ids != pad_id" -> "token_ids.sub_(pad_id) != 0"
    The mask is right, but the token ids you were given have changed: the model would embed the changed ones.
""")
