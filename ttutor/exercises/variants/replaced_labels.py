"""Exercise: what ELECTRA's discriminator reads, and what it shall say."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.exercises.exercise import Case, Exercise, Mistake, Property, Trial


def replaced_labels(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    guesses: Int[Tensor, "batch tokens"],
) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch tokens"]]:
    """What the discriminator reads, and for every position whether its token is not the original one."""
    ...


def solution(
    token_ids: Int[Tensor, "batch tokens"],
    chosen: Bool[Tensor, "batch tokens"],
    guesses: Int[Tensor, "batch tokens"],
) -> tuple[Int[Tensor, "batch tokens"], Bool[Tensor, "batch tokens"]]:
    """What the discriminator reads, and for every position whether its token is not the original one."""
    inputs = torch.where(chosen, guesses, token_ids)
    return inputs, inputs != token_ids


def reference(token_ids, chosen, guesses):
    inputs = token_ids.clone()
    inputs[chosen] = guesses[chosen]
    return inputs, (inputs - token_ids).abs() > 0


def chosen_as_labels(token_ids, chosen, guesses):
    return torch.where(chosen, guesses, token_ids), chosen.clone()


def guesses_everywhere(token_ids, chosen, guesses):
    return guesses.clone(), guesses != token_ids


def label_from_all_guesses(token_ids, chosen, guesses):
    return torch.where(chosen, guesses, token_ids), guesses != token_ids


def original_is_true(token_ids, chosen, guesses):
    inputs = torch.where(chosen, guesses, token_ids)
    return inputs, inputs == token_ids


def other_positions_replaced(token_ids, chosen, guesses):
    inputs = torch.where(chosen, token_ids, guesses)
    return inputs, inputs != token_ids


def originals_kept(token_ids, chosen, guesses):
    return token_ids.clone(), chosen & (guesses != token_ids)


def lucky_alone(token_ids, chosen, guesses):
    return torch.where(chosen, guesses, token_ids), chosen & (guesses == token_ids)


def _labels_are_of_the_inputs(trial: Trial) -> str | None:
    """What is labelled as replaced differs from the original, and nothing else does."""
    inputs, labels = trial.value
    off = (labels != (inputs != trial.inputs[0])).sum().item()
    return None if off == 0 else f"At {off} positions your label does not say whether your input differs."


def _left_alone(trial: Trial) -> str | None:
    """What was not chosen stays."""
    token_ids, chosen, _ = trial.inputs
    off = (trial.value[0] != token_ids)[~chosen].sum().item()
    return None if off == 0 else f"{off} tokens differ that were not chosen."


def _text(random):
    token_ids = torch.randint(5, 20, (4, 9), generator=random)
    chosen = torch.rand(4, 9, generator=random) < 0.4
    lucky = torch.rand(4, 9, generator=random) < 0.3
    chosen[0, :4] = torch.tensor([True, True, False, False])
    lucky[0, :4] = torch.tensor([True, False, True, False])
    other = (token_ids - 5 + torch.randint(1, 15, (4, 9), generator=random)) % 15 + 5
    return token_ids, chosen, torch.where(lucky, token_ids, other)


EXERCISES = (
    Exercise(
        id="variants.replaced_labels",
        title="Original or replaced?",
        statement="""
ELECTRA hides some tokens (`chosen`, True where one was hidden), lets a small model guess them (`guesses`, one id for
every position, of which only those at chosen positions are used), and asks a second model of *every* position whether
the token there is not the original one. Return what the second model reads, and its labels, True for "replaced".
""".strip(),
        stub=replaced_labels,
        reference=reference,
        solution=solution,
        explanation="""
A lucky guess is the original token and is labelled so: the question is what stands there, not who wrote it. The labels
therefore come from comparing the text that is read with the original, and not from `chosen`. As the small model learns,
its guesses become lucky more often, and fewer and fewer positions are "replaced".
""".strip(),
        cases=(Case(name="four rows in which some guesses are right", inputs=_text),),
        hints=(
            "What should the label be where the guess happens to be the original token?",
            "Two steps: make the text that is read, then compare it with the original.",
            "Take the guess where it was chosen and the old token elsewhere; then ask where the two texts differ.",
        ),
        mistakes=(
            Mistake(
                id="chosen_as_labels",
                says="You label what was hidden. A guess may be right, and then nothing was replaced.",
                answers=(chosen_as_labels,),
            ),
            Mistake(
                id="guesses_everywhere",
                says="You put guesses at all positions. Those that were not hidden keep their token.",
                answers=(guesses_everywhere,),
            ),
            Mistake(
                id="label_from_all_guesses",
                says="Your text is right. Your labels compare the guesses with the original also where no guess was "
                "put in.",
                answers=(label_from_all_guesses,),
            ),
            Mistake(
                id="original_is_true",
                says="Your labels are the wrong way round: True should mean replaced.",
                answers=(original_is_true,),
            ),
            Mistake(
                id="other_positions_replaced",
                says="You replace what was not chosen and keep what was.",
                answers=(other_positions_replaced,),
            ),
            Mistake(
                id="originals_kept",
                says="Your labels are right, but they are asked of a text in which nothing was replaced.",
                answers=(originals_kept,),
            ),
            Mistake(
                id="lucky_alone",
                says="You label the lucky guesses, the only chosen positions where nothing has changed.",
                answers=(lucky_alone,),
            ),
        ),
        properties=(
            Property(
                id="labels_match_the_text",
                says="A label says whether the token that is read differs from the original.",
                broken=_labels_are_of_the_inputs,
            ),
            Property(id="only_chosen_change", says="Only chosen positions may hold another token.", broken=_left_alone),
        ),
        forbids=("replace_tokens",),
        difficulty=1,
        minutes=10,
        section="09-variants",
    ),
)
