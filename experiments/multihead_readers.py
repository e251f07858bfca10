"""Do four heads do what one cannot? The road's letters model, with each of its two readers, five seeds.

`LastFour`, `BetterReader` and their training stand here as they stand on the page; a test holds that. One attention
layer is to name the last four of 27 symbols, behind it a linear map or a feed-forward network. The models start in two
ways: as the page's do, and as torch does (its rule for linear layers, embeddings of deviation 1). Of each setting the
learning rate, each twice the one before, is chosen on a seed of its own by the loss on unseen sequences; the others are
run at that rate. Kept are the share of right answers and where each head looks. Then the attacks: one head, four times
as long, twice and four times as wide, with a norm before its reader, at rates between; four heads at half the width.
"""

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.inside import capture
from ttutor.masks import causal_mask
from ttutor.multihead import MultiHeadAttention

SEEDS, CHOOSING, FEW = [0, 1, 2, 3, 4], 100, [0, 1, 2]
STEPS, RATES = 1000, [0.005, 0.01, 0.02, 0.04, 0.08, 0.16]
SETTINGS = [
    ("linear", "ours", [1, 2, 4]),
    ("linear", "torch", [1, 4]),
    ("feed-forward", "ours", [1, 2, 4]),
    ("feed-forward", "torch", [1, 4]),
]


class LastFour(nn.Module):
    def __init__(self, n_heads, d_model=32):
        super().__init__()
        self.embedding = nn.Embedding(27, d_model)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.places = nn.Parameter(0.3 * torch.randn(16, d_model))
        self.attention = MultiHeadAttention(d_model, n_heads, bias=False)
        self.to_logits = nn.Linear(d_model, 4 * 27)  # 27 logits for each of 4 letters

    def forward(self, letters):
        hidden = self.embedding(letters) + self.places[: letters.shape[1]]
        found = self.attention(hidden, mask=causal_mask(letters.shape[1]))
        answers = "batch tokens (back letters) -> batch letters tokens back"
        return rearrange(self.to_logits(found), answers, back=4)[:, :, 4:]


class BetterReader(LastFour):
    def __init__(self, n_heads, d_model=32):
        super().__init__(n_heads, d_model)
        self.to_logits = nn.Sequential(
            nn.Linear(d_model, 4 * d_model),
            nn.ReLU(),
            nn.Linear(4 * d_model, 4 * 27),
        )


def last_four(letters):
    """What stands 1, 2, 3 and 4 places before each letter, from the fifth on."""
    return torch.stack([letters.roll(back, 1) for back in (1, 2, 3, 4)], -1)[:, 4:]


def letters_loss(model):
    letters = torch.randint(27, (32, 16))
    return functional.cross_entropy(model(letters), last_four(letters))


def train(model, loss_of, steps, rate=0.01):
    """The loss of every step. The rate rises for 40 steps and then falls to zero."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * min(step / 40, 1) * (1 - step / steps)
        loss = loss_of(model)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


class TwoMaps(BetterReader):
    """The feed-forward reader without its ReLU: as many parameters, and still a linear map."""

    def __init__(self, n_heads, d_model=32):
        super().__init__(n_heads, d_model)
        del self.to_logits[1]


READERS = {"linear": LastFour, "feed-forward": BetterReader, "two maps, no ReLU": TwoMaps}


def made(reader: str, start: str, n_heads: int, d_model: int) -> LastFour:
    """A model before training; with a norm before its reader if the reader's name says so."""
    model = READERS[reader.removeprefix("norm, ")](n_heads, d_model)
    if start == "torch":
        nn.init.normal_(model.embedding.weight)
        nn.init.normal_(model.places)
        for part in ("query", "key", "value", "output"):
            getattr(model.attention, f"to_{part}").reset_parameters()
    if reader.startswith("norm, "):
        model.to_logits = nn.Sequential(nn.LayerNorm(d_model), model.to_logits)
    return model


def looks_of(weights: Tensor) -> list[list[float]]:
    """Of each head the mean weight 0, 1, 2, 3 and 4 places back, where there are four before."""
    mean = weights.mean(dim=0)
    back = [mean.diagonal(-n, 1, 2)[:, 4 - n :].mean(dim=1) for n in range(5)]
    return [[round(weight, 3) for weight in head] for head in torch.stack(back, dim=-1).tolist()]


def run(reader: str, start: str, n_heads: int, rate: float, seed: int, steps: int = STEPS, d_model: int = 32) -> dict:
    """Train one model; the share of right answers and the loss on unseen letters, and where its heads look."""
    torch.manual_seed(seed)
    model = made(reader, start, n_heads, d_model)
    train(model, letters_loss, steps, rate)
    unseen = torch.randint(27, (1000, 16))
    with torch.no_grad(), capture(model, "attention.weights") as seen:
        logits, wanted = model(unseen), last_four(unseen)
    return {
        "right": round((logits.argmax(dim=1) == wanted).double().mean().item(), 3),
        "loss": round(functional.cross_entropy(logits, wanted).item(), 3),
        "looks": looks_of(seen["attention.weights"]),
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def setting(reader: str, start: str, n_heads: int) -> dict:
    """One setting: what each rate gave on the seed that chooses, the rate that was chosen, and the runs."""
    tried = {rate: run(reader, start, n_heads, rate, CHOOSING)["loss"] for rate in RATES}
    chosen = min(tried, key=tried.get)
    runs = [run(reader, start, n_heads, chosen, seed) for seed in SEEDS]
    print(reader, start, n_heads, tried, [one["right"] for one in runs], flush=True)
    losses = {str(rate): loss for rate, loss in tried.items()}
    return {"reader": reader, "start": start, "n_heads": n_heads, "rate": chosen, "tried": losses, "runs": runs}


def attack(name: str, *settings: tuple, seeds: list[int] = FEW, **options: int) -> dict:
    """What a rival explanation asks for: the shares of right answers, one for each setting and seed."""
    right = [run(*one, seed, **options)["right"] for one in settings for seed in seeds]
    print(name, right, flush=True)
    return {"attack": name, "right": right}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = [setting(reader, start, n_heads) for reader, start, heads in SETTINGS for n_heads in heads]
    rate = {(row["reader"], row["n_heads"]): row["rate"] for row in rows if row["start"] == "ours"}
    one, other, four = (("linear", 1), ("feed-forward", 1), ("linear", 4))
    between = [rate[one] * factor for factor in (0.35, 0.7, 1.4)]
    near = [rate[other] * factor for factor in (0.5, 1, 2)]
    attacks = [
        attack("one head, linear reader, 4,000 steps", (one[0], "ours", 1, rate[one]), seeds=[0], steps=4000),
        attack("one head, linear reader, width 64", (one[0], "ours", 1, rate[one] / 2), d_model=64),
        attack("one head, linear reader, width 128", (one[0], "ours", 1, rate[one] / 4), seeds=[0], d_model=128),
        attack("one head, linear reader, rates between", *((one[0], "ours", 1, r) for r in between), seeds=[0]),
        attack("one head, a norm and a linear reader", ("norm, linear", "ours", 1, rate[one]), seeds=FEW),
        attack("one head, two maps without the ReLU", *(("two maps, no ReLU", "ours", 1, r) for r in near)),
        attack("one head, feed-forward reader, 4,000 steps", (other[0], "ours", 1, rate[other]), seeds=[0], steps=4000),
        attack("one head, feed-forward reader, width 16", (other[0], "ours", 1, rate[other]), d_model=16),
        attack("four heads, linear reader, width 16", (four[0], "ours", 4, rate[four]), d_model=16),
    ]
    _record.write("multihead_readers", {"steps": STEPS, "rows": rows, "attacks": attacks}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
