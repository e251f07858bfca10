"""Latent attention against grouped queries, where both cache equally many bytes.

Five small language models of equal size read the English side of the embedded corpus, character by character. Each has
8 query heads. *Full* heads cache 128 numbers of a token in each layer. *One key/value head* of 8 features caches 16.
*Latent* attention caches 16 as well: a vector of 12, from which every head makes keys and values of its own, and a
rotary key of 4 (so that queries and keys have 8 + 4 features, in the proportion of DeepSeek-V3); or a vector of 8 and a
rotary key of 8 (4 + 8 features). Since the latent vector passes a norm, another model has one key/value head and a norm
on queries and keys. `d_ff` makes all of them equally large.

Every model has its learning rate chosen by the lowest validation loss of one run with a seed that is used for nothing
else; then three seeds are measured on test sentences, from two initialisations, GPT-2's and that of PyTorch's linear
maps. Adam, 200 steps, a warm-up of a tenth, then a rate that falls to zero. Beside them stand the frequencies of
characters, and those of characters after each other character. Losses in nats per character.
"""

import torch
from torch import nn

from experiments import _record
from experiments._characters import Characters, characters_of, loss_on, next_character_loss
from ttutor.cache import DecoderCache
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.transformer.blueprint import Latent
from ttutor.variants.modern_decoder import ModernDecoder, ModernDecoderConfig

SEEDS, SEED_OF_CHOICE = [0, 1, 2], 100
RATES = [3e-3, 1e-2, 3e-2, 1e-1]
STEPS, D_FF = 200, 86
SIZES = {"d_model": 32, "n_heads": 8, "n_layers": 2, "max_len": 64}
HEADS = {
    "full": {"d_head": 8},
    "one key/value head": {"d_head": 8, "n_kv_heads": 1},
    "one, with QK-norm": {"d_head": 8, "n_kv_heads": 1, "qk_norm": "each head"},
    "latent, 12 and 4": {"latent": Latent(d_head=8, d_rotary=4, d_value=8, d_latent=12)},
    "latent, 8 and 8": {"latent": Latent(d_head=4, d_rotary=8, d_value=8, d_latent=8)},
}


def built(n_characters: int, heads: str, d_ff: int) -> ModernDecoder:
    return ModernDecoder(ModernDecoderConfig(vocab_size=n_characters, d_ff=d_ff, **SIZES, **HEADS[heads]))


def size(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


def d_ff_of_equal_size(n_characters: int, heads: str) -> int:
    """The inner width that brings the number of parameters nearest to that of full heads."""
    wanted = size(built(n_characters, "full", D_FF))
    return min(range(32, 160), key=lambda d_ff: abs(size(built(n_characters, heads, d_ff)) - wanted))


def cache_bytes_of_a_token(model: ModernDecoder) -> int:
    """Measured: what the cache holds after one token, in float32, all layers together."""
    cache = DecoderCache(model.config.n_layers)
    with torch.no_grad():
        model(torch.zeros(1, 1, dtype=torch.long), cache=cache)
    return cache.n_bytes


def trained(task: Characters, n_characters: int, heads: str, d_ff: int, start: str, rate: float, seed: int):
    torch.manual_seed(seed)
    model = built(n_characters, heads, d_ff)
    for part in model.modules():
        if start == "PyTorch" and isinstance(part, nn.Linear):
            part.reset_parameters()

    def rate_at(step: int) -> float:
        return rate * min(1.0, 10 * step / STEPS) * (1 - step / (STEPS + 1))

    fit(model, task.batches(STEPS), next_character_loss, steps=STEPS, learning_rate=rate_at)
    return model


def pair_loss(task: Characters, n_characters: int) -> float:
    """The loss of who knows how often each character follows each other one."""
    counts = torch.ones(n_characters, n_characters)
    counts.index_put_((task.text[:-1], task.text[1:]), torch.ones(()), accumulate=True)
    shares = counts / counts.sum(dim=1, keepdim=True)
    return round(-shares[task.test[:, :-1], task.test[:, 1:]].log().mean().item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    task, letters = characters_of(embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000}))
    n_characters, rows = len(letters), []
    for start in ("GPT-2", "PyTorch"):
        for heads in HEADS:
            d_ff = d_ff_of_equal_size(n_characters, heads)

            def run(rate, seed, fixed=(task, n_characters, heads, d_ff, start)):
                return trained(*fixed, rate, seed)

            tried = [loss_on(run(rate, SEED_OF_CHOICE), task.validation) for rate in RATES]
            rate = RATES[tried.index(min(tried))]
            models = [run(rate, seed) for seed in SEEDS]
            rows.append(
                {
                    "start": start,
                    "heads": heads,
                    "d_ff": d_ff,
                    "parameters": size(models[0]),
                    "cache_bytes_of_a_token": cache_bytes_of_a_token(models[0]),
                    "tried": tried,
                    "rate": rate,
                    "test": [loss_on(each, task.test) for each in models],
                }
            )
            print(rows[-1], flush=True)
    settings = {
        "rates": RATES, "steps": STEPS, "frequencies": task.frequency_loss(n_characters),
        "pairs": pair_loss(task, n_characters),
    }  # fmt: skip
    _record.write(
        "variants_latent", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_CHOICE], started=started,
        embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
