"""What reinforcement pays for its reward: distance from the reference, entropy, and sums of other kinds (chapter 13).

Five seeds: the stored language model of the seed, 60 steps of instruction tuning, then 60 of GRPO as on the page
(`_sums`): free, at a price of one reward per nat of going far, and as a control with the same rewards dealt out at
random among all answers of a step. Every tenth step, of two sampled answers to each of the 200 unseen sums: the
share that is right; the KL divergence from the assistant in nats per answer, estimated by the mean of log p - log p_ref
over the model's own answers; and the entropy, the mean of -log p. SFT on accepted answers is looked at once, at its
end. Beside them the best of n answers of the assistant, picked by the verifier: pass@n, at log n - (n - 1) / n nats.

Then, of the assistant, of the free run and of SFT on accepted answers: pass@1 and pass@8 on sums of two kinds that no
page and no conversation had: a first number from 90 to 99, and a second number of two digits.
"""

import math

import torch
from torch import nn

from experiments import _record
from experiments._sums import (
    Pair,
    accepted,
    answers_in,
    base,
    log_p,
    questions,
    reinforce,
    splits,
    strict,
    tries,
    tune,
    write,
)
from ttutor.training.assistant import pass_at_k

SEEDS = [0, 1, 2, 3, 4]
PRICES = {"free": 0.0, "at a price": 1.0}
NINETIES: list[Pair] = [(a, b) for a in range(90, 100) for b in range(10) if a + b < 100]
LONGER: list[Pair] = [(a, b) for a in range(11, 90, 7) for b in range(10, 90 - a + 10, 9)]


def shuffled(pairs: list[Pair], texts: list[str]) -> torch.Tensor:
    """The verifier's rewards, dealt out anew."""
    rewards = strict(pairs, texts)
    order = torch.Generator().manual_seed(len(texts) + int(rewards.sum()))
    return rewards[torch.randperm(len(rewards), generator=order)]


def distance(reference: nn.Module, model: nn.Module, n: int = 2) -> dict[str, float]:
    """How far the model is from the reference, how much it may still write, and how often it is right."""
    pairs = [pair for pair in splits()[2] for _ in range(n)]
    with torch.no_grad():
        rows = write(model, questions(pairs), torch.Generator().manual_seed(3))
        now, before = log_p(model, rows), log_p(reference, rows)
    return {
        "right": round(strict(pairs, answers_in(rows)).mean().item(), 3),
        "divergence": round((now - before).mean().item(), 3),
        "entropy": round(-now.mean().item(), 3),
    }


def best_of(model: nn.Module) -> list[dict[str, float]]:
    """The best of n answers, for n from 1 to 8."""
    pairs = [pair for pair in splits()[2] for _ in range(8)]
    texts = answers_in(write(model, questions(pairs), torch.Generator().manual_seed(2)))
    n_right = strict(pairs, texts).view(-1, 8).sum(dim=1).long()
    return [
        {
            "right": round(pass_at_k(n_right, 8, n).mean().item(), 3),
            "divergence": round(math.log(n) - (n - 1) / n, 3),
        }
        for n in range(1, 9)
    ]


def elsewhere(model: nn.Module) -> dict[str, dict[str, float]]:
    return {"nineties": tries(model, unseen=NINETIES), "longer": tries(model, unseen=LONGER)}


def one_seed(seed: int) -> dict:
    assistant = base(seed)
    tune(assistant, seed)
    row: dict = {"best of": best_of(assistant), "elsewhere": {"assistant": elsewhere(assistant)}}

    def far(model: nn.Module) -> dict[str, float]:
        return distance(assistant, model)

    for name, price in PRICES.items():
        learner, row[name], _ = reinforce(assistant, strict, seed, kl_weight=price, seen_by=far)
        if price == 0:
            row["elsewhere"]["grpo"] = elsewhere(learner)
    _, row["rewards at random"], _ = reinforce(assistant, shuffled, seed, seen_by=far)
    learner, _ = accepted(assistant, seed)
    row["accepted"] = far(learner)
    row["elsewhere"]["accepted"] = elsewhere(learner)
    return row


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    rows = []
    for seed in SEEDS:
        rows.append(one_seed(seed))
        print({name: value[-1] if isinstance(value, list) else value for name, value in rows[-1].items()}, flush=True)
    results = {"rows": rows, "nineties": len(NINETIES), "longer": len(LONGER)}
    _record.write("assistant_price", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
