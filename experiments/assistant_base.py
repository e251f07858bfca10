"""The language models of chapter 13: they read pages of sums, some of them never answered, most answers wrong.

A GPT of two layers, width 48, predicts every next token of pages (see `_sums`). Five seeds, and a sixth by whose
model all rates of the chapter are chosen; weights are stored in half precision, and what follows starts from these. The
steps and the rate are those at which another seed had learned the units of unseen sums; nothing is compared by them.

Of each model: how it goes on after a question on a fresh page, for 200 unseen sums, and what it says where it answers.
"""

import random

import torch

from experiments import _record
from experiments._sums import (
    BREAK,
    INDEX,
    SECOND,
    SIZES,
    VOCABULARY,
    WORKSHEETS,
    WRONG,
    fresh,
    ids,
    next_token_loss,
    page,
    pre_train,
    sample,
    slip,
    splits,
    texts_of,
    written,
)

SEEDS, SEED_OF_CHOICE = [0, 1, 2, 3, 4], 100
STEPS, RATE = 700, 3e-3


@torch.no_grad()
def page_loss(model: torch.nn.Module, pairs: list[tuple[int, int]]) -> float:
    rng = random.Random(1)
    pages = ids([page(pairs, rng, WORKSHEETS, WRONG) for _ in range(2000)])
    return round(next_token_loss(model.eval(), pages).item(), 4)


@torch.no_grad()
def continuations(model: torch.nn.Module, pairs: list[tuple[int, int]]) -> dict[str, float]:
    """After a question on a fresh page: a line break, or an answer, and which."""
    asked = torch.nn.functional.pad(ids([f"{a:02d}+{b}=" for a, b in pairs]), (1, 0), value=BREAK)
    torch.manual_seed(1)
    texts = texts_of(*sample(model, asked, length=4))
    best = model(asked)[:, -1].argmax(-1)
    answered = [(pair, text) for pair, text in zip(pairs, texts, strict=True) if text[0] != "\n"]
    right = sum(text[1:3] == written(a + b) for (a, b), text in answered)
    slipped = sum(text[1:3] == written(slip(a, b)) for (a, b), text in answered)
    return {
        "likeliest is a line break": round((best == BREAK).float().mean().item(), 3),
        "answers": round(len(answered) / len(pairs), 3),
        "right, of answers": round(right / len(answered), 3),
        "common mistake, of answers": round(slipped / len(answered), 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    _, _, test = splits()
    rate = RATE
    model = fresh(SEED_OF_CHOICE)
    pre_train(model, SEED_OF_CHOICE, STEPS, rate)
    chosen = torch.nn.utils.parameters_to_vector(model.parameters()).detach().half()
    weights, rows, example = {str(SEED_OF_CHOICE): chosen}, [], []
    for seed in SEEDS:
        model = fresh(seed)
        losses = pre_train(model, seed, STEPS, rate)
        half = torch.nn.utils.parameters_to_vector(model.parameters()).detach().half()
        torch.nn.utils.vector_to_parameters(half.float(), model.parameters())
        weights[str(seed)] = half
        curve = [round(sum(losses[i : i + 50]) / 50, 3) for i in range(0, STEPS, 50)]
        rows.append({"curve": curve, "page loss": page_loss(model, test), **continuations(model, test)})
        torch.manual_seed(2)
        asked = torch.tensor([[INDEX[token] for token in "\n17+5="]] * 4)
        example.append(texts_of(*sample(model, asked, length=7)))
        print(rows[-1], example[-1], flush=True)
    settings = {
        "steps": STEPS, "rate": rate, "sizes": SIZES, "vocabulary": VOCABULARY,
        "worksheets": WORKSHEETS, "wrong": WRONG, "second": SECOND,
        "parameters": sum(one.numel() for one in model.parameters()),
    }  # fmt: skip
    _record.write(
        "assistant_base", {"settings": settings, "rows": rows, "17+5": example}, seeds=[*SEEDS, SEED_OF_CHOICE],
        started=started, weights=weights,
    )  # fmt: skip


if __name__ == "__main__":
    main()
