"""Exercise: what ELECTRA's discriminator reads, and what it must predict."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def replaced_labels(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    guesses: Int[Tensor, " n_chosen"],
    pad_id: int,
) -> tuple[Int[Tensor, "batch tokens"], Int[Tensor, "batch tokens"]]:
    """What the discriminator reads, and its labels: 1 replaced, 0 original, -100 where nothing is asked."""
    inputs = token_ids.clone()
    inputs[chosen] = guesses
    labels = (inputs != token_ids).long()
    return inputs, labels.masked_fill(token_ids == pad_id, -100)


def reference(token_ids, chosen, guesses, pad_id):
    inputs = token_ids.masked_scatter(chosen, guesses)
    labels = (inputs - token_ids).abs().clamp(max=1)
    return inputs, torch.where(token_ids == pad_id, -100, labels)


def _text(random):
    shape, pad_id = (drawn(random, 4, 5), drawn(random, 9, 11)), drawn(random, 0, 3)
    token_ids = torch.randint(5, 20, shape, generator=random)
    chosen = torch.rand(*shape, generator=random) < 0.4
    lucky = torch.rand(*shape, generator=random) < 0.3
    chosen[0, :4] = torch.tensor([True, True, False, False])
    chosen[1, :2] = True
    lucky[0, :4] = torch.tensor([True, False, True, False])
    other = (token_ids - 5 + torch.randint(1, 15, shape, generator=random)) % 15 + 5
    guesses = torch.where(lucky, token_ids, other)
    for row, length in enumerate((shape[1], 7, 6, 8)):
        token_ids[row, length:], chosen[row, length:] = pad_id, False
    return token_ids, chosen, guesses[chosen], pad_id


exercise = Exercise(
    id="variants.replaced_labels",
    title="Original or replaced?",
    statement="""
ELECTRA hides some tokens (`chosen`, True where one was hidden) and lets a small model guess them. `guesses` holds its
guesses for the hidden tokens *alone*, in one row: those of the first text from left to right, then those of the second,
and so on. A second model must say for every position whether the token there differs from the original. The texts were
filled up to one length with `pad_id`; padding is never hidden, and about padding nothing is asked. Return what the
second model reads, and its labels: 1 for "replaced", 0 for "original", -100 for "not asked".
""".strip(),
    reference=reference,
    solution=replaced_labels,
    explanation="""
A lucky guess is the original token and is labelled so: the question is what stands there, not who wrote it. The labels
therefore come from comparing the text that is read with the original, and not from `chosen`. As the small model learns,
its guesses become lucky more often, and fewer and fewer positions are "replaced".
""".strip(),
    cases=(Case(name="rows in which some guesses are right", inputs=_text),),
    hints="""
What should the label be where the guess happens to be the original token?

Two steps: make the text that is read, then compare it with the original.

A Bool tensor as an index picks its True positions row by row. Then ask where the two texts differ.
""",
    forbids=("replace_tokens",),
    difficulty=1,
    minutes=10,
    section="09-variants",
)

exercise.mutations("""
chosen_as_labels: "(inputs != token_ids)" -> "chosen"
    You label what was hidden. A guess may be right, and then nothing was replaced.
padding_asked: ".masked_fill(token_ids == pad_id, -100)" -> ""
    You ask about padding too. Its label should be -100, so that it does not count.
chosen_alone_asked: "token_ids == pad_id" -> "~chosen"
    You ask about hidden positions only, as a masked language model does. Here every token is asked about that is not
    padding.
original_is_one: "!=" -> "=="
    Your labels are the wrong way round: 1 should mean replaced.
column_by_column: "inputs[chosen] = guesses" -> "inputs.T[chosen.T] = guesses"
    Your guesses go into the table column by column. They come text by text.
originals_kept: "return inputs" -> "return token_ids.clone()"
    Your labels are right, but they are asked of a text in which nothing was replaced.
lucky_alone: "(inputs != token_ids)" -> "(chosen & (inputs == token_ids))"
    You label the lucky guesses, the only chosen positions where nothing has changed.
originals_as_labels: "labels.masked_fill(token_ids == pad_id" -> "token_ids.masked_fill(~chosen"
    Your labels are the hidden words, as the small model's are. The second one answers by 0 or 1.
""")


@exercise.must_hold("A label says whether the token that is read differs from the original.")
def labels_match_the_text(trial: Trial) -> str | None:
    inputs, labels = trial.value
    asked = trial.inputs[0] != trial.inputs[3]
    off = ((labels == 1) != (inputs != trial.inputs[0]))[asked].sum().item()
    return None if off == 0 else f"At {off} positions your label does not say whether your input differs."


@exercise.must_hold("Only chosen positions may hold another token.")
def only_chosen_change(trial: Trial) -> str | None:
    token_ids, chosen, *_ = trial.inputs
    off = (trial.value[0] != token_ids)[~chosen].sum().item()
    return None if off == 0 else f"{off} tokens differ that were not chosen."


@exercise.must_hold("Padding has the label -100, and every other position 0 or 1.")
def padding_is_not_asked(trial: Trial) -> str | None:
    token_ids, _, _, pad_id = trial.inputs
    off = ((trial.value[1] == -100) != (token_ids == pad_id)).sum().item()
    return None if off == 0 else f"{off} positions are asked about and should not be, or the other way round."
