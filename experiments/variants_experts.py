"""A mixture of experts against dense networks of equal active and of equal total size.

A causal language model of two layers reads the English side of the embedded corpus, character by character. Its
feed-forward networks are gated, and everything else is equal. Dense: as wide as what a token visits in the mixtures,
128 features, or as all their experts together, 512. Mixtures: eight experts of 64 features, of which a token visits
two; left alone, with a balance loss of a hundredth, or with a bias that follows the load; and seven, of which it visits
one, beside one that all tokens visit. Each has its rate chosen on validation text with a seed that
is used for nothing else; then five seeds. Losses in nats per character, and the share of tokens that the busiest expert
of the last layer gets, of an even share.
"""

import torch
from _characters import characters_of, loss_on, next_character_loss
from torch import Tensor, nn

from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.transformer import account
from ttutor.variants.experts import BiasedRouter, balance_loss, record_routing
from ttutor.variants.modern_decoder import ExpertsConfig, ModernDecoder, ModernDecoderConfig

import _record

SEEDS, SEED_OF_CHOICE = [0, 1, 2, 3, 4], 100
RATES = [3e-3, 1e-2, 3e-2]
STEPS = 200
OF_EIGHT = ExpertsConfig(n_experts=8, n_chosen=2, d_ff=64)
KINDS = {
    "dense, as wide as what is active": {"d_ff": 128},
    "dense, as wide as all experts": {"d_ff": 512},
    "2 of 8 experts, left alone": {"experts": OF_EIGHT},
    "2 of 8 experts, balance loss": {"experts": OF_EIGHT},
    "2 of 8 experts, bias": {"experts": OF_EIGHT.replace(is_balanced=True)},
    "1 of 7 experts and 1 shared": {
        "experts": OF_EIGHT.replace(n_experts=7, n_chosen=1, n_shared=1, renormalise=False)
    },
}


def loss_of(kind: str):
    """What is minimised; a router's bias moves here, too, as in training it would after each step."""

    def loss(model: nn.Module, pieces: Tensor) -> Tensor:
        with record_routing(model) as routings:
            value = next_character_loss(model, pieces)
        if kind.endswith("bias"):
            routers = [module for module in model.modules() if isinstance(module, BiasedRouter)]
            for router, routing in zip(routers, routings, strict=True):
                router.rebalance(routing.n_visits(), step=0.01)
        if kind.endswith("loss"):
            return value + 0.01 * sum(map(balance_loss, routings))
        return value

    return loss


def config_of(kind: str, n_characters: int) -> ModernDecoderConfig:
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128, "max_len": 64}
    return ModernDecoderConfig(vocab_size=n_characters, **{**sizes, **KINDS[kind]})


def run(task, n_characters: int, kind: str, rate: float, seed: int) -> ModernDecoder:
    torch.manual_seed(seed)
    model = ModernDecoder(config_of(kind, n_characters))
    fit(
        model,
        task.batches(STEPS),
        loss_of(kind),
        steps=STEPS,
        learning_rate=lambda step: rate * min(1.0, step / 20),
    )
    return model


@torch.no_grad()
def busiest(model: ModernDecoder, pieces: Tensor) -> float | None:
    """The load of the last layer's busiest expert, of an even share."""
    with record_routing(model) as routings:
        model(pieces[:, :-1])
    if not routings:
        return None
    visits = routings[-1].n_visits()
    return round(float(visits.max() / visits.double().mean()), 2)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    task, letters = characters_of(corpus)
    rows = []
    for kind in KINDS:
        tried = [loss_on(run(task, len(letters), kind, rate, SEED_OF_CHOICE), task.validation) for rate in RATES]
        rate = RATES[tried.index(min(tried))]
        models = [run(task, len(letters), kind, rate, seed) for seed in SEEDS]
        costs = account(config_of(kind, len(letters)))
        rows.append(
            {
                "kind": kind,
                "parameters": costs.n_parameters,
                "active": costs.n_active_parameters,
                "tried": tried,
                "rate": rate,
                "training": [loss_on(model, task.text[: 65 * 128].reshape(128, 65)) for model in models],
                "test": [loss_on(model, task.test) for model in models],
                "busiest": [busiest(model, task.test) for model in models],
            }
        )
        print(rows[-1], flush=True)
    settings = {"steps": STEPS, "rates": RATES, "frequencies_alone": task.frequency_loss(len(letters))}
    _record.write(
        "variants_experts", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_CHOICE], started=started,
        embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
