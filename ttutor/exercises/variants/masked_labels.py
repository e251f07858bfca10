"""Exercise: find the bug in a masking whose one draw decides two things."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def masked_labels(
    token_ids: Int[Tensor, "batch tokens"],
    draw: Float[Tensor, "batch tokens"],
    random_ids: Int[Tensor, "batch tokens"],
    mask_id: int,
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """A colleague's version: what BERT reads and what it must predict; the label -100 does not count."""
    chosen = draw < 0.15
    inputs = token_ids.clone()
    inputs[chosen & (draw < 0.9)] = random_ids[chosen & (draw < 0.9)]
    inputs[chosen & (draw < 0.8)] = mask_id
    return inputs, torch.where(chosen, token_ids, -100)


def solution(
    token_ids: Int[Tensor, "batch tokens"],
    draw: Float[Tensor, "batch tokens"],
    random_ids: Int[Tensor, "batch tokens"],
    mask_id: int,
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """What BERT reads and what it must predict; the label -100 does not count."""
    inputs = token_ids.clone()
    inputs[draw < 0.9 * 0.15] = random_ids[draw < 0.9 * 0.15]
    inputs[draw < 0.8 * 0.15] = mask_id
    return inputs, torch.where(draw < 0.15, token_ids, -100)


def reference(token_ids, draw, random_ids, mask_id):
    inputs, labels = token_ids.clone(), torch.full_like(token_ids, -100)
    for row, column in (draw < 0.15).nonzero().tolist():
        labels[row, column] = token_ids[row, column]
        if draw[row, column] < 0.12:
            inputs[row, column] = mask_id
        elif draw[row, column] < 0.135:
            inputs[row, column] = random_ids[row, column]
    return inputs, labels


def _text(random):
    shape = drawn(random, 5, 7), drawn(random, 10, 13)
    token_ids = torch.randint(5, 40, shape, generator=random)
    draw = 0.4 * torch.rand(*shape, generator=random)
    draw[0, :6] = torch.tensor([0.02, 0.11, 0.122, 0.131, 0.138, 0.148])
    draw[1, :3] = torch.tensor([0.5, 0.85, 0.95])
    shift = torch.randint(1, 35, shape, generator=random)
    return token_ids, draw, (token_ids - 5 + shift) % 35 + 5, drawn(random, 1, 4)


exercise = Exercise(
    id="variants.masked_labels",
    title="Nothing to learn from a word that is there",
    statement="""
A colleague wants BERT's masking with a single draw for each token in the place of two. `draw`, a number from 0 to 1,
decides whether a token is selected (below 0.15) and, if it is, what becomes of it: in the order of their draws the
lowest four fifths of the selected should become the mask, the next tenth the token in `random_ids`, and the last tenth
should stay. All selected count in the loss. But a count over a million tokens finds that *every* token that counts is a
mask: the model is never asked about a word that is there. Find the bug by counting the three fates, and mend it, still
with one draw.
""".strip(),
    stub=masked_labels,
    reference=reference,
    solution=solution,
    explanation="""
A draw that is below 0.15 is below 0.8 as well: the second question was answered by the first. The bounds of the three
fates have to lie inside the part that was selected, at $0.8 \\cdot 0.15 = 0.12$ and $0.9 \\cdot 0.15 = 0.135$. The bug
is easy to overlook, since the number that everybody checks, 15 % selected, is right. The measurements
beside the chapter have a BERT that was trained in just this way: the block "100, 0, 0".
""".strip(),
    cases=(Case(name="several rows of tokens", inputs=_text),),
    hints="""
Take the selected tokens alone. How large can their draw be?

Which of the selected tokens fail the test `draw < 0.8`?

The lowest four fifths of the numbers from 0 to 0.15 end where?
""",
    forbids=("mask_tokens",),
    difficulty=2,
    minutes=15,
    section="09-variants",
)

exercise.mutations("""
all_masked: "inputs[draw < 0.8 * 0.15]" -> "inputs[draw < 0.15]"
    Still the colleague's: all selected tokens are masked. Two tenths of them should be visible, rightly or wrongly.
shares_of_all: "inputs[draw < 0.9 * 0.15] = random_ids[draw < 0.9 * 0.15]" ->
  "inputs[draw < 0.9] = random_ids[draw < 0.9]", "0.8 * 0.15" -> "0.8",
  "torch.where(draw < 0.15, token_ids, -100)" -> "token_ids.clone()"
    Your bounds are right for a draw of its own. This one has chosen already: only the tokens below 0.15 are selected.
masks_alone: "where(draw < 0.15" -> "where(inputs == mask_id"
    The inputs are right, but only masks have labels: two tenths of the selected do not count.
changes_alone: "where(draw < 0.15" -> "where(inputs != token_ids"
    The inputs are right. The selected tokens that stay as they are should count as well.
all_labelled: "torch.where(draw < 0.15, token_ids, -100)" -> "token_ids.clone()"
    All positions count now, so that most of the loss is for copying what can be seen.
inputs_as_labels: "0.15, token_ids" -> "0.15, inputs"
    The right positions count, but the label is what is read there, and not what stood there before.
none_random: "inputs[draw < 0.9 * 0.15] = random_ids[draw < 0.9 * 0.15]" -> ""
    A fifth of the selected tokens stays and none is random; it should be a tenth of each.
none_kept: "inputs[draw < 0.9 * 0.15] = random_ids[draw < 0.9 * 0.15]" ->
  "inputs[draw < 0.15] = random_ids[draw < 0.15]"
    A fifth of the selected tokens is random and none stays; it should be a tenth of each.
shares_swapped: "= random_ids[draw < 0.9 * 0.15]" -> "= mask_id",
  "[draw < 0.8 * 0.15] = mask_id" -> "[draw < 0.8 * 0.15] = random_ids[draw < 0.8 * 0.15]"
    Four fifths of the selected tokens are random and a tenth is masked. It should be the other way.
zeros: "token_ids, -100" -> "token_ids, 0"
    Positions that should not count have the label 0, which is a token: the loss asks for it.
""")


@exercise.must_hold("A position counts if it was chosen, and only then.")
def chosen_count(trial: Trial) -> str | None:
    chosen = trial.inputs[1] < 0.15
    counted = trial.value[1] != -100
    missing, surplus = (chosen & ~counted).sum().item(), (counted & ~chosen).sum().item()
    return None if not (missing or surplus) else f"{missing} chosen positions do not count, and {surplus} others do."


@exercise.must_hold("A label that counts is the token that stood there at first.")
def labels_are_originals(trial: Trial) -> str | None:
    token_ids, labels = trial.inputs[0], trial.value[1]
    off = ((labels != token_ids) & (labels != -100)).sum().item()
    return None if off == 0 else f"{off} labels are not the original token."


@exercise.must_hold("Tokens that were not chosen are read unchanged.")
def unchosen_stay(trial: Trial) -> str | None:
    token_ids, draw = trial.inputs[:2]
    off = ((trial.value[0] != token_ids) & (draw >= 0.15)).sum().item()
    return None if off == 0 else f"{off} tokens that were not chosen are read as something else."


@exercise.must_hold("Four fifths of the selected tokens are masked, a tenth is random, and a tenth stays.")
def three_fates(trial: Trial) -> str | None:
    token_ids, draw, random_ids, mask_id = trial.inputs
    inputs = trial.value[0]
    bands = {"masked": (0, 0.12, mask_id), "random": (0.12, 0.135, random_ids), "kept": (0.135, 0.15, token_ids)}
    for name, (low, high, expected) in bands.items():
        here = (draw >= low) & (draw < high)
        off = ((inputs != expected) & here).sum().item()
        if off:
            return f"Of {here.sum().item()} selected tokens that should be {name}, {off} are not."
    return None
