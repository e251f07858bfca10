"""Evidence at two places: do two marks have the same colour? By the distance between them, for four small networks.

24 x 24 pixels of noise with two squares of 3 x 3, each white (+1) or black (-1), beside or above one another with their
centres a given number of pixels apart, anywhere. All networks begin with patches of 4 x 4 and have about as many
parameters: a ViT; convolutional networks whose last features see 12 or 28 pixels and then a mean over all places
and a linear map; and the one that sees 12 with a dense layer over all places instead of the mean, as VGG16 has. A
network that sums local votes cannot get more than three of four right where no vote sees both marks. For each network
and distance the peak rate is chosen by a further seed; fresh images at every step. About two minutes on one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.vit import ViT, ViTConfig

SEEDS, SEARCH_SEED = [0, 1, 2], 10
DISTANCES = [4, 20]
PEAKS = [3e-3, 1e-2]
IMAGE, PATCH, NOISE = 24, 4, 0.1
BATCH, STEPS, WARMUP = 32, 250, 25
N_TEST = 1_000


def two_marks(n_images: int, distance: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images, and 1 where the marks have the same colour."""
    images = NOISE * torch.randn(n_images, 1, IMAGE, IMAGE, generator=generator)
    colours = 2 * torch.randint(2, (n_images, 2), generator=generator) - 1
    along = torch.randint(IMAGE - 2 - distance, (n_images,), generator=generator)
    across = torch.randint(IMAGE - 2, (n_images,), generator=generator)
    upright = torch.randint(2, (n_images,), generator=generator).tolist()
    for i, (a, b, turn) in enumerate(zip(along.tolist(), across.tolist(), upright, strict=True)):
        for k, start in enumerate((a, a + distance)):
            row, column = (start, b) if turn else (b, start)
            images[i, 0, row : row + 3, column : column + 3] += colours[i, k]
    return images, (colours[:, 0] == colours[:, 1]).long()


def vit() -> nn.Module:
    """Two layers of width 32."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
    return ViT(ViTConfig(image_size=IMAGE, patch_size=PATCH, n_channels=1, n_classes=2, **sizes))


def local(n_layers: int, width: int, dense: int = 0) -> nn.Module:
    """Patches, then 3 x 3 convolutions on their grid, each of which sees eight pixels more."""
    layers: list[nn.Module] = [nn.Conv2d(1, width, PATCH, stride=PATCH), nn.ReLU()]
    for _ in range(n_layers):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    if dense:
        grid = (IMAGE // PATCH) ** 2
        layers += [nn.Flatten(), nn.Linear(width * grid, dense), nn.ReLU(), nn.Linear(dense, 2)]
    else:
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 2)]
    return nn.Sequential(*layers)


NETWORKS = {
    "vit": vit,
    "sees 12": lambda: local(1, 45),
    "sees 28": lambda: local(3, 26),
    "sees 12, dense": lambda: local(1, 20, dense=20),
}


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy, in nats."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def accuracy(name: str, distance: int, peak: float, seed: int, test: tuple[Tensor, Tensor]) -> float:
    """Train one network and give its share of right answers on new images."""
    torch.manual_seed(seed)
    model = NETWORKS[name]()
    generator = torch.Generator().manual_seed(1_000 + seed)

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    batches = (two_marks(BATCH, distance, generator) for _ in range(STEPS))
    fit(model, batches, loss, steps=STEPS, learning_rate=rate)
    with torch.no_grad():
        return round((model(test[0]).argmax(-1) == test[1]).float().mean().item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = []
    for distance in DISTANCES:
        validation, test = (two_marks(N_TEST, distance, torch.Generator().manual_seed(seed)) for seed in (998, 999))
        for name in NETWORKS:
            search = [accuracy(name, distance, peak, SEARCH_SEED, validation) for peak in PEAKS]
            peak = PEAKS[search.index(max(search))]
            run = {"network": name, "distance": distance, "search": search, "peak": peak}
            run["test"] = [accuracy(name, distance, peak, seed, test) for seed in SEEDS]
            runs.append(run)
            print(run, flush=True)
    n_parameters = {name: sum(p.numel() for p in make().parameters()) for name, make in NETWORKS.items()}
    settings = {
        "image_size": IMAGE, "patch_size": PATCH, "noise": NOISE, "batch": BATCH, "steps": STEPS, "peaks": PEAKS,
        "distances": DISTANCES,
    }  # fmt: skip
    _record.write(
        "vit_spread", {"settings": settings, "n_parameters": n_parameters, "runs": runs}, seeds=SEEDS, started=started
    )


if __name__ == "__main__":
    main()
