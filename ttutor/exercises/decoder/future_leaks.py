"""Exercise: a test that finds what leaks from the future, whatever the code looks like."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Finding, Trial


def future_leaks(
    block: Callable[[Tensor], Tensor], hidden: Float[Tensor, "tokens d_model"]
) -> Bool[Tensor, "outputs inputs"]:
    """True at (i, j) where j comes after i and the output at i moves when the input at j is another one."""
    before = block(hidden)
    moved = []
    for place in range(len(hidden)):
        changed = hidden.clone()
        changed[place] = torch.randn_like(changed[place])
        moved.append(((block(changed) - before).abs() > 1e-9).any(dim=-1))
    return torch.stack(moved, dim=1).triu(1)


def reference(block, hidden):
    return _map(block, hidden, lambda row: 3 * torch.arange(1.0, len(row) + 1, dtype=row.dtype).sin()).triu(1)


def _map(block, hidden, other):
    """Which output moves when one input after another is exchanged."""
    before, columns = block(hidden.clone()), []
    for place in range(len(hidden)):
        changed = hidden.clone()
        changed[place] = other(hidden[place])
        columns.append((block(changed) - before).abs().amax(dim=-1) > 1e-9)
    return torch.stack(columns, dim=1)


def _next_vector(rows):
    return rows.roll(-1, dims=0)


def _same(rows):
    return rows.clone()


def _seeing_ahead(mixing, hidden):
    """The first features see one ahead, the last two see two ahead; before that stands a norm."""
    normalised = torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])
    one_ahead, two_ahead = mixing.tril(1) @ normalised, mixing @ normalised
    return torch.cat([one_ahead[:, :-2], two_ahead[:, -2:]], dim=1)


def _less_a_mean(mixing, shares, hidden):
    return mixing @ (hidden - shares @ hidden)


def _through_the_norm(random):
    """A window of two ahead, after a norm that sees no constant added to a vector and no factor; faint, with gaps."""
    n = drawn(random, 6, 9)
    mixing = torch.rand(n, n, generator=random, dtype=torch.float64).tril(2) + 0.1 * torch.eye(n, dtype=torch.float64)
    leaks = torch.rand(n, n, generator=random) < 0.6
    leaks[0, :3] = leaks[-3, :] = True
    ahead = torch.ones(n, n).triu(1).bool()
    mixing = torch.where(ahead, 0.01 * mixing * leaks, mixing)
    return partial(_seeing_ahead, mixing), torch.randn(n, 5, generator=random, dtype=torch.float64)


def _through_the_mean(random):
    """A mean of some tokens, of the last one faintly, is taken away, and then each sees its past."""
    n = drawn(random, 6, 9)
    mixing = torch.rand(n, n, generator=random, dtype=torch.float64).tril()
    hidden = torch.randn(n, 4, generator=random, dtype=torch.float64)
    counted = (torch.rand(n, generator=random) < 0.5).double()
    counted[2], counted[-1] = 1.0, 0.01
    return partial(_less_a_mean, mixing, counted / counted.sum()), hidden


exercise = Exercise(
    id="decoder.future_leaks",
    title="The mask is right, and it leaks",
    statement="""
Write the detector of leaks: exchange one input after another, and see which earlier outputs move. `block` maps vectors
`tokens d_model` to vectors of the same shape and does nothing at random. Return a bool table `outputs inputs`, True
where a *later* input moves an output (by more than $10^{-9}$, since code may add in another order; nothing on or below
the diagonal). Do not look inside the block: the test has to work for code of any kind.

Then use it on the three suspects above. All three have the same, right mask. One of them leaks. Which, through what,
and would you have seen it in the code?
""".strip(),
    reference=reference,
    solution=future_leaks,
    explanation="""
`Second` leaks. Its mask is right; its norm takes mean and variance over the tokens as well as over the features, so
that every token is shifted by something to which the whole text contributes. A batch norm, a standardisation of the
input and a pooled feature can leak in the same way. The exchange has to be by something really different: a norm over
the features does not see a constant that is added to all of them, so that `+ 1` finds nothing.
""".strip(),
    cases=(
        Case(name="a block that sees two ahead, behind a norm", inputs=_through_the_norm, points=2),
        Case(name="a block that takes the tokens' mean away", inputs=_through_the_mean),
    ),
    hints="""
What does it take to be sure that output 2 does not depend on input 5, if you may not read the code?

Run the block once as it is. Then, for each place, copy the input, put a quite different vector there, run it again, and
compare all outputs. Which change could a norm hide from you?

For each place one column: which rows of `block(changed) - before` hold a number above the threshold? Stack the columns
along `dim=1`, and keep what lies above the diagonal.
""",
    difficulty=2,
    minutes=25,
    section="06-decoder",
)

exercise.mutations(r"""
invisible_change: "torch.randn_like(changed[place])" -> "changed[place] + 1"
    There is a leak that you do not see. A norm takes the mean away and divides by the spread, so some changes never get
    through it. Put something quite different there.
not_only_later: ".triu(1)" -> ""
or: "triu(1)" -> "triu()"
    You report everything that moves. An output may depend on itself and on the past: which half of the table is a leak?
transposed: "triu(1)" -> "triu(1).T"
    Your table lies on its side: outputs are rows, inputs are columns.
the_past: "triu(1)" -> "tril(-1)"
    You report the past, which may be seen.
one_distance_alone: "triu(1)" -> "triu(1) & (torch.arange(len(hidden)) == len(hidden) - 1)"
or: "triu(1)" -> "triu(1).tril(2)"
    Some leaks are missing: try every input, and look at every output before it.
changes_for_good: "        changed = hidden.clone()\n" -> "", "moved = []" -> "moved, changed = [], hidden.clone()"
or: "torch.stack(moved, dim=1)" -> "torch.ones(len(hidden), len(hidden), dtype=torch.bool)"
    You report every later input, whether it leaks or not. Does the next column begin with the input as it was, or with
    what you changed before?
blunt: "1e-9" -> "0.5"
    Your threshold swallows a leak that is faint. A model needs no loud one.
first_feature_alone: ".any(dim=-1)" -> "[:, 0]"
    You watch a part of the output's features, and the leak is in others.
finds_nothing: "torch.stack(moved, dim=1)" -> "torch.zeros(len(hidden), len(hidden), dtype=torch.bool)"
    You find no leak in any block. Does the change arrive at the block, and not at a copy of it?
""")


@exercise.must_hold("A leak is an output that moves with a later input: nothing else belongs in the table.")
def above_the_diagonal(trial: Trial) -> Finding | None:
    value = trial.value
    return Finding("The map has a True on or below its diagonal.", value, value.triu(1)) if value.tril().any() else None


@exercise.must_hold(
    "It should find the leak of a block that looks one place ahead, and none in a block that does nothing."
)
def tells_leaks_apart(trial: Trial) -> str | None:
    hidden = trial.inputs[1]
    steps = trial.run(_next_vector, hidden)
    right = torch.ones(len(hidden), len(hidden), dtype=torch.bool).triu(1).tril(1)
    if not torch.equal(steps.triu(1), right):
        return "I gave it a block that hands every place the vector of the next, and the map is not that of this leak."
    if trial.run(_same, hidden).any():
        return "I gave it a block that does nothing, and it found a leak."
    return None
