"""Five small ViTs tell drawn shapes apart: does the answer depend on what the class token looks at?

Three are those of ``vit_trained``, with their stored weights; two more are trained as they were, from other seeds. The
map is that of chapter 10: the class token's weights in the last layer, averaged over its heads. The deletion test puts
background noise in place of the patches, the highest of a map first, and keeps the mean probability of the model's own
answer while 0 to 12 of 36 patches go, over 60 drawings. It is asked of the map, its reverse, the map of the layer
before, rollout, brightness, each head, and five random orders. Then the attacks: 340 other drawings; and patches left
out of the sequence in place of replaced ones.
"""

import torch
from torch import Tensor

from experiments import _record
from experiments.vit_trained import BATCH, CONFIG, STEPS, loss, rate
from ttutor import assets
from ttutor.inside import attention_rollout, capture
from ttutor.training.fit import fit
from ttutor.variants.drawings import drawn_shapes
from ttutor.variants.patches import patchify, unpatchify
from ttutor.variants.vit import ViT

SEEDS, N_STEPS, N_DRAWN = [0, 1, 2, 3, 4], 12, 5


def models() -> list[ViT]:
    """The three stored ones, and two that are trained here on the same drawings."""
    stored, found = assets.weights("vit_trained"), []
    images, classes = drawn_shapes(BATCH * STEPS, seed=200)
    data = list(zip(images.split(BATCH), classes.split(BATCH), strict=True))
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = ViT(CONFIG)
        if str(seed) in stored:
            start = 0
            for tensor in model.state_dict().values():
                tensor.copy_(stored[str(seed)][start : start + tensor.numel()].view_as(tensor))
                start += tensor.numel()
        else:
            fit(model, data, loss, steps=STEPS, learning_rate=rate)
        found.append(model.eval())
    return found


@torch.no_grad()
def maps_of(model: ViT, images: Tensor) -> dict[str, Tensor]:
    """Orders of the patches, `images patches` each."""
    with capture(model, "vision.encoder.layers.*.self_attention.weights") as seen:
        model(images)
    layers = seen.stack()[:, :, :, 0, 1:]  # layers images heads patches: from the class token
    maps = {
        "the map": layers[1].mean(dim=1),
        "the map, lowest first": -layers[1].mean(dim=1),
        "the layer before": layers[0].mean(dim=1),
        "rollout": attention_rollout(seen.stack())[:, 0, 1:],
        "brightness": patchify(images, 4).mean(dim=-1),
    }
    return maps | {f"head {head}": layers[1][:, head] for head in range(layers.shape[2])}


@torch.no_grad()
def deletion(model: ViT, images: Tensor, scores: Tensor, leave_out: bool = False) -> float:
    """The mean probability of the model's own answer while 0 to 12 patches go."""
    generator = torch.Generator().manual_seed(5)
    noise = patchify((0.08 * torch.randn(images.shape, generator=generator)).clamp(0, 1), 4)
    order = scores.argsort(dim=-1, descending=True)
    rows, said = torch.arange(len(images)), model(images).argmax(dim=-1)
    patches, left = patchify(images, 4), []
    for step in range(N_STEPS + 1):
        if leave_out:
            kept = torch.cat([torch.zeros(len(images), 1, dtype=torch.long), 1 + order[:, step:]], dim=1)
            tokens = model.vision.embed(images)[rows[:, None], kept]
            logits = model.classifier(model.vision.encoder(tokens)[:, 0])
        else:
            logits = model(unpatchify(patches, 4))
        left.append(logits.softmax(dim=-1)[rows, said].mean())
        patches[rows, order[:, step]] = noise[rows, order[:, step]]
    return round(torch.stack(left).mean().item(), 3)


def measured(model: ViT, images: Tensor, leave_out: bool = False) -> dict[str, float | list[float]]:
    """What each order leaves; of random orders, each of five."""
    left: dict = {name: deletion(model, images, scores, leave_out) for name, scores in maps_of(model, images).items()}
    draws = [torch.rand(len(images), 36, generator=torch.Generator().manual_seed(seed)) for seed in range(N_DRAWN)]
    left["random"] = [deletion(model, images, scores, leave_out) for scores in draws]
    return left


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    five = models()
    images, classes = drawn_shapes(400, seed=31)
    with torch.no_grad():
        right = [round((model(images).argmax(-1) == classes).float().mean().item(), 3) for model in five]
    results = {
        "right": right,
        "left": [measured(model, images[:60]) for model in five],
        "attacks": {
            "340 other drawings": [measured(model, images[60:]) for model in five],
            "left out of the sequence": [measured(model, images[:60], leave_out=True) for model in five],
        },
    }
    _record.write("vit_maps", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
