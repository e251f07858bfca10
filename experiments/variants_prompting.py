"""A decoder that answers from its prompt: which animal makes which sound is another thing in every document.

A document is a list of sentences of two words, "dog barked cat purred dog barked ...". It pairs two to eight of eight
animals with as many of eight verbs, anew, so that no weight can hold the pairs: they have to be read in the document.
An animal is never paired with its own verb (dog and barked) in training; those eight pairs are held out. A GPT of two
layers and width 32, with rotary positions and PyTorch's start, is trained to name the verbs, 1,500 steps of 32
documents of 16 sentences; its rate was chosen with a seed used for nothing else, by the share right of verbs that can
be known. Three seeds; the weights are stored in float32, each model's in one piece, in the order of its parameters.

Measured on 1,000 new documents of eight animals: the share of right verbs by how often their animal stood in the
document before, and the same where every animal has the verb of its own. To know the verbs of the document and not
whose they are is the trivial answer: one in as many as stood there.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments import variants_objectives as language
from ttutor.training.fit import fit
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS, SEED_OF_CHOICE, RATES = [0, 1, 2], 100, [1e-3, 3e-3, 1e-2]
STEPS, BATCH, N_SENTENCES, N_ANIMALS = 1500, 32, 16, 8
CONFIG = {"vocab_size": 2 * N_ANIMALS, "d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
CONFIG |= {"max_len": 2 * N_SENTENCES, "dropout": 0.0, "positions": "rotary"}
"""Tokens 0 to 7 are the animals in the order of the language, 8 to 15 their verbs."""


def strangers(n: int, generator: torch.Generator) -> Tensor:
    """For each of n documents, a verb for each animal, none its own."""
    verbs = torch.rand(n, N_ANIMALS, generator=generator).argsort(dim=1)
    while (own := (verbs == torch.arange(N_ANIMALS)).any(dim=1)).any():
        verbs[own] = torch.rand(int(own.sum()), N_ANIMALS, generator=generator).argsort(dim=1)
    return verbs


def documents(n: int, n_animals: int, generator: torch.Generator, *, own: bool = False) -> Tensor:
    """Token ids, animal and verb in turn, from documents about so many animals."""
    verbs = torch.arange(N_ANIMALS).expand(n, -1) if own else strangers(n, generator)
    present = torch.rand(n, N_ANIMALS, generator=generator).argsort(dim=1)[:, :n_animals]
    animals = present.gather(1, torch.randint(n_animals, (n, N_SENTENCES), generator=generator))
    return torch.stack([animals, verbs.gather(1, animals) + N_ANIMALS], dim=2).flatten(1)


def verb_loss(model: nn.Module, batch: Tensor) -> Tensor:
    """Mean cross-entropy of the verbs, in nats."""
    return functional.cross_entropy(model(batch[:, :-1])[:, ::2].flatten(0, 1), batch[:, 1::2].flatten())


def train(rate: float, seed: int) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(seed)
    model, generator = GPT(GPTConfig(**CONFIG)), torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.reset_parameters()
    counts = torch.randint(2, N_ANIMALS + 1, (STEPS,), generator=generator)
    batches = [documents(BATCH, int(count), generator) for count in counts]
    losses = fit(model, batches, verb_loss, steps=STEPS, learning_rate=rate)
    return model, losses


def by_mentions(model: nn.Module, seed: int, *, own: bool) -> list[float]:
    """Shares of right verbs whose animal stood in the document 0, 1, 2 and 3 or more times before."""
    batch = documents(1000, N_ANIMALS, torch.Generator().manual_seed(seed), own=own)
    animals, verbs = batch[:, ::2], batch[:, 1::2]
    before = torch.stack([(animals[:, :at] == animals[:, [at]]).sum(dim=1) for at in range(N_SENTENCES)], dim=1)
    with torch.no_grad():
        right = (model(batch[:, :-1])[:, ::2].argmax(dim=-1) == verbs).double()
    return [round(right[before.clamp(max=3) == count].mean().item(), 3) for count in range(4)]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    tried = [by_mentions(train(rate, SEED_OF_CHOICE)[0], 1000, own=False)[1] for rate in RATES]
    rate = RATES[tried.index(max(tried))]
    print(tried, flush=True)
    rows, weights = [], {}
    for seed in SEEDS:
        model, losses = train(rate, seed)
        weights[str(seed)] = nn.utils.parameters_to_vector(model.parameters()).detach().float()
        means = torch.tensor(losses).unflatten(0, (-1, 50)).mean(dim=1)
        rows.append(
            {
                "loss": [round(loss, 3) for loss in means.tolist()],
                "right": by_mentions(model, 2000, own=False),
                "right_own": by_mentions(model, 2001, own=True),
            }
        )
        print(rows[-1], flush=True)
    settings = {"config": CONFIG, "steps": STEPS, "rates": RATES, "tried": tried, "rate": rate}
    results = {"settings": settings, "words": [*language.CALLS, *language.CALLS.values()], "rows": rows}
    _record.write("variants_prompting", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started, weights=weights)


if __name__ == "__main__":
    main()
