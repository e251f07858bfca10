"""Exercise: the causal mask, for a whole text and for the newest tokens of one whose keys are kept."""

import torch
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor

from ttutor import masks
from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Finding, Trial


def causal_mask(n_queries: int, n_keys: int) -> Bool[Tensor, "queries keys"]:
    """True where a query may look: at itself and at all that came before. The last query stands at the last key."""
    query_position = torch.arange(n_keys - n_queries, n_keys)
    key_position = torch.arange(n_keys)
    return key_position <= rearrange(query_position, "queries -> queries 1")


def reference(n_queries, n_keys):
    return masks.causal_mask(n_queries, n_keys)


def _first(trial: Trial, fault: Tensor, clause: str) -> Finding | None:
    """Tell of the first fault in the table, and draw the table where it is small."""
    n_queries, n_keys = trial.inputs
    if not fault.any():
        return None
    query, key = fault.nonzero()[0].tolist()
    text = f"Query {query} stands at key {query + n_keys - n_queries} and {clause.format(key)}."
    return Finding(text, trial.value, masks.causal_mask(n_queries, n_keys)) if n_keys < 20 else Finding(text)


def _newest(generator):
    """The newest few tokens of a text."""
    n_queries = drawn(generator, 3, 5)
    return n_queries, n_queries + drawn(generator, 3, 6)


exercise = Exercise(
    id="attention.causal_mask",
    title="Look back, never ahead",
    statement="""
Draw the mask that keeps a language model from reading its own answer: a bool tensor `queries keys`, True where a query
may look. Each token may look at itself and at every token before it.

There may be more keys than queries: while a text is being written, the keys of earlier tokens are kept and only the
newest tokens ask. The queries are then the *last* tokens, and the last query stands at the last key.
""".strip(),
    reference=reference,
    solution=causal_mask,
    explanation="""
Query $i$ stands at key $i + n_\\mathrm{keys} - n_\\mathrm{queries}$, since the last query stands at the last key.
With as many keys as queries the offset is 0, and this is the familiar lower triangle; with one query and a cache it
is a row of True. A mask that begins in the corner whatever the sizes trains well and writes nonsense as soon as a
cache is used.
""".strip(),
    cases=(
        Case(name="a few queries and more keys", inputs=_newest),
        Case(name="one query and over 2,000 keys", inputs=lambda generator: (1, drawn(generator, 2050, 2150))),
    ),
    hints=r"""
Draw it on paper for 3 queries and 7 keys. At which key does the last query stand, at which the first?

Query $i$ stands at key $i + n_\mathrm{keys} - n_\mathrm{queries}$. It may see key $j$ if $j$ is not larger.

Make one row of key positions and one column of query positions, and compare them; broadcasting does the rest. Or take
`tril` of a table of ones, with its diagonal moved to the right.
""",
    forbids=("causal_mask", "generate_square_subsequent_mask", "CAUSAL", "window_mask"),
    difficulty=1,
    minutes=10,
    section="02-attention",
)

exercise.mutations("""
off_by_one_strict: "<=" -> "<"
    A token may not look at itself in your mask; the first token of a text would see nothing at all, and its softmax
    give NaN. Is the diagonal yours or the future's?
off_by_one_loose: "key_position <=" -> "key_position - 1 <="
    A token sees the one after it: the model can read its own answer. The training loss would be suspiciously low. Where
    does your diagonal begin?
triu: "<=" -> ">="
    You kept the future and removed the past. Which triangle of the table lies before a query?
inverted: "<=" -> ">"
    The right triangle with the opposite meaning: here True means 'may attend'.
no_cache_offset: "n_keys - n_queries, n_keys" -> "n_queries"
    With a single query, the newest token should see all keys; yours sees the first alone. The last query stands at the
    last key: by how much must the diagonal move?
no_cache_offset_inverted: "n_keys - n_queries, n_keys" -> "n_queries", "<=" -> ">"
    Two things: True means 'may attend' here, so the mask is upside down; and with more keys than queries the diagonal
    does not begin in the corner. Where does the last query stand?
offset_by_keys: "n_keys - n_queries, n_keys" -> "n_keys, n_keys + n_queries"
    Your diagonal moves so far that every query sees every key. It should move by the number of tokens that came before
    the first query.
sign_of_offset: "n_keys - n_queries, n_keys" -> "n_queries - n_keys, 2 * n_queries - n_keys"
    Your diagonal moves the wrong way, down instead of right, and queries see nothing. Look at the sign of the offset.
mirrored: "torch.arange(n_keys)" -> "torch.arange(n_keys).flip(0)"
    Your triangle stands on the wrong side: columns are keys from first to last, so the oldest is on the left.
ones_and_zeros: "return key" -> "return 1.0 * (key", '1")' -> '1"))'
or: "return key" -> "return 1 * (key", '1")' -> '1"))'
    The right pattern, in numbers. The function promises bool; with `~` or `masked_fill` numbers give errors or
    nonsense.
swapped_shape: "return key" -> "return (key", '1")' -> '1")).mT'
or: "n_queries, n_keys)" -> "n_queries, 2 * n_keys - n_queries)", "arange(n_keys)" -> "arange(n_queries)"
    The shape should be `queries keys`: one row for each query. Yours has a row for each key.
square: "n_keys - n_queries, " -> ""
or: "n_keys - n_queries, n_keys" -> "n_queries", "arange(n_keys)" -> "arange(n_queries)"
    Your mask is square. With kept keys there are fewer queries than keys, and the shape should be `queries keys`.
extra_batch: "queries -> queries 1" -> "queries -> 1 queries 1"
or: "queries -> queries 1" -> "queries -> 1 1 queries 1"
    There are extra axes in front: broadcasting will add them where they are needed. Please return `queries keys`.
squeezed: "return key" -> "return (key", '1")' -> '1")).squeeze(0)'
    With a single query the axis of the queries is gone. A mask of one row still has two axes.
as_a_list: "return key" -> "return (key", '1")' -> '1")).tolist()'
    The right entries, as Python lists. Attention needs a tensor of bool.
""")


@exercise.mistake(
    "Right for a single query, but a chunk of three new tokens sees only the oldest keys. One rule covers both: the "
    "last query stands at the last key."
)
def one_query_only(n_queries, n_keys):
    mask = torch.ones(n_queries, n_keys, dtype=torch.bool)
    return mask if n_queries == 1 else mask.tril()


@exercise.mistake(
    "The newest tokens see hardly more than each other; the keys that were kept are hidden. They came before all "
    "queries."
)
def only_new_keys(n_queries, n_keys):
    """The triangle stands at the right place, but everything before it is hidden."""
    offset = n_keys - n_queries
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(offset).triu(offset - n_queries + 1)


@exercise.mistake(
    "This is an additive mask, numbers to be added to scores. The function promises a bool one, True where a query may "
    "look."
)
def additive(n_queries, n_keys):
    return torch.full((n_queries, n_keys), -torch.inf).triu(n_keys - n_queries + 1)


@exercise.mistake(
    "Your mask is cut from a table of fixed size, so that a text longer than it gets too small a mask and no warning. "
    "Make it from the two numbers that you are given."
)
def table_of_1024(n_queries, n_keys):
    table = torch.ones(1024, 1024, dtype=torch.bool).tril()
    return table[n_keys - n_queries : n_keys, :n_keys]


@exercise.must_hold("No query should see a key that comes after it. At which key does each query stand?")
def never_ahead(trial: Trial) -> Finding | None:
    return _first(trial, trial.value & ~masks.causal_mask(*trial.inputs), "sees key {}, which comes later")


@exercise.must_hold("Each query should see itself and everything before it, kept keys included.")
def all_of_the_past(trial: Trial) -> Finding | None:
    return _first(trial, masks.causal_mask(*trial.inputs) & ~trial.value, "does not see key {}")
