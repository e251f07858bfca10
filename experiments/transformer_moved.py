"""*Drank* never after an adverb: ten first weights of the chapter's own recipe, as it stands on the page.

The page trains one translator that never meets *drank* after an adverb, by its own recipe (batches drawn with
replacement, float64). Here are ten, seeds 0 to 9, which draw the first weights and the batches. As a
control ten others learn from as many sentences, among them half of the removed kind, and are asked the other half.
Recorded are the shares of sentences written without a mistake, at random and of the removed kind, and what stands in
the second place of the latter. About a minute of one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from experiments.transformer_notes import PAIRS, SOURCES, TARGETS, WORDS, real, write
from ttutor.tokenization import PAD_ID
from ttutor.transformer import Transformer, TransformerConfig

SEEDS = list(range(10))
STEPS, WARMUP, BATCH, RATE = 160, 30, 32, 0.004
VERBS = {german.split()[-1] for english, german in PAIRS if english.startswith("the ")}


def split() -> tuple[Tensor, Tensor, Tensor]:
    """Rows held out at random, rows of *drank* after an adverb, rows to learn from; as on the page."""
    goat = PAIRS.index(("yesterday the old goat ate", "gestern fraß die alte Ziege"))
    order = torch.randperm(len(PAIRS), generator=torch.Generator().manual_seed(0))
    order = torch.cat([torch.tensor([goat]), order[order != goat]])
    texts = [english.split() for english, _ in PAIRS]
    is_moved = torch.tensor([text[0] != "the" and text[-1] == "drank" for text in texts])
    others = order[~is_moved[order]]
    return others[:234], is_moved.nonzero().flatten(), others[234:]


def trained(rows: Tensor, seed: int) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "dropout": 0.0, "max_len": 16}
    model = Transformer(TransformerConfig(vocab_size=WORDS.vocab_size, **sizes))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, step / WARMUP) * (1 - (step - 1) / STEPS)
        batch = rows[torch.randint(len(rows), (BATCH,))]
        logits = model(SOURCES[batch], TARGETS[batch][:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, TARGETS[batch][:, 1:].flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def texts_of(model: Transformer, rows: Tensor) -> list[str]:
    source = SOURCES[rows]
    return [WORDS.decode(row) for row in write(model, model.encode(source), real(source), 7)]


def share_right(texts: list[str], rows: Tensor) -> float:
    right = [text == PAIRS[row][1] for text, row in zip(texts, rows.tolist(), strict=True)]
    return round(sum(right) / len(right), 4)


def measured(seed: int) -> dict:
    at_random, moved, learn_from = split()
    model = trained(learn_from, seed)
    written = texts_of(model, moved)
    second = [[*text.split(), "", ""][1] for text in written]
    result = {
        "at random": share_right(texts_of(model, at_random), at_random),
        "moved": share_right(written, moved),
        "trank second": round(second.count("trank") / len(second), 4),
        "another verb second": round(sum(word in VERBS - {"trank"} for word in second) / len(second), 4),
    }
    half = torch.randperm(len(moved), generator=torch.Generator().manual_seed(1))
    taught, asked = moved[half[:90]], moved[half[90:]]
    together = torch.cat([learn_from[90:], taught])
    without_gap = trained(together, seed)
    result["moved, half of them seen"] = share_right(texts_of(without_gap, asked), asked)
    print(seed, result, flush=True)
    return result


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    results = {"seeds": {str(seed): measured(seed) for seed in SEEDS}}
    _record.write("transformer_moved", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
