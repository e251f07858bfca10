"""LoRA against full fine-tuning: a small model of English sentences learns French from few or many.

A GPT of two layers is trained on the English side of the embedded corpus, character by character, and then on the
French side (written without accents, so that no letter is new), with 100 or 10,000 sentences. Full fine-tuning trains
everything; LoRA adds matrices of low rank, to queries and values as its paper does, or to every map. Beside them
stand the model before fine-tuning and one that begins with random weights.

Every method has its learning rate chosen by the lowest French validation loss of one run with a seed that is used for
nothing else. Then five seeds are fine-tuned, from one English model, and measured on French and on English test
sentences (what was forgotten). Losses in nats per character. With 100 sentences the best rate of full fine-tuning is
the smallest of the grid, and that of rank 1 the largest, so theirs are upper bounds.
"""

import copy
import unicodedata

import torch
from torch import nn

from experiments import _record
from experiments._characters import characters_of, loss_on, next_character_loss
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.training.low_rank import attach_low_rank
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS, SEED_OF_CHOICE, SEED_OF_ENGLISH = [0, 1, 2, 3, 4], 100, 7
STEPS_ENGLISH, STEPS = 1000, 200
RATES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
SENTENCES = [100, 10_000]
MAPS = ("to_query", "to_key", "to_value", "to_output", "widen", "narrow")
METHODS = {
    "from scratch": None,
    "full": None,
    "rank 1, queries and values": (1, MAPS[0:3:2]),
    "rank 4, queries and values": (4, MAPS[0:3:2]),
    "rank 4, every map": (4, MAPS),
    "rank 16, every map": (16, MAPS),
}


def without_accents(pair: tuple[str, str]) -> str:
    """The French sentence in the letters of English."""
    return unicodedata.normalize("NFD", pair[1]).encode("ascii", "ignore").decode("ascii")


def fresh(n_characters: int, seed: int) -> GPT:
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "max_len": 64, "dropout": 0.0}
    return GPT(GPTConfig(vocab_size=n_characters, **sizes, positions="rotary"))


def adapt(english: nn.Module, method: str, french, rate: float, seed: int, n_characters: int) -> nn.Module:
    """One fine-tuning."""
    torch.manual_seed(seed)
    model = fresh(n_characters, seed) if method == "from scratch" else copy.deepcopy(english)
    if METHODS[method] is not None:
        rank, maps = METHODS[method]
        attach_low_rank(model, rank=rank, layers=maps)
    fit(model, french.batches(STEPS), next_character_loss, steps=STEPS, learning_rate=rate)
    return model


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    letters = "".join(
        sorted({letter for split in (corpus.train, corpus.validation, corpus.test) for pair in split
                for letter in pair[0] + without_accents(pair) + "\n"})
    )  # fmt: skip
    english, _ = characters_of(corpus, alphabet=letters)
    model = fresh(len(letters), SEED_OF_ENGLISH)
    fit(model, english.batches(STEPS_ENGLISH), next_character_loss, steps=STEPS_ENGLISH, learning_rate=3e-3)
    rows = []
    for n_sentences in SENTENCES:
        french, _ = characters_of(corpus, without_accents, letters)
        share = n_sentences / 10_000
        french = type(french)(french.text[: int(share * len(french.text))], french.validation, french.test)
        n_pieces = min(64, len(french.text) // 65)
        beginning = french.text[: n_pieces * 65].reshape(n_pieces, 65)
        before = {"french": loss_on(model, french.test), "english": loss_on(model, english.test)}
        for method in METHODS:
            tried = [
                loss_on(adapt(model, method, french, rate, SEED_OF_CHOICE, len(letters)), french.validation)
                for rate in RATES
            ]
            rate = RATES[tried.index(min(tried))]
            models = [adapt(model, method, french, rate, seed, len(letters)) for seed in SEEDS]
            rows.append(
                {
                    "sentences": n_sentences,
                    "method": method,
                    "trained": sum(each.numel() for each in models[0].parameters() if each.requires_grad),
                    "tried": tried,
                    "rate": rate,
                    "french_training": [loss_on(each, beginning) for each in models],
                    "french": [loss_on(each, french.test) for each in models],
                    "english": [loss_on(each, english.test) for each in models],
                }
            )
            print(rows[-1], flush=True)
    settings = {
        "steps": STEPS, "steps_english": STEPS_ENGLISH, "rates": RATES, "before": before,
        "parameters": sum(each.numel() for each in model.parameters()),
        "frequencies_alone": french.frequency_loss(len(letters)),
    }  # fmt: skip
    _record.write(
        "variants_low_rank", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_CHOICE, SEED_OF_ENGLISH],
        started=started, embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
