"""ViT against a convolutional network of equal size, on few and on many drawn shapes: three seeds, one search for both.

16 x 16 pixels, four classes. The ViT (pre-norm) cuts patches of 4 x 4; the convolutional network has three layers of
3 x 3 filters, two poolings and a mean over all places. Both get the same images, the same number of steps (so that few
images are seen more often), the same batches, the same shape of schedule, no augmentation and no regularisation. For
each network and each number of images the best of three peak rates is chosen by the accuracy of one further seed on
1,000 validation images; then three seeds are trained with it and tested on 2,000 others. About five minutes on one
free core.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.drawings import SHAPES, drawn_shapes
from ttutor.variants.vit import ViT, ViTConfig

SEEDS, SEARCH_SEED = [0, 1, 2], 10
SIZES = [100, 400, 1_600, 6_400, 25_600]
PEAKS = [1e-3, 3e-3, 1e-2]
BATCH, STEPS, WARMUP, IMAGE = 32, 1_000, 50, 16


def small_vit() -> nn.Module:
    """Two layers of width 32."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
    return ViT(ViTConfig(image_size=IMAGE, patch_size=4, n_channels=1, n_classes=len(SHAPES), **sizes))


def small_cnn() -> nn.Module:
    """Three convolutions and a mean."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(48, len(SHAPES)),
    )  # fmt: skip


NETWORKS = {"vit": small_vit, "cnn": small_cnn}


def batches(images: Tensor, classes: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches in random order, without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(images), generator=generator).split(BATCH):
            yield images[rows], classes[rows]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy, in nats."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def accuracy(model: nn.Module, images: Tensor, classes: Tensor) -> float:
    """The share of right answers."""
    with torch.no_grad():
        found = torch.cat([model(part).argmax(-1) for part in images.split(500)])
    return round((found == classes).float().mean().item(), 4)


def train(name: str, peak: float, seed: int, images: Tensor, classes: Tensor) -> nn.Module:
    """One network."""
    torch.manual_seed(seed)
    model = NETWORKS[name]()

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    fit(model, batches(images, classes, seed), loss, steps=STEPS, learning_rate=rate)
    return model


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    validation = drawn_shapes(1_000, image_size=IMAGE, seed=998)
    test = drawn_shapes(2_000, image_size=IMAGE, seed=999)
    all_images, all_classes = drawn_shapes(max(SIZES), image_size=IMAGE, seed=100)
    runs = []
    for n_images in SIZES:
        images, classes = all_images[:n_images], all_classes[:n_images]
        for name in NETWORKS:
            search = [accuracy(train(name, peak, SEARCH_SEED, images, classes), *validation) for peak in PEAKS]
            peak = PEAKS[search.index(max(search))]
            models = [train(name, peak, seed, images, classes) for seed in SEEDS]
            run = {"n_images": n_images, "network": name, "search": search, "peak": peak}
            run["train"] = [accuracy(model, images[:2_000], classes[:2_000]) for model in models]
            run["test"] = [accuracy(model, *test) for model in models]
            runs.append(run)
            print(run, flush=True)
    n_parameters = {name: sum(p.numel() for p in make().parameters()) for name, make in NETWORKS.items()}
    settings = {"batch": BATCH, "steps": STEPS, "warmup": WARMUP, "peaks": PEAKS, "search_seed": SEARCH_SEED}
    results = {"settings": settings, "n_parameters": n_parameters, "runs": runs}
    _record.write("vit_data_size", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
