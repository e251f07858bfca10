"""Exercise: cut the last axis into heads."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def split_heads(
    vectors: Float[Tensor, "batch tokens d_model"], n_heads: int
) -> Float[Tensor, "batch heads tokens d_head"]:
    """Give head 0 the first features of every token, head 1 the next ones, and so on; heads come before tokens."""
    return vectors.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def reference(vectors, n_heads):
    return torch.stack(vectors.chunk(n_heads, dim=-1), dim=1)


def _vectors(random, n_heads):
    d_head = drawn(random, 6, 8)
    return torch.randn(
        drawn(random, 2, 3), drawn(random, 4, 5), n_heads * d_head, generator=random, dtype=torch.float64
    ), n_heads


exercise = Exercise(
    id="multihead.split_heads",
    title="Who owns which feature",
    statement="Queries of all heads come out of one matrix, side by side on the last axis. Cut that axis into "
    "`n_heads` blocks, the first block for head 0, and bring the heads before the tokens. No number may change. "
    "The text did it with einops; write it with `unflatten` and `transpose`, without einops.",
    reference=reference,
    solution=split_heads,
    explanation="`unflatten(-1, (n_heads, -1))` cuts the last axis with the head as the *slow* index, so that a "
    "head owns neighbouring features; `transpose(1, 2)` moves the head's axis. In einops' words it is "
    "`batch tokens (heads d_head) -> batch heads tokens d_head`. A reshape straight to the final shape has the "
    "right sizes and the wrong contents: it deals out the numbers in the order in which they lie in memory, "
    "token after token.",
    cases=(
        Case(name="three heads", inputs=lambda random: _vectors(random, 3)),
        Case(name="two heads", inputs=lambda random: _vectors(random, 2)),
    ),
    hints="""
Write the axes of input and output in words. Which input axis has to be cut, and which two change places?

Cutting and moving are two steps. Cut the last axis first; only then let heads and tokens change places.

`unflatten(-1, (n_heads, -1))` cuts: the slow index, the head, stands first. The axes are then batch, tokens, heads,
d_head. Which two does `transpose` exchange?
""",
    difficulty=1,
    minutes=10,
    section="03-multihead",
)

exercise.mutations("""
every_hth: "(n_heads, -1)).transpose(1, 2)" -> "(-1, n_heads)).movedim(-1, 1)"
    Each head gets every h-th feature. Head 0 should own the first block: where an axis is cut in two, the slow index
    stands first.
reshaped_at_once: "unflatten(-1, (n_heads, -1)).transpose(1, 2)" ->
  "reshape(len(vectors), n_heads, vectors.shape[1], -1)"
    The shape is right and the contents are not: a reshape keeps the order of the numbers in memory, so one head gets
    pieces of several tokens. Cut the last axis alone, then let axes change places.
heads_after_tokens: ".transpose(1, 2)" -> ""
    The blocks are right, but the heads still stand behind the tokens. Attention wants the last two axes to be tokens
    and features.
features_before_tokens: ".transpose(1, 2)" -> ".permute(0, 2, 3, 1)"
    Tokens and features have changed places in each head. The last axis should be the features.
as_wide_as_many: "(n_heads, -1)" -> "(-1, n_heads)"
    You use the number of heads as the width of one. Which of the two were you given?
nothing_cut: "vectors.unflatten(-1, (n_heads, -1)).transpose(1, 2)" -> "torch.stack([vectors] * n_heads, dim=1)"
    Every head gets all features. Heads share the width: each has d_model / n_heads of it.
first_block_for_all: ".transpose(1, 2)" -> ".transpose(1, 2)[:, :1].expand(-1, n_heads, -1, -1)"
    All heads get the same block. Together they should own every feature once.
last_block_first: ".transpose(1, 2)" -> ".transpose(1, 2).flip(1)"
    The blocks come in reverse order. Head 0 owns the first one.
hard_coded: "(n_heads, -1)" -> "(3, -1)"
or: "(n_heads, -1)" -> "(2, -1)"
    Right for one number of heads only. Take it from the argument.
""")


@exercise.must_hold(
    "Every number of the input stands once in the result, at its own sentence and token, in the head that owns its "
    "feature."
)
def each_number_in_its_place(trial: Trial) -> str | None:
    vectors, n_heads = trial.inputs
    expected = reference(vectors, n_heads)
    if tuple(trial.value.shape) != tuple(expected.shape):
        return f"The result is {tuple(trial.value.shape)}, expected {tuple(expected.shape)}."
    wrong = (trial.value != expected).nonzero()
    if not len(wrong):
        return None
    batch, head, token, feature = wrong[0].tolist()
    return f"Feature {feature} of head {head}, token {token}, sentence {batch}, is not the input's."
