"""A verb that never follows an adverb in training: does the verb, the first weights or the recipe decide what is right?

The chapter's grammar: 1,350 English sentences and their German, in which an adverb at the beginning moves the verb to
the second place. For each of the six verbs in turn we remove its sentences with an adverb, and a fifth of the others at
random. Each verb is left out with three first weights (and the order of batches that goes with them), so verb and
weights can be told apart. A model is the chapter's: width 32, two layers in each stack, 160 steps of 32 sentences, the
rate climbing for 30 steps and falling in a line. Recorded is the rate that the schedule reaches, not its factor. Arms:
the norm after or before the sublayers, and PyTorch's first weights for all linear maps; four rates. About six
minutes of one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.animals import animal_sentences
from ttutor.generation import greedy_search
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, WordTokenizer
from ttutor.training.fit import fit
from ttutor.transformer import Transformer, TransformerConfig

VERBS = ["sat", "slept", "ran", "ate", "stood", "drank"]
SEEDS = [0, 1, 2]
STEPS, WARMUP, BATCH = 160, 30, 32
FACTORS = [0.004, 0.01, 0.025, 0.0625]
POST, PRE, TORCH = "post-norm", "pre-norm", "post-norm, PyTorch's first weights"

PAIRS = animal_sentences()
WORDS = WordTokenizer.train([text for pair in PAIRS for text in pair])
GERMAN_VERBS = {german.split()[-1] for english, german in PAIRS if english.startswith("the ")}


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows])


SOURCES = padded([WORDS.encode(english) + [EOS_ID] for english, _ in PAIRS])
TARGETS = padded([[BOS_ID, *WORDS.encode(german), EOS_ID] for _, german in PAIRS])


def split(verb: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows to learn from, rows held out at random, and all rows with this verb after an adverb."""
    removed = torch.tensor([not english.startswith("the ") and english.endswith(verb) for english, _ in PAIRS])
    (others,), (moved,) = (~removed).nonzero(as_tuple=True), removed.nonzero(as_tuple=True)
    others = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(0))]
    n_held_out = len(others) // 5
    return others[n_held_out:], others[:n_held_out], moved


def next_token_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    source, target = batch
    logits = model(source, target[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD_ID)


def rate_at(step: int, factor: float) -> float:
    return factor * min(1, step / WARMUP) * (1 - (step - 1) / STEPS)


def trained(rows: Tensor, seed: int, factor: float, arm: str) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "dropout": 0.0, "max_len": 16}
    norm = "pre" if arm == PRE else "post"
    model = Transformer(TransformerConfig(vocab_size=WORDS.vocab_size, norm=norm, **sizes))
    if arm == TORCH:
        for stack in (model.encoder, model.decoder):
            for module in stack.modules():
                if isinstance(module, nn.Linear):
                    module.reset_parameters()
    batches = [rows[torch.randperm(len(rows))[:BATCH]] for _ in range(STEPS)]
    fit(
        model,
        [(SOURCES[batch], TARGETS[batch]) for batch in batches],
        next_token_loss,
        steps=STEPS,
        learning_rate=lambda step: rate_at(step, factor),
    )
    return model


def answers(model: Transformer, rows: Tensor) -> list[str]:
    found = greedy_search(model, SOURCES[rows], max_new_tokens=7, bos_id=BOS_ID, eos_id=EOS_ID)
    return [WORDS.decode(hypothesis.token_ids) for hypothesis in found]


def share_right(written: list[str], rows: Tensor) -> float:
    right = [answer == PAIRS[row][1] for answer, row in zip(written, rows.tolist(), strict=True)]
    return round(sum(right) / len(right), 4)


def measured(arm: str, factor: float, verb: str) -> dict:
    """All first weights of one arm at one rate, with one verb left out."""
    learn_from, random_rows, moved = split(verb)
    shares: dict[str, list[float]] = {"at_random": [], "moved": [], "verb_second": []}
    for seed in SEEDS:
        model = trained(learn_from, seed, factor, arm)
        written = answers(model, moved)
        second = [len(answer.split()) > 1 and answer.split()[1] in GERMAN_VERBS for answer in written]
        shares["at_random"].append(share_right(answers(model, random_rows), random_rows))
        shares["moved"].append(share_right(written, moved))
        shares["verb_second"].append(round(sum(second) / len(second), 4))
    highest = round(max(rate_at(step, factor) for step in range(1, STEPS + 1)), 5)
    print(arm, factor, highest, verb, shares, flush=True)
    return {"arm": arm, "factor": factor, "highest_rate": highest, "verb": verb, **shares}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    _record.write(
        "transformer_verbs",
        {
            "settings": {"steps": STEPS, "warmup": WARMUP, "batch": BATCH, "dtype": "float32"},
            "runs": [measured(arm, factor, verb) for arm in (POST, TORCH, PRE) for factor in FACTORS for verb in VERBS],
        },
        seeds=SEEDS,
        started=started,
    )


if __name__ == "__main__":
    main()
