"""How much a draft saves: the length that is kept, against how good the draft is.

A GPT of three layers is trained on the English side of the embedded corpus, character by character. Its drafts are GPTs
of one layer and a twentieth of its size, trained for 0 to 1,000 steps; beside them the model itself drafts. For
each draft: its loss on test sentences, the share of drafted characters that are kept by the formula (the mean over test
characters of the sum of the smaller probabilities), the share that was kept while 12 texts of 56 characters were
written, and how many characters each pass of the large model gave, for 1, 2, 4 and 8 drafted ones. The formula
(1 - a^(k+1)) / (1 - a) for the latter takes every character for equally easy. Three seeds of each draft. Texts stay as
short as the pieces of training: in texts of twice that length a draft of the same loss had far less of it kept.
"""

import torch
from torch import nn

from experiments import _record
from experiments._characters import characters_of, loss_on, next_character_loss
from ttutor.corpora.corpus import embedded_corpus
from ttutor.generation.speculative import accepted_share, speculative_sample
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS, SEED_OF_LARGE = [0, 1, 2], 7
STEPS_LARGE, STEPS = 1500, [0, 100, 300, 1000]
N_DRAFTED, N_TEXTS, N_NEW = [1, 2, 4, 8], 12, 56  # no longer than the pieces of training


def trained(task, n_characters: int, seed: int, steps: int, **sizes: int) -> GPT:
    torch.manual_seed(seed)
    config = GPTConfig(vocab_size=n_characters, **sizes, max_len=256, dropout=0.0, positions="rotary")
    model = GPT(config)
    fit(model, task.batches(steps), next_character_loss, steps=steps, learning_rate=3e-3)
    return model.eval()


def measure(model: nn.Module, draft: nn.Module, test: torch.Tensor, seed: int) -> dict:
    """How a draft does, by the formula and by writing."""
    with torch.no_grad():
        wanted, drafted = (each(test[:, :-1]).softmax(dim=-1) for each in (model, draft))
    share = accepted_share(wanted, drafted)
    row = {"loss": loss_on(draft, test), "share": round(share.mean().item(), 4), "writing": []}
    for n_drafted in N_DRAFTED:
        generator = torch.Generator().manual_seed(1000 + seed)
        made = [
            speculative_sample(model, draft, test[text : text + 1, :8], generator=generator, max_new_tokens=N_NEW,
                               n_drafted=n_drafted)
            for text in range(N_TEXTS)
        ]  # fmt: skip
        kept, proposed = (sum(sum(getattr(each, name)) for each in made) for name in ("kept", "drafted"))
        passes = sum(len(each.kept) for each in made)
        a = row["share"]
        row["writing"].append(
            {
                "n_drafted": n_drafted,
                "kept_share": round(kept / proposed, 4),
                "characters_per_pass": round(N_TEXTS * N_NEW / passes, 3),
                "formula": round(sum(a**i for i in range(n_drafted + 1)), 3),
            }
        )
    return row


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    task, letters = characters_of(corpus)
    large = trained(task, len(letters), SEED_OF_LARGE, STEPS_LARGE, d_model=64, n_heads=4, n_layers=3, d_ff=256)
    rows = [{"draft": "the model itself", "seed": 0, **measure(large, large, task.test, 0)}]
    for steps in STEPS:
        for seed in SEEDS:
            draft = trained(task, len(letters), seed, steps, d_model=24, n_heads=2, n_layers=1, d_ff=96)
            rows.append({"draft": steps, "seed": seed, **measure(large, draft, task.test, seed)})
            print(rows[-1], flush=True)
    n_parameters = [sum(each.numel() for each in model.parameters()) for model in (large, draft)]
    settings = {
        "steps_large": STEPS_LARGE, "parameters": n_parameters, "loss_large": loss_on(large, task.test),
        "frequencies_alone": task.frequency_loss(len(letters)),
    }  # fmt: skip
    _record.write(
        "decoder_speculative", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_LARGE], started=started,
        embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
