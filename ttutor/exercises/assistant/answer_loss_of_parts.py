"""Exercise: the answer loss of a batch that comes in parts, some of them without an answer."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def answer_loss_of_parts(
    parts: list[tuple[Float[Tensor, "rows tokens"], Bool[Tensor, "rows tokens"]]],
) -> float:
    """The mean surprise per token of the answers, over all parts of a batch."""
    total, count = 0.0, 0
    for surprise, is_answer in parts:
        total += surprise[is_answer].sum().item()
        count += int(is_answer.sum())
    return total / count if count else 0.0


def reference(parts):
    every = torch.cat([surprise.flatten() for surprise, _ in parts])
    answers = torch.cat([is_answer.flatten() for _, is_answer in parts])
    return every[answers].mean().item() if answers.any() else 0.0


def _parts(generator):
    parts, counts = [], [0, 5, 1, 8, 3, 2][: drawn(generator, 4, 6)]
    for place in torch.randperm(len(counts), generator=generator).tolist():
        rows, n_tokens = drawn(generator, 2, 3), drawn(generator, 5, 7)
        surprise = 3 * torch.rand(rows, n_tokens, generator=generator, dtype=torch.float64)
        order = torch.rand(rows * n_tokens, generator=generator).argsort()
        surprise.view(-1)[order[-1]] = torch.inf  # a token that the model ruled out, in the prompt
        parts.append((surprise, (order.argsort() < counts[place]).view(rows, n_tokens)))
    return (parts,)


exercise = Exercise(
    id="assistant.answer_loss_of_parts",
    title="The part without an answer",
    statement="""
A batch of conversations is too large for the memory and comes in parts. For each part you get the surprise of every
token (minus its log-probability) and where the answers are. Some parts hold nothing but a long question, cut off before
its answer; in a prompt a token may even have been impossible to the model, with an infinite surprise. Return the loss
of the whole batch: the mean over all tokens of answers. Where there is none in the whole batch, return zero.
""".strip(),
    reference=reference,
    solution=answer_loss_of_parts,
    explanation="""
The mean over a part without answers is zero divided by zero. The result is NaN, which is silent, spreads to the sum, to
the gradient, and after one step to all weights. Sums and counts are safe: divide once, at the end.
""".strip(),
    cases=(Case(name="parts with answers, and one without", inputs=_parts),),
    hints="""
What is the mean of nothing? And how much does a token of a part with few answers weigh, if parts are averaged?

Keep two numbers: a sum and a count.

Select the answers' tokens, since zero times infinity is no number; add up their surprises and how many they are; divide
at the end, if there is something to divide by.
""",
    difficulty=1,
    minutes=10,
    section="13-assistant",
)

exercise.mutations(r"""
not_a_number: "surprise[is_answer].sum().item()" -> "surprise[is_answer].mean().item() * int(is_answer.sum())"
or: "surprise[is_answer].sum()" -> "(surprise * is_answer).sum()"
    Your loss is NaN. Two things lead there: the mean of a part without answers is zero divided by zero, and an infinite
    surprise in a prompt times zero is no number either. What can you add up safely?
mean_of_means: "total += surprise[is_answer].sum().item()\n        count += int(is_answer.sum())" ->
  "total += surprise[is_answer].mean().item() if is_answer.any() else 0.0\n        count += int(is_answer.any())"
    You average the means of the parts: a token of a part with few answers weighs more than the others.
empty_parts_count: "total += surprise[is_answer].sum().item()\n        count += int(is_answer.sum())" ->
  "total += surprise[is_answer].mean().item() if is_answer.any() else 0.0\n        count += 1"
    You average the means of the parts, and count a part without answers as a loss of zero.
divided_by_all: "count += int(is_answer.sum())" -> "count += is_answer.numel()"
    The sum is right, and you divide by the number of all tokens: the longer the prompts, the smaller your loss.
nothing_to_divide: "total / count if count else 0.0" -> "total / max(count, 1) if count else float('nan')"
    Where the whole batch has no answer, zero was asked for.
summed: "total / count if count else 0.0" -> "total"
    That is the sum. The mean over the answers' tokens was asked for.
last_part: "in parts:" -> "in parts[-1:]:"
    Only the last part counts.
questions_too: "surprise[is_answer].sum()" -> "surprise[surprise.isfinite()].sum()",
  "int(is_answer.sum())" -> "int(surprise.isfinite().sum())"
    Questions count, too. Which tokens teach the assistant?
""")


@exercise.must_hold("How the batch is cut may not matter: the same tokens in one part have the same loss.")
def cut_does_not_matter(trial: Trial) -> str | None:
    (parts,) = trial.inputs
    joined = [tuple(torch.cat([one[side].flatten() for one in parts])[None] for side in (0, 1))]
    came = trial.run(joined)
    return None if abs(came - trial.value) < 1e-9 else f"In one part it is {came:.4g}, in several {trial.value:.4g}."


@exercise.must_hold("The loss of a batch without any answer is zero.", always=True)
def nothing_to_learn_is_zero(trial: Trial) -> str | None:
    (parts,) = trial.inputs
    came = trial.run([(surprise, torch.zeros_like(is_answer)) for surprise, is_answer in parts])
    return None if came == 0 else f"Where no token belongs to an answer, yours is {came}."


@exercise.must_hold("A loss is a number, and not negative.")
def is_a_number(trial: Trial) -> str | None:
    return None if 0 <= trial.value < float("inf") else f"Yours is {trial.value}."
