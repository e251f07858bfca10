"""One table or two after 80 steps: the chapter's small translator, tied and untied in three ways, three seeds.

1,350 sentences of a small English grammar and their German, a fifth held out, as in the chapter. A Transformer of width
32 with two layers in each stack is trained for 80 steps of 32 sentences; the rate climbs for 20 steps and falls in a
line. All models of a seed see the same batches. An untied output starts by Glorot's rule, drawn like the embedding
table, or as a copy of it. Recorded is the share of held-out sentences that are written without a mistake. About half a
minute of one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.animals import animal_sentences
from ttutor.generation import greedy_search
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, WordTokenizer
from ttutor.training.fit import fit
from ttutor.transformer import Transformer, TransformerConfig

SEEDS = [0, 1, 2]
STEPS, WARMUP, BATCH, N_HELD_OUT = 80, 20, 32, 270
TIED, UNTIED = "tied", "untied"
DRAWN, COPIED = "untied, drawn like the table", "untied, a copy of the table"
RUNS = [(0.004, TIED), (0.004, UNTIED), (0.004, DRAWN), (0.004, COPIED), (0.008, TIED), (0.008, UNTIED)]

PAIRS = animal_sentences()
WORDS = WordTokenizer.train([text for pair in PAIRS for text in pair])


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows])


SOURCES = padded([WORDS.encode(english) + [EOS_ID] for english, _ in PAIRS])
TARGETS = padded([[BOS_ID, *WORDS.encode(german), EOS_ID] for _, german in PAIRS])


def split() -> tuple[Tensor, Tensor]:
    """Rows that are held out, "the cat sat" first among them, and rows to learn from."""
    cat_sat = PAIRS.index(("the cat sat", "die Katze saß"))
    shuffled = torch.randperm(len(PAIRS), generator=torch.Generator().manual_seed(0))
    shuffled = torch.cat([torch.tensor([cat_sat]), shuffled[shuffled != cat_sat]])
    return shuffled[:N_HELD_OUT], shuffled[N_HELD_OUT:]


def next_token_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    source, target = batch
    logits = model(source, target[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD_ID)


def share_right(model: Transformer, held_out: Tensor) -> float:
    found = greedy_search(model, SOURCES[held_out], max_new_tokens=7, bos_id=BOS_ID, eos_id=EOS_ID)
    answers = [WORDS.decode(hypothesis.token_ids) for hypothesis in found]
    right = [answer == PAIRS[row][1] for answer, row in zip(answers, held_out.tolist(), strict=True)]
    return round(sum(right) / len(right), 4)


def after_the_steps(seed: int, top_rate: float, output: str) -> float:
    """Train one translator; the share of held-out sentences that it writes without a mistake."""
    held_out, train_rows = split()
    config = TransformerConfig(
        vocab_size=WORDS.vocab_size, d_model=32, n_heads=4, n_layers=2, d_ff=64, dropout=0.0, max_len=16
    )
    torch.manual_seed(seed)
    model = Transformer(config.replace(tie_embeddings=output == TIED))
    table = model.source_embeddings.token.table.weight
    with torch.no_grad():
        if output == DRAWN:
            nn.init.normal_(model.to_logits.weight, std=table.shape[1] ** -0.5)
        elif output == COPIED:
            model.to_logits.weight.copy_(table)
    choose = torch.Generator().manual_seed(seed)  # of its own: every model of a seed sees the same batches
    rows = [train_rows[torch.randperm(len(train_rows), generator=choose)[:BATCH]] for _ in range(STEPS)]
    fit(
        model,
        [(SOURCES[row], TARGETS[row]) for row in rows],
        next_token_loss,
        steps=STEPS,
        learning_rate=lambda step: top_rate * min(1, step / WARMUP) * (1 - (step - 1) / STEPS),
    )
    return share_right(model, held_out)


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    runs = [
        {
            "learning_rate": top_rate,
            "output": output,
            "share_right": [after_the_steps(seed, top_rate, output) for seed in SEEDS],
        }
        for top_rate, output in RUNS
    ]
    settings = {"steps": STEPS, "warmup": WARMUP, "batch": BATCH, "held_out": N_HELD_OUT}
    _record.write("transformer_tying", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
