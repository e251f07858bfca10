"""Exercise: what the keys and values of a model with grouped queries weigh."""

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def cache_bytes(n_layers: int, n_kv_heads: int, d_head: int, n_tokens: int, batch: int, window: int | None) -> int:
    """The bytes of all keys and values that a model keeps in bf16, two bytes a number."""
    kept = n_tokens if window is None else min(n_tokens, window)
    numbers_of_a_token = 2 * n_kv_heads * d_head  # a key and a value in each key/value head
    return 2 * batch * n_layers * kept * numbers_of_a_token


def reference(n_layers, n_kv_heads, d_head, n_tokens, batch, window):
    kept = range(n_tokens) if window is None else range(n_tokens)[-window:]
    return sum(batch * n_layers * n_kv_heads * d_head * 4 for _ in kept)


def _sizes(random, n_tokens):
    """Layers, key/value heads and their width, tokens and texts."""
    return drawn(random, 3, 4), drawn(random, 5, 6), drawn(random, 8, 10), n_tokens, one_of(random, (1, 7, 12))


exercise = Exercise(
    id="variants.cache_bytes",
    title="What the cache weighs",
    statement="""
A decoder has read `n_tokens` tokens of each of `batch` texts, and keeps all their keys and values, in every layer. How
many bytes is that in bf16, two bytes a number? The model has grouped queries: `n_kv_heads` key/value heads of width
`d_head` in each layer. With a `window` it keeps the last `window` tokens of each text only; `None` means that it keeps
all.

Then put in Llama 2 70B (80 layers, 8 key/value heads of width 128) with one text of 4,096 tokens and no window, and the
same model with as many key/value heads as query heads, 64.
""".strip(),
    reference=reference,
    solution=cache_bytes,
    explanation="""
The number of query heads does not occur: queries are used once and forgotten. For Llama 2 70B it is 1,342,177,280
bytes for each sequence, and eight times that with 64 key/value heads, 10.7 billion. The cache, not the parameters, is
what grouped queries make small.
""".strip(),
    cases=(
        Case(name="a cache that keeps everything", inputs=lambda random: (*_sizes(random, 11), None)),
        Case(name="a text shorter than the window", inputs=lambda random: (*_sizes(random, 11), drawn(random, 13, 15))),
        Case(name="a text longer than the window", inputs=lambda random: (*_sizes(random, 17), drawn(random, 13, 15))),
    ),
    hints="""
Write down what one token leaves behind in one layer. Whose heads matter, those of the queries?

A product of layers, rows, kept tokens, heads, width, two kinds of vectors, and bytes.

Tokens kept: all of them without a window, the smaller of the two numbers with one.
""",
    forbids=("account",),
    difficulty=1,
    minutes=10,
    section="09-variants",
)

exercise.mutations("""
keys_alone: "= 2 * n_kv_heads" -> "= n_kv_heads"
    You have half of it. What is kept besides the keys?
four_bytes: "return 2" -> "return 4"
    You count four bytes a number; bf16 has two.
one_layer: "n_layers * " -> ""
    You count one layer. Every layer has keys and values of its own.
one_row: "batch * " -> ""
    You count one sequence. Each row of the batch has its own cache.
one_head: "n_kv_heads * " -> ""
    You count one key/value head, as in multi-query attention. Here there are several.
no_window: " if window is None else min(n_tokens, window)" -> ""
    Right while everything is kept. What happens to tokens that have left the window?
always_the_window: "min(n_tokens, window)" -> "window"
    You count a full window even where the text is shorter than it.
nothing_without_window: "n_tokens if window is None else min(n_tokens, window)" -> "min(n_tokens, window or 0)"
    Right with a window. Without one your model keeps nothing, and it should keep everything.
window_on_top: "n_tokens if window is None else min(n_tokens, window)" -> "n_tokens + (window or 0)"
    You add the window to the text. It is a limit, not an addition.
all_pairs: "* kept" -> "* kept * n_tokens"
    You have a factor of the length too many: scores stand in a square table, keys in a list.
""")


@exercise.must_hold("Layers, key/value heads and width each enter once, as a factor.")
def factors(trial: Trial) -> str | None:
    *counts, window = trial.inputs
    for place, name in enumerate(("n_layers", "n_kv_heads", "d_head")):
        more = list(counts)
        more[place] *= 2
        ratio = trial.run(*more, window) / max(trial.value, 1)
        if abs(ratio - 2) > 1e-9:
            return f"Twice the {name} gives {ratio:.3g} times your bytes."
    return None


@exercise.must_hold("A text longer than the window keeps no more than the window.")
def window_limits(trial: Trial) -> str | None:
    n_layers, n_kv_heads, d_head, n_tokens, batch, window = trial.inputs
    if window is None:
        return None
    long, longer = (trial.run(n_layers, n_kv_heads, d_head, window + n_tokens + n, batch, window) for n in (0, 50))
    return None if long == longer else f"Fifty tokens beyond the window add {longer - long:,} bytes."
