"""Exercise: how many scores a causal window with global tokens computes."""

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def window_entries(n_tokens: int, window: int, n_global: int) -> int:
    """How many pairs of a query and a key a causal window leaves, if the first tokens are seen by all."""

    def ramp(n_rows: int, limit: int) -> int:
        """1 + 2 + 3 + ..., one term a row, no term above the limit."""
        rising = min(n_rows, limit)
        return rising * (rising + 1) // 2 + (n_rows - rising) * limit

    beyond = max(0, n_tokens - window)  # rows whose window does not reach the beginning
    return ramp(n_tokens, window) + ramp(beyond, n_global)


def reference(n_tokens, window, n_global):
    return sum(min(i + 1, window) + max(0, min(n_global, i + 1 - window)) for i in range(n_tokens))


exercise = Exercise(
    id="efficient.window_entries",
    title="What a window leaves",
    statement="""
Every token sees itself and the `window - 1` tokens before it, and nothing after it. Besides, the first `n_global`
tokens are seen by everybody who comes after them (they themselves see nothing ahead either). How many pairs of a query
and a key is that in a text of `n_tokens`? Count exactly; a pair counts once, also where it is allowed for two reasons.
The text may be shorter than the window. Try to do without a table of `n_tokens` by `n_tokens`.
""".strip(),
    reference=reference,
    solution=window_entries,
    explanation="""
Row $i$ (counted from 0) sees $\\min(i + 1, w)$ keys in its window. A global token adds something only where the window
no longer covers it: $\\min(g, i + 1 - w)$ in rows beyond the first $w$. Both sums are a ramp that ends in a plateau, so
one helper does for both. For long texts it is $T(w + g)$ less a constant: linear in $T$.
""".strip(),
    cases=(
        Case(
            name="a text many windows long",
            inputs=lambda random: (drawn(random, 150, 300), drawn(random, 9, 20), drawn(random, 3, 8)),
        ),
        Case(
            name="a text shorter than its window",
            inputs=lambda random: (drawn(random, 10, 40), drawn(random, 41, 60), drawn(random, 3, 8)),
        ),
    ),
    hints="""
Draw the table for six tokens, a window of two and one global token, and count row by row.

How many keys has row i in its window? And how many global keys has it that are not in the window?

Both counts rise by one from row to row until they reach a limit. Sum a ramp, then a plateau.
""",
    difficulty=1,
    minutes=15,
    section="11-efficient",
)

exercise.mutations("""
no_globals: " + ramp(beyond, n_global)" -> ""
    The window is counted right. Where are the global tokens?
upper_bound: "ramp(n_tokens, window) + ramp(beyond, n_global)" -> "n_tokens * (window + n_global)"
    That is an upper bound, as if every row were full and no pair were allowed twice.
full_rows: "ramp(n_tokens, window)" -> "n_tokens * min(window, n_tokens)"
    The first rows cannot see a whole window: there is nothing before the text.
counted_twice: "ramp(beyond, n_global)" -> "ramp(n_tokens, n_global)"
    A global token that lies in the window is one pair, and you count it twice.
globals_in_every_row: "ramp(beyond, n_global)" -> "n_global * n_tokens"
    You add all global tokens to each row, also where they are in the window or still to come.
globals_look_ahead: "ramp(beyond, n_global)" -> "ramp(beyond, n_global) + sum(range(n_tokens)[::-1][:n_global])"
    Your global tokens see the whole text. In this task they are seen, and look at the past alone.
one_more: "ramp(n_tokens, window)" -> "ramp(n_tokens, window + 1)", "n_tokens - window" -> "n_tokens - window - 1"
    Your window is one too wide: the token itself is one of the keys in it.
without_itself: "ramp(n_tokens, window)" -> "ramp(n_tokens, window) - n_tokens"
    You are short by one for each token. Does a token see itself?
whole_triangle: "ramp(n_tokens, window) + ramp(beyond, n_global)" -> "ramp(n_tokens, n_tokens)"
    That is the whole causal triangle; right only where the window covers everything.
whole_square: "ramp(n_tokens, window) + ramp(beyond, n_global)" -> "n_tokens**2"
    That is the whole table, past and future.
steady_globals: "ramp(beyond, n_global)" -> "n_global * beyond"
    Right in the window. Just beyond it only some of the global tokens have left it; you add all.
formula_of_long_texts: "min(n_rows, limit)" -> "limit", "max(0, n_tokens - window)" -> "n_tokens - window"
    Right for long texts. Your formula goes on below the lengths at which its ramps are complete.
""")


@exercise.mistake("Your window looks ahead as well. A causal window has one side.")
def both_sides(n_tokens, window, n_global):
    return sum(
        len({j for j in range(n_tokens) if abs(i - j) < window} | set(range(min(n_global, i + 1))))
        for i in range(n_tokens)
    )


@exercise.must_hold("A window longer than the text leaves the whole causal triangle.")
def short_text(trial: Trial) -> str | None:
    n_tokens, _, n_global = trial.inputs
    found, right = trial.run(n_tokens, n_tokens + 3, n_global), n_tokens * (n_tokens + 1) // 2
    return None if found == right else f"With a window of {n_tokens + 3} your {n_tokens} tokens have {found} pairs."


@exercise.must_hold("Far from the beginning each further token adds as many pairs as it sees keys.")
def one_more_token(trial: Trial) -> str | None:
    n_tokens, window, n_global = trial.inputs
    long = window + n_global + n_tokens
    more = trial.run(long + 1, window, n_global) - trial.run(long, window, n_global)
    right = window + n_global
    return None if more == right else f"At {long:,} tokens one more adds {more:,} pairs; it sees {right:,} keys."
