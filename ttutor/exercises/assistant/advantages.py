"""Exercise: how much better an answer is than the others of its group."""

import torch
from jaxtyping import Float
from torch import Tensor

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def advantages(rewards: Float[Tensor, " answers"], group_size: int) -> Float[Tensor, " answers"]:
    """The advantage of each answer; those of one prompt stand side by side."""
    groups = rewards.reshape(-1, group_size)
    centred = groups - groups.mean(dim=1, keepdim=True)
    deviation = groups.std(dim=1, keepdim=True, unbiased=False)
    scaled = torch.where(deviation > 0, centred / deviation.clamp(min=1e-12), 0.0)
    return scaled.reshape(-1)


def reference(rewards, group_size):
    parts = []
    for group in rewards.split(group_size):
        centred = group - group.sum() / group_size
        variance = centred.square().sum() / group_size
        parts.append(centred / variance.sqrt() if variance > 0 else torch.zeros_like(group))
    return torch.cat(parts)


def _rewards(generator):
    """Groups with few and with many right answers, one with points in between, one all wrong and one all right."""
    group_size = drawn(generator, 6, 8)
    groups = torch.zeros(5, group_size, dtype=torch.float64)
    groups[0, drawn(generator, 0, group_size - 1)] = 1.0
    groups[1] = 1.0
    groups[1, drawn(generator, 1, group_size - 1)] = 0.0
    groups[2] = torch.rand(group_size, generator=generator, dtype=torch.float64)
    groups[4] = 1.0
    return groups.flatten(), group_size


exercise = Exercise(
    id="assistant.advantages",
    title="Better than the others",
    statement="""
For each prompt a model has written `group_size` answers, which stand side by side in one long row with their rewards.
Give each answer its advantage as GRPO defines it: the reward minus the mean of *its group*, divided by the group's
standard deviation (over the group as it is, not an estimate for a larger one). In a group whose answers all have one
reward nothing is to be learned: zeros.
""".strip(),
    reference=reference,
    solution=advantages,
    explanation="""
Without the group's mean, rewards of 0 and 1 push every right answer up and no wrong one down, and easy prompts push
hardest. With it, an answer is measured against what the same model does on the same prompt: right answers to hard
prompts count most. The division by the deviation is disputed (Liu et al. 2025): it lifts prompts on which nearly all
answers agree.
""".strip(),
    cases=(Case(name="five groups, two of them without a difference", inputs=_rewards),),
    hints="""
What does an answer that is right say about the model if all answers to that prompt are right?

Give the row the shape prompts by answers, and work along the second axis.

Centre with a mean that keeps its axis, divide by the deviation where it is positive, and flatten.
""",
    forbids=("group_advantages",),
    difficulty=2,
    minutes=15,
    section="13-assistant",
)

exercise.mutations(r"""
no_mean: "groups - groups.mean(dim=1, keepdim=True)" -> "groups"
    The mean of the group is missing: every right answer is pushed up, however easy the prompt, and no wrong one down.
mean_of_all: "groups.mean(dim=1, keepdim=True)" -> "groups.mean()"
    You compare with the mean of all groups. An answer to a hard prompt then looks bad because the prompt is hard.
mean_of_the_others: "groups.mean(dim=1, keepdim=True)" ->
  "(groups.sum(dim=1, keepdim=True) - groups) / (group_size - 1)"
    You compare each answer with the mean of the *others*. That is a choice one can make (leave one out), but not the
    one asked for here.
not_a_number: "torch.where(deviation > 0, centred / deviation.clamp(min=1e-12), 0.0)" -> "centred / deviation"
    Where all answers of a group agree, you divide zero by zero. A single NaN in a loss reaches every weight.
estimated: "unbiased=False" -> "unbiased=True"
    Your deviation is the estimate for a larger population, which divides by one fewer: PyTorch's default. Here the
    group is all there is.
not_divided: "torch.where(deviation > 0, centred / deviation.clamp(min=1e-12), 0.0)" -> "centred"
    The difference is right, and not yet divided by the standard deviation of the group.
variance: "unbiased=False)" -> "unbiased=False).square()"
    You divide by the variance. Its root, the standard deviation, was asked for.
deviation_of_all: "groups.std(dim=1, keepdim=True, unbiased=False)" -> "groups.std(unbiased=False)"
    You divide by the deviation of all rewards. Each group has its own.
mixed_groups: "rewards.reshape(-1, group_size)" -> "rewards.reshape(group_size, -1).T",
  "scaled.reshape(-1)" -> "scaled.T.reshape(-1)"
    Your groups mix answers to different prompts: those of one prompt stand side by side, so a group is a row.
turned_round: "groups - groups.mean(dim=1, keepdim=True)" -> "groups.mean(dim=1, keepdim=True) - groups"
    The sign is wrong: what is better than its group should get a positive advantage.
""")


@exercise.must_hold(
    "Within each group advantages sum to zero: what is better than the mean is balanced by what is worse."
)
def sums_to_zero(trial: Trial) -> str | None:
    _, group_size = trial.inputs
    sums = trial.value.reshape(-1, group_size).sum(dim=1)
    worst = int(sums.abs().argmax())
    return None if sums.abs().max() < 1e-6 else f"Those of group {worst} sum to {sums[worst].item():.3g}."


@exercise.must_hold(
    "An easier prompt changes nothing: a constant added to all rewards of a group leaves its advantages."
)
def constant_does_not_matter(trial: Trial) -> str | None:
    rewards, group_size = trial.inputs
    shift = torch.arange(len(rewards) // group_size, dtype=rewards.dtype).repeat_interleave(group_size)
    change = (trial.run(rewards + shift, group_size) - trial.value).abs().max().item()
    return None if change < 1e-6 else f"With 1, 2, 3, ... added to the groups, yours change by up to {change:.3g}."
