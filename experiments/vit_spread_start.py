"""Two marks far apart, again: convolutional networks that could see both, with He's start instead of PyTorch's.

The task, the networks and the number of steps of `vit_spread`, 20 pixels apart. Before training, every convolution and
dense layer gets He's weights and no bias; nothing else changes. The peak rate is chosen from three by a further seed,
five seeds are tested. "spread at the start" is how far the logits vary over images before the first step. About three
minutes on one core.
"""

import torch
from torch import nn

from experiments import _record
from experiments.vit_spread import BATCH, N_TEST, NETWORKS, SEARCH_SEED, STEPS, WARMUP, loss, two_marks
from ttutor.training.fit import fit

SEEDS = [0, 1, 2, 3, 4]
PEAKS = [1e-3, 3e-3, 1e-2]
DISTANCE = 20


def fresh(name: str, seed: int, start: str) -> nn.Module:
    """One network before training."""
    torch.manual_seed(seed)
    model = NETWORKS[name]()
    for part in model.modules():
        if start == "He" and isinstance(part, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            nn.init.zeros_(part.bias)
    return model


def accuracy(name: str, peak: float, seed: int, test: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Train one network and give its share of right answers on new images."""
    model = fresh(name, seed, "He")
    generator = torch.Generator().manual_seed(1_000 + seed)

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    batches = (two_marks(BATCH, DISTANCE, generator) for _ in range(STEPS))
    fit(model, batches, loss, steps=STEPS, learning_rate=rate)
    with torch.no_grad():
        return round((model(test[0]).argmax(-1) == test[1]).float().mean().item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    validation, test = (two_marks(N_TEST, DISTANCE, torch.Generator().manual_seed(seed)) for seed in (998, 999))
    runs = []
    for name in ("sees 28", "sees 12, dense"):
        search = [accuracy(name, peak, SEARCH_SEED, validation) for peak in PEAKS]
        peak = PEAKS[search.index(max(search))]
        run = {"network": name, "search": search, "peak": peak}
        run["test"] = [accuracy(name, peak, seed, test) for seed in SEEDS]
        with torch.no_grad():
            for start in ("He", "PyTorch's"):
                logits = [fresh(name, seed, start)(test[0]) for seed in SEEDS]
                run[f"spread at the start, {start}"] = [round(one.std(dim=0).mean().item(), 5) for one in logits]
        runs.append(run)
        print(run, flush=True)
    settings = {"batch": BATCH, "steps": STEPS, "peaks": PEAKS, "distance": DISTANCE}
    _record.write("vit_spread_start", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
