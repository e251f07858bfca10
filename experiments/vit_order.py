"""What a small ViT does with handwritten digits when nothing says where a patch was, and when digits are moved.

`PlainViT`, `small_cnn`, `train` and more stand here as they stand on the page; a test holds that. Five seeds each:
the ViT, the ViT whose positions are zero and stay zero, the convolutional network, and the linear classifier; 300 steps
on 1,000 digits, in float64. Stored are the shares of right answers on 500 other digits, as they are and moved by one
and two pixels to either side; of the convolutional network also moved there and back. Then the attacks: four times the
steps, and images cut into four large patches in place of sixteen small ones, each with and without positions.
"""

import torch
from einops import rearrange, repeat
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.encoder import EncoderLayer
from ttutor.layers import LayerNorm
from ttutor.variants.patches import patchify

SEEDS, FEW, TWO = [0, 1, 2, 3, 4], [0, 1], [0]


class PlainViT(nn.Module):
    def __init__(self, n_classes=10, d_model=32, n_layers=2):
        super().__init__()
        self.embed = nn.Linear(2 * 2, d_model)  # E
        # learned vectors, drawn at random at the start
        self.class_token = nn.Parameter(torch.randn(d_model) / 2)
        self.positions = nn.Parameter(torch.randn(1 + 16, d_model) / 2)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads=4, d_ff=64, norm="pre", activation="gelu") for _ in range(n_layers)
        )
        self.norm = LayerNorm(d_model)
        self.classify = nn.Linear(d_model, n_classes)  # W and b

    def forward(self, images):
        tokens = self.embed(patchify(images, 2))
        first = repeat(self.class_token, "d -> images 1 d", images=len(images))
        stream = torch.cat([first, tokens], dim=1) + self.positions
        for layer in self.layers:
            stream = layer(stream)
        return self.classify(self.norm(stream)[:, 0])  # the class token's row


class LargePatches(PlainViT):
    """The same with four patches of 4 x 4."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4 * 4, 32)
        self.positions = nn.Parameter(torch.randn(1 + 4, 32) / 2)

    def forward(self, images):
        tokens = self.embed(patchify(images, 4))
        first = repeat(self.class_token, "d -> images 1 d", images=len(images))
        stream = torch.cat([first, tokens], dim=1) + self.positions
        for layer in self.layers:
            stream = layer(stream)
        return self.classify(self.norm(stream)[:, 0])


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),  # 1 channel in, 16 out; zeros around: size kept
        nn.ReLU(),
        nn.MaxPool2d(2),  # 8 x 8 places become 4 x 4
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),  # 2 x 2
        nn.Conv2d(32, 45, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),  # the mean over all places
        nn.Flatten(),
        nn.Linear(45, 10),
    )


def linear():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def without_positions(model):
    nn.init.zeros_(model.positions).requires_grad_(False)
    return model


def train(model, images, classes, peak, seed=0, steps=300):
    numbers = [one for one in model.parameters() if one.requires_grad]
    optimiser = torch.optim.Adam(numbers)
    generator = torch.Generator().manual_seed(seed)
    for step in range(1, steps + 1):
        # the learning rate: up for a tenth of the steps, then down to zero
        rate = peak * min(1, 10 * step / steps) * (1 - step / (steps + 1))
        optimiser.param_groups[0]["lr"] = rate
        batch = torch.randint(len(images), (32,), generator=generator)
        loss = functional.cross_entropy(model(images[batch]), classes[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def aside(images, pixels):
    wide = functional.pad(images, (2, 2, 0, 0))  # empty paper on both sides
    return wide[..., 2 - pixels : 10 - pixels]


NETWORKS = {
    "ViT": (PlainViT, 3e-3),
    "ViT without positions": (lambda: without_positions(PlainViT()), 3e-3),
    "CNN": (small_cnn, 3e-2),
    "linear": (linear, 0.3),
    "4 patches": (LargePatches, 3e-3),
    "4 patches without positions": (lambda: without_positions(LargePatches()), 3e-3),
}


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, classes: Tensor) -> float:
    return round((model(images).argmax(dim=-1) == classes).double().mean().item(), 3)


def digits() -> tuple[Tensor, Tensor]:
    """The page's images and classes, in its order."""
    data = load_digits()
    row = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float64)[row] / 16
    return rearrange(images, "images height width -> images 1 height width"), torch.tensor(data.target)[row]


def run(name: str, seeds: list[int], steps: int = 300, factor: float = 1.0) -> dict[str, list[float]]:
    """Of each seed what is right on the training images, on the test images, and on these moved aside."""
    images, classes = digits()
    known, new, answers = (images[:1000], classes[:1000]), images[1297:], classes[1297:]
    found: dict[str, list[float]] = {}
    make, peak = NETWORKS[name]
    for seed in seeds:
        torch.manual_seed(seed)
        model = train(make(), *known, factor * peak, seed, steps)
        found.setdefault("training", []).append(accuracy(model, *known))
        found.setdefault("test", []).append(accuracy(model, new, answers))
        for pixels in (1, 2):
            there = [aside(new, step) for step in (pixels, -pixels)]
            back = [aside(there[0], -pixels), aside(there[1], pixels)]
            for way, moved in (("aside", there), ("and back", back)):
                share = accuracy(model, torch.cat(moved), answers.repeat(2))
                found.setdefault(f"{pixels} {way}", []).append(share)
    print(name, steps, factor, found["test"], flush=True)
    return found


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    runs = {name: run(name, SEEDS) for name in ("ViT", "ViT without positions", "CNN", "linear")}
    attacks = {
        f"{name}, 1,200 steps": run(name, seeds, 1200)
        for name, seeds in (("ViT", TWO), ("ViT without positions", TWO), ("CNN", TWO))
    }
    attacks |= {name: run(name, FEW) for name in ("4 patches", "4 patches without positions")}
    attacks |= {
        f"ViT without positions, rate times {factor:g}": run("ViT without positions", [0], factor=factor)
        for factor in (0.3, 3)
    }
    _record.write("vit_order", {"runs": runs, "attacks": attacks}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
