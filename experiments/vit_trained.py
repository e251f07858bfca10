"""Three small ViTs that tell drawn shapes apart, with their weights, so that the chapter can look into them.

24 x 24 pixels in patches of 4 x 4: a class token and 36 patches, pre-norm. Every step has 64 drawings that were never
used before; the rate rises over 50 steps and falls in a line to zero. The weights are stored as float16, in the order
of ``state_dict``; the figures are the shares of right answers on 2,000 other drawings, with the stored weights. About
two minutes on one core.
"""

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.training.fit import fit
from ttutor.variants.drawings import SHAPES, drawn_shapes
from ttutor.variants.vit import ViT, ViTConfig

SEEDS = [0, 1, 2]
CONFIG = ViTConfig(
    image_size=24, patch_size=4, n_channels=1, n_classes=len(SHAPES), d_model=32, n_heads=4, n_layers=2, d_ff=64
)
BATCH, STEPS, PEAK, WARMUP = 64, 1_500, 5e-3, 50
N_TEST, TEST_SEED = 2_000, 999


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy, in nats."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def rate(step: int) -> float:
    """Up in a line, and down to zero in a line."""
    return PEAK * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    images, classes = drawn_shapes(BATCH * STEPS, seed=200)
    data = list(zip(images.split(BATCH), classes.split(BATCH), strict=True))
    test_images, test_classes = drawn_shapes(N_TEST, seed=TEST_SEED)
    weights, accuracies = {}, []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = ViT(CONFIG)
        fit(model, data, loss, steps=STEPS, learning_rate=rate)
        state = {name: tensor.half() for name, tensor in model.state_dict().items()}
        model.load_state_dict(state)
        with torch.no_grad():
            found = torch.cat([model(part).argmax(-1) for part in test_images.split(500)])
        accuracies.append(round((found == test_classes).float().mean().item(), 4))
        weights[str(seed)] = torch.cat([tensor.flatten() for tensor in state.values()])
    settings = {"batch": BATCH, "steps": STEPS, "peak": PEAK, "n_test": N_TEST, "test_seed": TEST_SEED}
    results = {"settings": settings, "config": CONFIG.__dict__, "accuracies": accuracies}
    _record.write("vit_trained", results, seeds=SEEDS, started=started, weights=weights)


if __name__ == "__main__":
    main()
