"""Skips and depth: networks of 4, 12 and 40 layers with and without skips, and slices through their losses.

The task is to tell two interleaved spirals apart: 256 points, the whole set at every step, cross-entropy in nats
(guessing gives ln 2). A layer is ``W relu(norm(x)) + b``, of width 32. *Plain* hands its result on, *residual* adds it
to its input; both have the norm in every layer and before the head, and torch's initialisation. *Orthogonal* is plain
too, with tanh for ReLU, without norms, and with orthogonal matrices at the start. All are trained with Adam for the
same number of steps at two constant learning rates, three seeds each, gradients clipped to norm 1.

For the slices, plain and residual networks of 20 layers are trained, each at the rate that was best for it over the
seeds. Around the trained weights the loss is computed on a square grid, along two random directions, each row of each
matrix of a direction scaled to the length of that row of the weights, as Li et al. (2018) do for filters; biases and
the norms' parameters stay. *Roughness* is the mean absolute second difference of neighbours on the grid, divided by the
range of the loss on that grid. *Concave* is the share of second differences that are negative: a convex function has
none.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.layers import LayerNorm
from ttutor.training.fit import fit

SEEDS = [0, 1, 2]
RATES = [1e-3, 3e-3]
DEPTHS = [4, 12, 40]
KINDS = ["plain", "residual", "orthogonal"]
WIDTH, N_POINTS, STEPS = 32, 256, 400
SLICE_DEPTH, N_SIDE, REACH = 20, 25, 1.0
CLEAR = 1e-4  # of the grid's range: a second difference smaller than this is taken for rounding


class Layer(nn.Module):
    """One layer, with or without a skip."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.norm = nn.Identity() if kind == "orthogonal" else LayerNorm(WIDTH)
        self.linear = nn.Linear(WIDTH, WIDTH)
        if kind == "orthogonal":
            nn.init.orthogonal_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        if self.kind == "orthogonal":
            return self.linear(hidden).tanh()
        written = self.linear(self.norm(hidden).relu())
        return hidden + written if self.kind == "residual" else written


def network(kind: str, depth: int) -> nn.Sequential:
    """From a point of the plane to two logits."""
    last = nn.Identity() if kind == "orthogonal" else LayerNorm(WIDTH)
    return nn.Sequential(nn.Linear(2, WIDTH), *(Layer(kind) for _ in range(depth)), last, nn.Linear(WIDTH, 2))


def spirals() -> tuple[Tensor, Tensor]:
    """Two arms of one and a quarter turns, the same for all runs."""
    radius = torch.linspace(0.2, 1, N_POINTS // 2)
    angle = 2.5 * math.pi * radius
    arm = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
    return 2 * torch.cat([arm, -arm]), torch.arange(2).repeat_interleave(N_POINTS // 2)


def loss_on(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(data[0]), data[1])


def train(kind: str, depth: int, rate: float, seed: int) -> tuple[nn.Module, float]:
    """A trained network and its final loss (mean of the last 20 steps)."""
    torch.manual_seed(seed)
    model = network(kind, depth)
    losses = fit(model, [spirals()], loss_on, steps=STEPS, learning_rate=rate)
    return model, sum(losses[-20:]) / 20


def direction(model: nn.Module, random: torch.Generator) -> list[Tensor]:
    """A random direction, row by row as long as the weights; nothing for biases and norms."""
    parts = []
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=random)
        scale = parameter.detach().norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)
        parts.append(noise * scale if parameter.ndim == 2 else torch.zeros_like(noise))
    return parts


@torch.no_grad()
def slice_of(model: nn.Module, seed: int) -> Tensor:
    """The loss on a grid around the weights."""
    random = torch.Generator().manual_seed(100 + seed)
    one, other = direction(model, random), direction(model, random)
    moved = copy.deepcopy(model)
    steps = torch.linspace(-REACH, REACH, N_SIDE)
    grid = torch.empty(N_SIDE, N_SIDE)
    for row, y in enumerate(steps):
        for column, x in enumerate(steps):
            for target, start, a, b in zip(moved.parameters(), model.parameters(), one, other, strict=True):
                target.copy_(start + x * a + y * b)
            grid[row, column] = loss_on(moved, spirals())
    return grid


def shape_of(grid: Tensor) -> dict:
    """How rough a slice is, and how much of it bends the wrong way for a convex function."""
    span = (grid.max() - grid.min()).item()
    bends = torch.cat([grid.diff(n=2, dim=0).flatten(), grid.diff(n=2, dim=1).flatten()]) / span
    return {
        "roughness": round(bends.abs().mean().item(), 4),
        "concave": round((bends < -CLEAR).double().mean().item(), 3),
        "highest": round(grid.max().item(), 2),
        "centre": round(grid[N_SIDE // 2, N_SIDE // 2].item(), 4),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    rows = []
    for depth in DEPTHS:
        for kind in KINDS:
            for rate in RATES:
                final = [round(train(kind, depth, rate, seed)[1], 4) for seed in SEEDS]
                rows.append({"depth": depth, "kind": kind, "rate": rate, "final": final})
                print(rows[-1], flush=True)
    slices = []
    for kind in ("plain", "residual"):
        by_rate = {rate: [train(kind, SLICE_DEPTH, rate, seed) for seed in SEEDS] for rate in RATES}
        best = min(RATES, key=lambda rate: sum(final for _, final in by_rate[rate]))
        runs = []
        for seed, (model, final) in zip(SEEDS, by_rate[best], strict=True):
            grid = slice_of(model, seed)
            runs.append({"final": round(final, 4), **shape_of(grid)})
            print(kind, best, runs[-1], flush=True)
            if seed == 0:
                shown = [[round(value, 2) for value in line] for line in grid.tolist()]
        slices.append({"kind": kind, "rate": best, "runs": runs, "grid": shown})
    settings = {"steps": STEPS, "width": WIDTH, "slice_depth": SLICE_DEPTH, "reach": REACH}
    results = {"settings": settings, "guessing": round(math.log(2), 3), "rows": rows, "slices": slices}
    _record.write("encoder_depth", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
