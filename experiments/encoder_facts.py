"""A task for which a feed-forward network is needed: what two names mean together.

1,024 people have one of 32 first names and one of 32 surnames. Each name has a fixed random vector, and a person's
vector is the sum of two names, as attention leaves it: no training may change it. Each person has one of eight jobs,
drawn by chance, so that neither name says it alone. A list of six people is read, and the job of each is asked for at
the person. The stacks have width 32, norms before the sublayers, skips and a last norm:

- a whole layer; without attention; without the feed-forward network;
- the control for size: three layers of attention have as many weights as one whole layer, with 2 heads and with 16;
- the control for the cause: the whole layer without the ReLU, that is, with the same weights and no bend.

Five seeds (names, jobs, first weights), three learning rates, 1,000 steps of Adam with 16 lists each; the rate falls
in a straight line to zero. The best rate is that with the highest mean share of right jobs. All seeds and rates of an
arm are trained side by side. Attacks at the best rate, three further seeds: four times the steps; no lists, each
person alone; PyTorch's first weights; people with unrelated vectors in place of sums; vectors that training may
change; nine layers of attention; and the two names as two words of a sentence, whose vectors are learned.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional

from experiments import _record
from ttutor.layers import FeedForward, LayerNorm
from ttutor.multihead import MultiHeadAttention

SEEDS, FURTHER, RATES = [0, 1, 2, 3, 4], [10, 11, 12], [3e-3, 1e-2, 3e-2]
NAMES, JOBS, LIST, STEPS, BATCH, D_MODEL = 32, 8, 6, 1000, 16, 32
ARMS: dict[str, dict[str, Any]] = {
    "whole layer": {"parts": ["attention", "network"]},
    "without attention": {"parts": ["network"]},
    "without network": {"parts": ["attention"]},
    "three layers of attention": {"parts": ["attention"], "n_layers": 3},
    "three of attention, 16 heads": {"parts": ["attention"], "n_layers": 3, "n_heads": 16},
    "whole, without ReLU": {"parts": ["attention", "linear"]},
}
ATTACKS: dict[str, dict[str, Any]] = {
    "further seeds": {},
    "four times the steps": {"steps": 4 * STEPS},
    "each person alone": {"length": 1},
    "PyTorch's first weights": {"torchs": True},
    "unrelated vectors": {"vectors": "unrelated"},
    "vectors that are trained": {"vectors": "trained"},
    "two words of a sentence": {"vectors": "words"},
    "three times as many layers": {"times": 3},
}


class Layer(nn.Module):
    """The parts of a pre-norm layer, each with skip and norm."""

    def __init__(self, parts: list[str], n_heads: int) -> None:
        super().__init__()
        make = {
            "attention": lambda: MultiHeadAttention(D_MODEL, n_heads),
            "network": lambda: FeedForward(D_MODEL, 4 * D_MODEL),
            "linear": lambda: nn.Sequential(nn.Linear(D_MODEL, 4 * D_MODEL), nn.Linear(4 * D_MODEL, D_MODEL)),
        }
        self.parts = nn.ModuleList(make[part]() for part in parts)
        self.norms = nn.ModuleList(LayerNorm(D_MODEL) for _ in parts)

    def forward(self, stream: Tensor) -> Tensor:
        for part, norm in zip(self.parts, self.norms, strict=True):
            stream = stream + part(norm(stream))
        return stream


class Knower(nn.Module):
    """Read a list of people, and score the jobs at each; or read one person's two names, and score at the second."""

    def __init__(self, parts: list[str], n_layers: int = 1, n_heads: int = 2, vectors: str = "sums") -> None:
        super().__init__()
        first, last = torch.randn(2, NAMES, D_MODEL)
        people = ((first[:, None] + last) / 2**0.5).flatten(0, 1)
        if vectors == "unrelated":
            people = torch.randn_like(people)
        self.people = nn.Parameter(people)
        self.names, self.words = nn.Parameter(torch.stack([first, last])), vectors == "words"
        self.layers = nn.Sequential(*(Layer(parts, n_heads) for _ in range(n_layers)))
        self.last_norm, self.to_logits = LayerNorm(D_MODEL), nn.Linear(D_MODEL, JOBS)

    def forward(self, persons: Tensor) -> Tensor:
        if self.words:
            stream = torch.stack([self.names[0, persons // NAMES], self.names[1, persons % NAMES]], dim=-2)
            return self.to_logits(self.last_norm(self.layers(stream))[..., -1, :])
        return self.to_logits(self.last_norm(self.layers(self.people[persons])))


def share(arm: dict[str, Any], rates: list[float], seeds: list[int], **more: Any) -> Tensor:
    """Train an arm side by side at some rates and from some seeds; the shares of right jobs, ``rates seeds``."""
    steps, vectors = more.get("steps", STEPS), more.get("vectors", "sums")
    length = 1 if vectors == "words" else more.get("length", LIST)
    arm = arm | {"n_layers": arm.get("n_layers", 1) * more.get("times", 1), "vectors": vectors}
    models, jobs = [], []
    for _ in rates:
        for seed in seeds:
            torch.manual_seed(seed)
            models.append(Knower(**arm))
            jobs.append(torch.randint(JOBS, (NAMES**2,)))
            for part in models[-1].layers.modules():
                if more.get("torchs") and isinstance(part, nn.Linear):
                    part.reset_parameters()
    weights, buffers = stack_module_state(models)
    fixed = {} if vectors == "trained" else {"people": weights.pop("people").detach()}
    size = torch.tensor(rates).repeat_interleave(len(seeds))
    first, second = ({name: torch.zeros_like(weight) for name, weight in weights.items()} for _ in range(2))
    answers = torch.stack(jobs)

    def loss_of(one: dict[str, Tensor], given: dict[str, Tensor], persons: Tensor, wanted: Tensor) -> Tensor:
        logits = functional_call(models[0], (one | given, {}), (persons,))
        return functional.cross_entropy(logits.flatten(0, -2), wanted[persons].flatten())

    step_of_all = vmap(grad_and_value(loss_of), in_dims=(0, 0, None, 0))
    generator = torch.Generator().manual_seed(99)
    for step in range(1, steps + 1):
        persons = torch.randint(NAMES**2, (BATCH * LIST // length, length), generator=generator)
        persons = persons[:, 0] if vectors == "words" else persons
        gradients, _ = step_of_all(weights, fixed, persons, answers)
        with torch.no_grad():  # Adam, with a rate for each slice
            for name, weight in weights.items():
                first[name].lerp_(gradients[name], 0.1)
                second[name].lerp_(gradients[name].square(), 0.001)
                by = (size * (1 - step / steps)).view(-1, *[1] * (weight.ndim - 1))
                scale = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
                weight.sub_(by * first[name] / (1 - 0.9**step) / scale)
    asked = torch.cat([torch.randperm(NAMES**2, generator=generator)[: NAMES**2 // length * length] for _ in range(4)])
    asked = asked if vectors == "words" else asked.view(-1, length)
    with torch.no_grad():
        say = vmap(lambda one, given: functional_call(models[0], (one | given, {}), (asked,)).argmax(dim=-1))
        right = say(weights, fixed) == answers[:, asked]
    return right.flatten(1).double().mean(dim=1).unflatten(0, (len(rates), len(seeds)))


def rounded(shares: Tensor) -> list[float]:
    """Three digits are more than five seeds agree in."""
    return [round(value, 3) for value in shares.tolist()]


def main() -> None:
    """Train all arms, then attack what was found."""
    torch.set_num_threads(1)
    started = _record.start()
    rows: dict[str, Any] = {}
    attacks: dict[str, dict[str, list[float]]] = {name: {} for name in ATTACKS}
    for name, arm in ARMS.items():
        found = share(arm, RATES, SEEDS)
        best = int(found.mean(dim=1).argmax())
        n_weights = sum(parameter.numel() for parameter in Knower(**arm).layers.parameters())
        by_rate = {str(rate): rounded(shares) for rate, shares in zip(RATES, found, strict=True)}
        rows[name] = {"n_weights": n_weights, "best": RATES[best], "right": rounded(found[best]), "rates": by_rate}
        print(name, rows[name], flush=True)
        if name in ("whole layer", "three layers of attention", "three of attention, 16 heads"):
            for attack, more in ATTACKS.items():
                attacks[attack][name] = rounded(share(arm, [RATES[best]], FURTHER, **more)[0])
                print(name, attack, attacks[attack][name], flush=True)
    settings = {"names": NAMES, "jobs": JOBS, "list": LIST, "steps": STEPS, "d_model": D_MODEL}
    results = {"settings": settings, "guessing": 1 / JOBS, "rows": rows, "attacks": attacks}
    _record.write("encoder_facts", results, seeds=[*SEEDS, *FURTHER], started=started)


if __name__ == "__main__":
    main()
