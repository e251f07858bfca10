"""Groups of eight answers during GRPO in chapter 13, recorded for the explorer of groups.

The first seed's assistant, 150 steps with the strict verifier and 150 with the lenient one (`_sums`). At every 30th
step the model answers each question eight times, and a copy of it makes one step of plain gradient descent on this
group alone.
"""

import copy
from typing import Any

import torch
from torch import nn

from experiments import _record
from experiments._sums import (
    Pair,
    Reward,
    answer_mask,
    answers_in,
    base,
    lenient,
    log_p,
    questions,
    reinforce,
    strict,
    tune,
    write,
)
from ttutor.training.assistant import answer_log_probabilities, group_advantages, policy_gradient_loss

STEPS, EVERY, RATE = 150, 30, 5e-4
QUESTIONS: list[Pair] = [(35, 7), (52, 6), (20, 4)]
VERIFIERS = {"strict": strict, "lenient": lenient}


def one_group(model: nn.Module, pair: Pair, reward: Reward) -> dict[str, list]:
    rows = write(model, questions([pair] * 8), torch.Generator().manual_seed(0))
    rewards, learner = reward([pair] * 8, answers_in(rows)), copy.deepcopy(model)
    each = answer_log_probabilities(learner(rows), rows, answer_mask(rows))
    policy_gradient_loss(each, group_advantages(rewards[None])[0]).backward()
    torch.optim.SGD(learner.parameters(), lr=RATE).step()
    with torch.no_grad():
        before, after = ([round(p, 3) for p in log_p(m, rows).exp().tolist()] for m in (model, learner))
    answers = [text.removesuffix("<end>") for text in answers_in(rows)]
    return {"answers": answers, "rewards": [int(r) for r in rewards], "before": before, "after": after}


def recorded(assistant: nn.Module, reward: Reward) -> list[list[dict[str, Any]]]:
    """For each question, its group at every recorded step."""
    groups: list[list[dict[str, Any]]] = [[] for _ in QUESTIONS]

    def see(model: nn.Module) -> dict[str, float]:
        for pair, found in zip(QUESTIONS, groups, strict=True):
            found.append(one_group(model, pair, reward))
        return {}

    reinforce(assistant, reward, 0, STEPS, RATE, seen_by=see)
    return [found[:: EVERY // 10] for found in groups]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    assistant = base(0)
    tune(assistant, 0)
    groups = {name: recorded(assistant, reward) for name, reward in VERIFIERS.items()}
    for name, of_questions in groups.items():
        for found in of_questions:
            print(name, *(group["answers"] for group in found), sep="\n  ")
    _record.write(
        "assistant_group",
        {"questions": [f"{a} + {b}" for a, b in QUESTIONS], "steps": [*range(0, STEPS + 1, EVERY)], "groups": groups},
        seeds=[0], started=started,
    )  # fmt: skip


if __name__ == "__main__":
    main()
