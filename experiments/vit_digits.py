"""A ViT, a convolutional network of equal size and a linear classifier on real digits, from few labels to many.

scikit-learn's digits: 1,797 images of 8 x 8 pixels, 17 grey levels. By one fixed permutation 1,000 are for training,
297 for choosing learning rates, 500 for the test; the same writers stand on all sides. The ViT (pre-norm) cuts patches
of 2 x 2; the convolutional network has three layers of 3 x 3 filters, two poolings and a mean over all places. All get
the same images, 300 steps of 32, the same schedule, no augmentation and no regularisation. The peak rate is chosen for
each network and each number of images by the mean of three further seeds on the validation images. For the largest
number all is done once more with the patches of every image in another order, one order for all images. About four
minutes on one core.
"""

from collections.abc import Callable, Iterator

import torch
from einops import rearrange
from sklearn.datasets import load_digits
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.patches import patchify, unpatchify
from ttutor.variants.vit import ViT, ViTConfig

SEEDS, SEARCH_SEEDS = [0, 1, 2], [10, 11, 12]
SIZES = [50, 200, 1_000]
PEAKS = [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
LINEAR_PEAKS = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0]
BATCH, STEPS, WARMUP = 32, 300, 30
N_TRAIN, N_VALIDATION = 1_000, 297


def small_vit(n_classes: int = 10) -> nn.Module:
    """Two layers of width 32."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
    return ViT(ViTConfig(image_size=8, patch_size=2, n_channels=1, n_classes=n_classes, **sizes))


def small_cnn(n_classes: int = 10) -> nn.Module:
    """Three convolutions and a mean."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 45, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(45, n_classes),
    )  # fmt: skip


def linear(n_classes: int = 10) -> nn.Module:
    """A softmax on the pixels."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes))


NETWORKS: dict[str, Callable[..., nn.Module]] = {"vit": small_vit, "cnn": small_cnn, "linear": linear}


def digits() -> tuple[Tensor, Tensor]:
    """All images, from 0 to 1, and their classes, in a fixed random order."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32) / 16
    return rearrange(images, "images height width -> images 1 height width")[order], torch.tensor(data.target)[order]


def scrambled(images: Tensor) -> Tensor:
    """The same images with their sixteen patches in another order, the same order for all."""
    order = torch.randperm(16, generator=torch.Generator().manual_seed(7))
    return unpatchify(patchify(images, 2)[:, order], 2)


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
        return round((model(images).argmax(-1) == classes).float().mean().item(), 4)


def train(model: nn.Module, peak: float, seed: int, images: Tensor, classes: Tensor, steps: int = STEPS) -> nn.Module:
    """One network."""

    def rate(step: int) -> float:
        return peak * min(1.0, step / WARMUP) * (1 - step / (steps + 1))

    fit(model, batches(images, classes, seed), loss, steps=steps, learning_rate=rate)
    return model


def fresh(name: str, seed: int) -> nn.Module:
    """One network with weights of its own."""
    torch.manual_seed(seed)
    return NETWORKS[name]()


def one_row(name: str, n_images: int, images: Tensor, classes: Tensor, order: str) -> dict:
    """Choose the rate, train all seeds, test."""
    few, labels = images[:n_images], classes[:n_images]
    validation = images[N_TRAIN:][:N_VALIDATION], classes[N_TRAIN:][:N_VALIDATION]
    test = images[N_TRAIN + N_VALIDATION :], classes[N_TRAIN + N_VALIDATION :]
    peaks = LINEAR_PEAKS if name == "linear" else PEAKS
    search = []
    for peak in peaks:
        models = [train(fresh(name, seed), peak, seed, few, labels) for seed in SEARCH_SEEDS]
        search.append(round(sum(accuracy(model, *validation) for model in models) / len(models), 4))
    peak = peaks[search.index(max(search))]
    models = [train(fresh(name, seed), peak, seed, few, labels) for seed in SEEDS]
    return {
        "network": name, "n_images": n_images, "order": order, "search": search, "peak": peak,
        "train": [accuracy(model, few, labels) for model in models],
        "test": [accuracy(model, *test) for model in models],
    }  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    images, classes = digits()
    runs = []
    for name in NETWORKS:
        for n_images in SIZES:
            runs.append(one_row(name, n_images, images, classes, "as they are"))
            print(runs[-1], flush=True)
        for n_images in SIZES[-1:]:
            runs.append(one_row(name, n_images, scrambled(images), classes, "scrambled"))
            print(runs[-1], flush=True)
    n_parameters = {name: sum(p.numel() for p in make().parameters()) for name, make in NETWORKS.items()}
    settings = {"batch": BATCH, "steps": STEPS, "warmup": WARMUP, "peaks": PEAKS, "linear_peaks": LINEAR_PEAKS}
    results = {"settings": settings, "n_parameters": n_parameters, "runs": runs}
    _record.write("vit_digits", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
