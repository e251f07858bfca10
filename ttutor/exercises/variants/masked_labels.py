"""Exercise: find the bug in a masking that trains a model to ignore what it reads."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial


def masked_labels(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    fate: Float[Tensor, "batch tokens"],
    random_ids: Int[Tensor, "batch tokens"],
    mask_id: int,
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """A colleague's version: what BERT reads and what it shall say; the label -100 does not count."""
    inputs = token_ids.clone()
    inputs[chosen & (fate < 0.9)] = random_ids[chosen & (fate < 0.9)]
    inputs[chosen & (fate < 0.8)] = mask_id
    labels = torch.where(inputs == mask_id, token_ids, -100)
    return inputs, labels


def solution(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    fate: Float[Tensor, "batch tokens"],
    random_ids: Int[Tensor, "batch tokens"],
    mask_id: int,
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """What BERT reads and what it shall say; the label -100 does not count."""
    inputs = token_ids.clone()
    inputs[chosen & (fate < 0.9)] = random_ids[chosen & (fate < 0.9)]
    inputs[chosen & (fate < 0.8)] = mask_id
    labels = torch.where(chosen, token_ids, -100)
    return inputs, labels


def reference(token_ids, chosen, fate, random_ids, mask_id):
    inputs, labels = token_ids.clone(), torch.full_like(token_ids, -100)
    for row, column in chosen.nonzero().tolist():
        labels[row, column] = token_ids[row, column]
        if fate[row, column] < 0.8:
            inputs[row, column] = mask_id
        elif fate[row, column] < 0.9:
            inputs[row, column] = random_ids[row, column]
    return inputs, labels


def masks_alone_labelled(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = reference(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, torch.where(inputs == mask_id, token_ids, -100)


def changes_alone_labelled(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = reference(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, torch.where(inputs != token_ids, token_ids, -100)


def all_labelled(token_ids, chosen, fate, random_ids, mask_id):
    return reference(token_ids, chosen, fate, random_ids, mask_id)[0], token_ids.clone()


def inputs_as_labels(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = reference(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, torch.where(chosen, inputs, -100)


def all_masked(token_ids, chosen, fate, random_ids, mask_id):
    _, labels = reference(token_ids, chosen, fate, random_ids, mask_id)
    return torch.where(chosen, mask_id, token_ids), labels


def shares_swapped(token_ids, chosen, fate, random_ids, mask_id):
    _, labels = reference(token_ids, chosen, fate, random_ids, mask_id)
    inputs = torch.where(chosen & (fate < 0.9), mask_id, token_ids)
    return torch.where(chosen & (fate < 0.8), random_ids, inputs), labels


def unchosen_labelled(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = reference(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, torch.where(chosen, -100, token_ids)


def zeros_for_the_rest(token_ids, chosen, fate, random_ids, mask_id):
    inputs, _ = reference(token_ids, chosen, fate, random_ids, mask_id)
    return inputs, torch.where(chosen, token_ids, 0)


def _labels_where_chosen(trial: Trial) -> str | None:
    """Every chosen position counts, and no other."""
    chosen = trial.inputs[1]
    counted = trial.value[1] != -100
    missing, surplus = (chosen & ~counted).sum().item(), (counted & ~chosen).sum().item()
    return None if not (missing or surplus) else f"{missing} chosen positions do not count, and {surplus} others do."


def _labels_are_originals(trial: Trial) -> str | None:
    """A label is the original token."""
    token_ids, labels = trial.inputs[0], trial.value[1]
    off = ((labels != token_ids) & (labels != -100)).sum().item()
    return None if off == 0 else f"{off} labels are not the original token."


def _unchosen_stay(trial: Trial) -> str | None:
    """What was not chosen is read as it is."""
    token_ids, chosen = trial.inputs[:2]
    off = ((trial.value[0] != token_ids) & ~chosen).sum().item()
    return None if off == 0 else f"{off} tokens that were not chosen are read as something else."


def _text(random):
    token_ids = torch.randint(5, 40, (6, 12), generator=random)
    chosen = torch.rand(6, 12, generator=random) < 0.4
    fate = torch.rand(6, 12, generator=random)
    chosen[0, :6] = True
    fate[0, :6] = torch.tensor([0.1, 0.5, 0.82, 0.88, 0.93, 0.98])
    shift = torch.randint(1, 35, (6, 12), generator=random)
    return token_ids, chosen, fate, (token_ids - 5 + shift) % 35 + 5, 4


EXERCISES = (
    Exercise(
        id="variants.masked_labels",
        title="Nothing to learn from a word that is there",
        statement="""
A colleague's masked language model fills in masks well. But on a text without masks its output layer often does not
even name the words that stand there. The masking below should do as BERT's authors did. `chosen` says which tokens were
selected; `fate`, a number from 0 to 1, decides what becomes of each of them: below 0.8 the mask, from 0.8 to 0.9 the
token in `random_ids`, above that it stays. Find the bug *by looking at what counts*, and mend it.
""".strip(),
        stub=masked_labels,
        reference=reference,
        solution=solution,
        explanation="""
The labels were made from the masks, so that the random and the unchanged tokens never counted. The model was then never
asked about a token that it can see. The random tenth asks whether a visible word may be wrong; the tenth that stays
rewards trusting the words that are right. Only a position that counts can teach either.
""".strip(),
        cases=(Case(name="six rows of twelve tokens", inputs=_text),),
        hints=(
            "Count: how many positions were chosen, and how many have a label?",
            "Which of the three fates does the last line before `return` ask about?",
            "A position counts because it was chosen, whatever has become of it.",
        ),
        mistakes=(
            Mistake(
                id="masks_alone",
                says="Still the colleague's: only masks have labels, and a tenth of the chosen positions and another "
                "tenth count for nothing.",
                answers=(masks_alone_labelled,),
            ),
            Mistake(
                id="changes_alone",
                says="Now the random tokens count as well. The chosen tokens that stay as they are still do not.",
                answers=(changes_alone_labelled,),
            ),
            Mistake(
                id="all_labelled",
                says="All positions count now, so that most of the loss is for copying what can be seen.",
                answers=(all_labelled,),
            ),
            Mistake(
                id="inputs_as_labels",
                says="The right positions count, but the label is what is read there, and not what stood there before.",
                answers=(inputs_as_labels,),
            ),
            Mistake(
                id="all_masked",
                says="All chosen tokens are masked. Two tenths of them should be visible, rightly or wrongly.",
                answers=(all_masked,),
            ),
            Mistake(
                id="shares_swapped",
                says="Four fifths of the chosen tokens are random and a tenth is masked. It should be the other way.",
                answers=(shares_swapped,),
            ),
            Mistake(
                id="unchosen_labelled",
                says="The positions that count are those that were not chosen.",
                answers=(unchosen_labelled,),
            ),
            Mistake(
                id="zeros",
                says="Positions that should not count have the label 0, which is a token: the loss asks for it.",
                answers=(zeros_for_the_rest,),
            ),
        ),
        properties=(
            Property(
                id="chosen_count",
                says="A position counts if it was chosen, and only then.",
                broken=_labels_where_chosen,
            ),
            Property(
                id="labels_are_originals",
                says="A label that counts is the token that stood there at first.",
                broken=_labels_are_originals,
            ),
            Property(id="unchosen_stay", says="Tokens that were not chosen are read unchanged.", broken=_unchosen_stay),
        ),
        forbids=("mask_tokens",),
        difficulty=2,
        minutes=15,
        section="09-variants",
    ),
)
