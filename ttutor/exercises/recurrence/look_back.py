"""Exercise: find the bug in a look back that treats every target word the same."""

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial
from ttutor.recurrence import additive_weights


def look_back_weights(
    asked: Float[Tensor, "batch target d_head"],
    offered: Float[Tensor, "batch source d_head"],
    direction: Float[Tensor, " d_head"],
    is_real: Bool[Tensor, "batch source"],
) -> Float[Tensor, "batch target source"]:
    """A colleague's additive attention; is_real says which source words are no padding."""
    pairs = rearrange(asked, "batch target d_head -> batch target 1 d_head") + rearrange(
        offered, "batch source d_head -> batch 1 source d_head"
    )
    scores = einsum(pairs, direction, "batch target source d_head, d_head -> batch target source").tanh()
    is_padding = rearrange(~is_real, "batch source -> batch 1 source")
    return scores.masked_fill(is_padding, -torch.inf).softmax(dim=-1)


def solution(
    asked: Float[Tensor, "batch target d_head"],
    offered: Float[Tensor, "batch source d_head"],
    direction: Float[Tensor, " d_head"],
    is_real: Bool[Tensor, "batch source"],
) -> Float[Tensor, "batch target source"]:
    """Additive attention: the tanh comes before the direction."""
    pairs = rearrange(asked, "batch target d_head -> batch target 1 d_head") + rearrange(
        offered, "batch source d_head -> batch 1 source d_head"
    )
    scores = einsum(pairs.tanh(), direction, "batch target source d_head, d_head -> batch target source")
    is_padding = rearrange(~is_real, "batch source -> batch 1 source")
    return scores.masked_fill(is_padding, -torch.inf).softmax(dim=-1)


def reference(asked, offered, direction, is_real):
    return additive_weights(asked, offered, direction, is_real)


def _inputs(random):
    n_target, n_source, d_head = drawn(random, 4, 5), drawn(random, 6, 7), drawn(random, 8, 9)
    lengths = torch.tensor([[n_source], [n_source - 2], [n_source - 1]])[: drawn(random, 2, 3)]
    shapes = (len(lengths), n_target, d_head), (len(lengths), n_source, d_head), (d_head,)
    asked, offered, direction = (1.5 * torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)
    return asked, offered, 2 * direction, torch.arange(n_source) < lengths


exercise = Exercise(
    id="recurrence.look_back_weights",
    title="The look back that never moves",
    statement="A colleague's additive attention runs and trains. Its rows sum to one, and padding gets nothing. "
    "Yet its translator is no better than one with the fixed vector: whatever word is to be written, the *order* "
    "of the source words, from the most to the least looked at, is the same. Compare with the chapter's formula, "
    "explain the symptom, and mend one line. `asked` and `offered` are the query and the memory after their "
    "projections.",
    stub=look_back_weights,
    reference=reference,
    solution=solution,
    explanation="The tanh stands outside. Then the score is $\\tanh(s W_a v^\\top + h_j U_a v^\\top)$, and since "
    "the tanh is increasing, a source word with a larger $h_j U_a v^\\top$ has the larger score *whatever* the "
    "query is. A query can only sharpen or flatten one fixed order. With the tanh inside, before the direction, "
    "each feature saturates by itself, and query and memory can meet.",
    cases=(Case(name="sentences and padding", inputs=_inputs, points=2),),
    hints="""
Take two source words. Can any query make the first the more attractive and another query the second?

Write the colleague's score as a formula. Which part depends on the query, which on the word, and what stands around
their sum?

In the equation the tanh is applied to a *vector*, feature by feature, before the product with $v$.
""",
    forbids=("additive_weights", "AdditiveAttention"),
    difficulty=2,
    minutes=20,
    section="01-recurrence",
)

exercise.mutations("""
tanh_outside: "pairs.tanh()" -> "pairs", "return scores." -> "return scores.tanh()."
    Still the colleague's mistake: the order of the shares is the same for every query. What is the tanh applied to, and
    what in the equation?
no_nonlinearity: "pairs.tanh()" -> "pairs"
    Without a tanh the query adds the same number to all scores of its row, and a softmax does not see that: all rows
    are equal.
no_mask: ".masked_fill(is_padding, -torch.inf)" -> ""
    Mended, and the mask got lost: padding is looked at.
mask_after_softmax: ".masked_fill(is_padding, -torch.inf).softmax(dim=-1)" -> ".softmax(dim=-1) * ~is_padding"
    Padding gets no share, but it had one when the others were computed: rows sum to less than one.
mask_inverted: "masked_fill(is_padding" -> "masked_fill(~is_padding"
    You look at the padding and at nothing else, and a row without padding has no words at all.
over_target: ".masked_fill(is_padding, -torch.inf).softmax(dim=-1)" -> ".softmax(dim=1) * ~is_padding"
    Your shares sum to one over the words that are *written*. Each step of writing shares out its own attention, over
    the source.
dot_product: "return scores." -> "return (asked @ offered.mT)."
    That is the attention of the next chapter, a dot product. Here a small network gives the score.
tanh_before_sum: "rearrange(asked," -> "rearrange(asked.tanh(),", 'offered, "' -> 'offered.tanh(), "',
  "pairs.tanh()" -> "pairs"
    You take the tanh of query and memory one by one and add afterwards; the query's part is again the same for all
    source words. Add first.
scaled: "return scores." -> "return (scores / len(direction) ** 0.5)."
    The order of the shares is right, they are too even: you divide the scores by a root. Additive attention has no
    scale.
""")


@exercise.must_hold("Each row should sum to one.")
def rows_are_shares(trial: Trial) -> str | None:
    gap = (trial.value.sum(dim=-1) - 1).abs().max().item()
    return None if gap < 1e-6 else f"One of your rows differs from a sum of 1 by {gap:.2g}."


@exercise.must_hold("Padding should get no share.")
def padding_unseen(trial: Trial) -> str | None:
    share = (trial.value * ~trial.inputs[3][:, None]).abs().max().item()
    return None if share < 1e-9 else f"Padding gets a share of {share:.2g}."


@exercise.must_hold("Different queries should be able to prefer different source words.")
def queries_matter(trial: Trial) -> str | None:
    asked, offered, direction, is_real = trial.inputs
    others = [trial.run(10 * asked.roll(shift, 2), offered, direction, is_real).argsort(dim=-1) for shift in range(3)]
    same = all(torch.equal(others[0], other) for other in others[1:])
    return "I exchanged all queries, and the order of the shares stayed the same." if same else None
