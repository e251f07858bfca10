"""A tiny ViT learns to tell drawn shapes; what it attends to on a few drawings it has not seen. Three seeds.

24 x 24 pixels in patches of 4 x 4: a class token and 36 patches. The three models see the same drawings, from other
weights and in another order. The figure is the share of right answers on 2,000 held-out drawings. Of the first seed's
model, the first held-out drawing of each class is recorded with its answer and its attention, averaged over heads, and
the first that it gets wrong: pixels in hexadecimal, weights in thousandths, cosine similarities of the position
embeddings in hundredths; and what the model answers when one patch after the other is hidden, all its pixels the
drawing's mean: the classes' probabilities in thousandths. About three minutes on one core.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.drawings import SHAPES, drawn_shapes
from ttutor.variants.vit import ViT, ViTConfig
from ttutor.widgets.patches import hexadecimal, hundredths, read_vit, thousandths

SEEDS = [0, 1, 2]
CONFIG = ViTConfig(
    image_size=24, patch_size=4, n_channels=1, n_classes=len(SHAPES), d_model=32, n_heads=4, n_layers=2, d_ff=64
)
N_TRAIN, TRAIN_SEED = 30_000, 100
N_HELD_OUT, HELD_OUT_SEED = 2_000, 999
BATCH, STEPS, PEAK, WARMUP = 64, 1_500, 5e-3, 50


def batches(images: Tensor, classes: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches in random order, without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(images), generator=generator).split(BATCH):
            yield images[rows], classes[rows]


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy, in nats."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def rate(step: int) -> float:
    """Up in a line, and down to zero in a line."""
    return PEAK * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))


def train(images: Tensor, classes: Tensor, seed: int) -> ViT:
    """One model."""
    torch.manual_seed(seed)
    model = ViT(CONFIG)
    fit(model, batches(images, classes, seed), loss, steps=STEPS, learning_rate=rate)
    return model


def answers(model: ViT, images: Tensor) -> Tensor:
    """The class that the model finds most likely for each image."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(-1) for part in images.split(500)])


def lines(table: list[list[int]]) -> list[str]:
    """A table of integers as one line of text a row: small in JSON."""
    return [" ".join(map(str, row)) for row in table]


def recorded(model: ViT, image: Tensor, class_id: int) -> dict:
    """One drawing, and what the model made of it."""
    read = read_vit(model, image, list(SHAPES))
    return {
        "class": SHAPES[class_id],
        "pixels": hexadecimal(image.double().numpy()),
        "probabilities": [round(read.probabilities[name], 3) for name in SHAPES],
        "attention": [lines(layer) for layer in thousandths(read.attention, CONFIG.n_patches + 1)],
        "hidden": lines((1000 * read.hidden).round().int().tolist()),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    drawings = drawn_shapes(N_TRAIN, seed=TRAIN_SEED)
    models = [train(*drawings, seed) for seed in SEEDS]
    images, classes = drawn_shapes(N_HELD_OUT, seed=HELD_OUT_SEED)
    accuracies = [round((answers(model, images) == classes).float().mean().item(), 4) for model in models]
    found = answers(models[0], images)
    chosen = [int((classes == i).nonzero()[0]) for i in range(len(SHAPES))] + [int((found != classes).nonzero()[0])]
    similarity = read_vit(models[0], images[0]).positions
    results = {
        "settings": {
            "image_size": CONFIG.image_size, "patch_size": CONFIG.patch_size, "d_model": CONFIG.d_model,
            "n_heads": CONFIG.n_heads, "n_layers": CONFIG.n_layers, "d_ff": CONFIG.d_ff,
            "n_parameters": sum(parameter.numel() for parameter in models[0].parameters()),
            "n_train": N_TRAIN, "n_held_out": N_HELD_OUT, "batch": BATCH, "steps": STEPS, "peak": PEAK,
        },
        "classes": list(SHAPES),
        "accuracies": accuracies,
        "positions": lines(hundredths(similarity, CONFIG.n_patches + 1)),
        "images": [recorded(models[0], images[i], int(classes[i])) for i in chosen],
    }  # fmt: skip
    _record.write("vit_recording", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
