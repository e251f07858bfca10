"""Exercise: from which length on a model's scores cost more than all its matrices."""

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.transformer.costs import crossover_length


def crossover(
    d_model: int, n_heads: int, n_kv_heads: int, d_head: int, d_ff: int, gated: bool, skips_hidden: bool
) -> float:
    """The length at which scores and blend cost as many operations as the rest of a block."""
    queries_and_output = 2 * d_model * n_heads * d_head
    keys_and_values = 2 * d_model * n_kv_heads * d_head
    feed_forward = (3 if gated else 2) * d_model * d_ff
    for_each_pair = 2 * n_heads * d_head * (0.5 if skips_hidden else 1.0)
    return (queries_and_output + keys_and_values + feed_forward) / for_each_pair


def _length(d_model, n_heads, n_kv_heads, d_head, d_ff, gated):
    return crossover_length(
        d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_head, d_ff=d_ff, gated=gated
    )


def reference(d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips_hidden):
    return (2 if skips_hidden else 1) * _length(d_model, n_heads, n_kv_heads, d_head, d_ff, gated)


def _sizes(random, *, gated, skips_hidden):
    d_head = drawn(random, 20, 60)
    n_kv_heads = drawn(random, 2, 4)
    n_heads = n_kv_heads * drawn(random, 3, 5)
    return drawn(random, 300, 700), n_heads, n_kv_heads, d_head, drawn(random, 900, 2000), gated, skips_hidden


exercise = Exercise(
    id="efficient.crossover",
    title="Your own crossover",
    statement="""
For the usual block the crossover is at $6d$. Work it out for any block: the length at which scores and blend together
cost as many operations as everything else in it (matrix products only). Heads times head width need not be `d_model`;
there may be fewer key/value heads; the feed-forward network may be `gated` (three matrices instead of two). With
`skips_hidden` the kernel leaves out what a causal mask hides, which for a long text is half of the pairs.
""".strip(),
    reference=reference,
    solution=crossover,
    explanation="""
For each token a matrix of $a$ by $b$ numbers costs $a\\,b$ multiply-adds; for each pair scores and blend cost
$h\\,d_\\text{head}$ each. So the rest for a token, divided by the cost of a pair, is the length at which a token's
pairs weigh as much as its matrices. Counting operations instead of multiply-adds doubles both and changes nothing.
Mixing the two is the likeliest way to be wrong by two.
""".strip(),
    cases=(
        Case(
            name="a plain block with grouped heads",
            inputs=lambda random: _sizes(random, gated=False, skips_hidden=False),
        ),
        Case(
            name="a gated block whose kernel skips",
            inputs=lambda random: _sizes(random, gated=True, skips_hidden=True),
        ),
    ),
    hints="""
What does one token cost in matrices, and what does one pair of tokens cost?

Count multiply-adds: four projections, two of which are narrower with fewer key/value heads; two or three matrices of
the feed-forward network. Then scores and blend for one pair, over all query heads.

With n tokens the rest is n times the first number, attention n² times the second. When are they equal?
""",
    forbids=("crossover_length",),
    difficulty=1,
    minutes=15,
    section="11-efficient",
)

exercise.mutations("""
six_widths: "(queries_and_output + keys_and_values + feed_forward) / for_each_pair" ->
  "(12.0 if skips_hidden else 6.0) * d_model"
    That holds for the usual sizes; this block has others.
never_gated: "(3 if gated else 2)" -> "2"
    Right for plain networks. A gated one has a third matrix.
always_gated: "(3 if gated else 2)" -> "3"
    Right for gated networks. A plain one has two matrices.
all_heads: "n_kv_heads * d_head" -> "n_heads * d_head"
    You give keys and values as many heads as the queries have. Their projections are narrower here.
width_for_heads: "for_each_pair = 2 * n_heads * d_head" -> "for_each_pair = 2 * d_model"
    Your cost of a pair uses `d_model`. What a pair multiplies is as wide as all heads together.
no_output: "output = 2 * d_model" -> "output = d_model"
    One projection is missing: after the heads there is one more matrix.
no_feed_forward: " + feed_forward)" -> ")"
    You count attention's own matrices. The block has a feed-forward network as well.
feed_forward_alone: "queries_and_output + keys_and_values + " -> ""
    You count the feed-forward network alone. The four projections belong to the rest too.
scores_alone: "pair = 2 * n_heads" -> "pair = n_heads"
    Twice too long: a pair costs its score and its part in the blend.
half_everything: "/ for_each_pair" -> "/ for_each_pair / 2"
    Half of it. Do you count operations on one side and multiply-adds on the other?
never_skips: " * (0.5 if skips_hidden else 1.0)" -> ""
    Right where every pair is computed. A kernel that skips half of them needs a longer text.
skips_the_wrong_way: "(0.5 if" -> "(2.0 if"
    Cheaper pairs move the crossover out, not in.
""")


@exercise.must_hold("The usual block should cross at six times its width.")
def usual_block(trial: Trial) -> str | None:
    found = trial.run(128, 4, 4, 32, 512, False, False)
    return None if abs(found - 768) < 1e-6 else f"A usual block of width 128 crosses at 768 tokens; yours at {found:g}."


@exercise.must_hold("The crossover grows along a straight line with the feed-forward network's width.")
def straight_line(trial: Trial) -> str | None:
    d_model, n_heads, n_kv_heads, d_head, d_ff, gated, skips = trial.inputs
    first, second, third = (trial.run(d_model, n_heads, n_kv_heads, d_head, k * d_ff, gated, skips) for k in (1, 2, 3))
    if abs((third - second) - (second - first)) < 1e-6 * abs(third) and second > first:
        return None
    return "Each widening of the feed-forward network by the same amount should move the crossover by the same amount."
