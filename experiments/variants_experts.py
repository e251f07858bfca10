"""A mixture of experts against a dense network: at equal active parameters, and at equal total ones.

The mixture has 16 experts of inner width 16, of which a token visits 2. Beside it stand a dense network with as many
parameters as work for one token, and one with as many as there are. Two tasks. *Facts*: 2,304 pairs of symbols have
one answer each, drawn at random, so that nothing can be had but by heart; counted is the share of pairs that are
answered right after training on them (guessing: 1 in 48). *Language*: the next character of English and French
sentences of the embedded corpus, measured on test sentences, in nats per character.

On facts two controls: without the loss that balances the load, and with a router that stays as it was drawn; and
dense and balanced networks start a second time as PyTorch's linear maps do. Every row has its learning rate chosen with
a seed that is used for nothing else, by the share of facts or by the loss on validation sentences. Then five seeds for
facts, each with a table of its own, and three for language. Adam, a warm-up of a tenth of the steps, then a rate that
falls to zero. On language the best rate of the small dense network is the largest of the grid, so its loss is an upper
bound.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments._characters import characters_of, loss_on, next_character_loss
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.variants.experts import Router, balance_loss, n_active_parameters, record_routing
from ttutor.variants.modern_decoder import ExpertsConfig, ModernDecoder, ModernDecoderConfig

SEEDS, SEED_OF_CHOICE = {"facts": [0, 1, 2, 3, 4], "language": [0, 1, 2]}, 100
RATES = {"facts": [3e-3, 1e-2, 3e-2, 1e-1], "language": [3e-3, 1e-2, 3e-2]}
STEPS, N_SYMBOLS, BATCH = 250, 48, 256
MIXTURE = {"d_ff": 16, "experts": ExpertsConfig(n_experts=16, n_chosen=2, d_ff=16)}
NETWORKS = {
    "dense, equal active": {"d_ff": 37},
    "dense, equal total": {"d_ff": 261},
    "mixture": MIXTURE,
    "mixture, no balance loss": MIXTURE,
    "mixture, router not trained": MIXTURE,
}
MAIN = list(NETWORKS)[:3]
SETTINGS = [
    *(("facts", "GPT-2", network) for network in NETWORKS),
    *(("facts", "PyTorch", network) for network in MAIN),
    *(("language", "GPT-2", network) for network in MAIN),
]


def built(task: str, start: str, network: str, n_tokens: int) -> ModernDecoder:
    """A model with its starting weights."""
    n_layers = 1 if task == "facts" else 2
    sizes = {"vocab_size": n_tokens, "d_model": 32, "n_heads": 4, "n_layers": n_layers, "max_len": 64}
    model = ModernDecoder(ModernDecoderConfig(**sizes, **NETWORKS[network]))
    for part in model.modules():
        if start == "PyTorch" and isinstance(part, nn.Linear):
            part.reset_parameters()
        if network == "mixture, router not trained" and isinstance(part, Router):
            part.requires_grad_(False)
    return model


def trained(model: nn.Module, batches, loss, rate: float, has_balance: bool) -> nn.Module:
    """Train with the balance loss where there are routers and it is wanted."""

    def objective(model: nn.Module, batch) -> Tensor:
        with record_routing(model) as routings:
            value = loss(model, batch)
        return value + 0.01 * sum(map(balance_loss, routings)) if has_balance else value

    def rate_at(step: int) -> float:
        return rate * min(1.0, 10 * step / STEPS) * (1 - step / (STEPS + 1))

    fit(model, batches, objective, steps=STEPS, learning_rate=rate_at)
    return model


def facts_run(start: str, network: str, rate: float, seed: int, _) -> dict:
    """Learn a table by heart; the share of it that is known, and the least and most visited experts' shares."""
    torch.manual_seed(seed)
    answer_of = torch.randint(N_SYMBOLS, (N_SYMBOLS * N_SYMBOLS,))

    def ask(model: nn.Module, pairs: Tensor) -> Tensor:
        both = torch.stack([pairs // N_SYMBOLS, N_SYMBOLS + pairs % N_SYMBOLS], dim=1)  # first symbol, second symbol
        return model(both)[:, -1, :N_SYMBOLS]

    model = built("facts", start, network, 2 * N_SYMBOLS)
    batches = (torch.randint(len(answer_of), (BATCH,)) for _ in range(STEPS))
    trained(
        model,
        batches,
        lambda model, pairs: functional.cross_entropy(ask(model, pairs), answer_of[pairs]),
        rate,
        network == "mixture",
    )
    with torch.no_grad(), record_routing(model) as routings:
        right = ask(model, torch.arange(len(answer_of))).argmax(dim=-1) == answer_of
    visits = [routing.n_visits() / routing.n_visits().sum() for routing in routings]
    return {
        "result": round(right.double().mean().item(), 4),
        "visits": [[round(shares.min().item(), 4), round(shares.max().item(), 4)] for shares in visits],
        "parameters": sum(each.numel() for each in model.parameters()),
        "active": n_active_parameters(model),
    }


def language_run(start: str, network: str, rate: float, seed: int, text) -> dict:
    """Learn sentences; the losses on validation and test sentences, and the experts' shares on the latter."""
    task, letters = text
    torch.manual_seed(seed)
    model = built("language", start, network, len(letters))
    trained(model, task.batches(STEPS), next_character_loss, rate, network == "mixture")
    validation = loss_on(model, task.validation)
    with record_routing(model) as routings:
        test = loss_on(model, task.test)
    visits = [routing.n_visits() / routing.n_visits().sum() for routing in routings]
    return {
        "result": test,
        "validation": validation,
        "visits": [[round(shares.min().item(), 4), round(shares.max().item(), 4)] for shares in visits],
        "parameters": sum(each.numel() for each in model.parameters()),
        "active": n_active_parameters(model),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 5000, "validation": 1000, "test": 1000})
    text = characters_of(corpus, "\n".join)
    rows = []
    for task, start, network in SETTINGS:
        run = facts_run if task == "facts" else language_run
        choices = [run(start, network, rate, SEED_OF_CHOICE, text) for rate in RATES[task]]
        tried = [choice["result"] if task == "facts" else -choice["validation"] for choice in choices]
        rate = RATES[task][tried.index(max(tried))]
        runs = [run(start, network, rate, seed, text) for seed in SEEDS[task]]
        rows.append({"task": task, "start": start, "network": network, "tried": tried, "rate": rate, "runs": runs})
        print(rows[-1], flush=True)
    settings = {
        "steps": STEPS, "rates": RATES, "guessing": 1 / N_SYMBOLS, "frequencies": text[0].frequency_loss(len(text[1])),
    }  # fmt: skip
    _record.write(
        "variants_experts", {"settings": settings, "rows": rows}, seeds=[*SEEDS["facts"], SEED_OF_CHOICE],
        started=started, embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
