"""What a network brings from one task to the next: digits 5 to 9 from few labels, after three different beginnings.

The ViT and the convolutional network of ``vit_digits.py``. Each starts from scratch, from digits 0 to 4 (all those
among the 1,000 training images) or from 10,000 drawn shapes shrunk to 8 x 8 pixels, 300 steps each at a peak rate of
3e-3 for the ViT and 1e-2 for the other; then it gets a new classifier, and all weights are trained for 150 steps on a
few labelled digits 5 to 9. The peak rate of this last training is chosen by one further seed on validation images, for
each network, beginning and number of labels. Three seeds: first task, new classifier, batches and the choice of the
labelled images differ, and the same labels serve all beginnings. About two minutes on one core.
"""

import copy

import torch
from torch import Tensor, nn

from experiments import _record
from experiments.vit_digits import N_TRAIN, N_VALIDATION, NETWORKS, accuracy, digits, train
from ttutor.variants.drawings import SHAPES, drawn_shapes

SEEDS, SEARCH_SEED = [0, 1, 2], 10
N_LABELS = [10, 50]
PEAKS, FIRST_PEAK = [1e-3, 3e-3, 1e-2], {"vit": 3e-3, "cnn": 1e-2}
STEPS, FIRST_STEPS = 150, 300
N_SHAPES = 10_000


def with_new_classifier(model: nn.Module, seed: int) -> nn.Module:
    """A copy whose last linear map is new and has five classes."""
    torch.manual_seed(100 + seed)
    model = copy.deepcopy(model)
    if isinstance(model, nn.Sequential):
        model[-1] = nn.Linear(model[-1].in_features, 5)
    else:
        old = model.classifier
        model.classifier = nn.Linear(old.in_features, 5)
        nn.init.normal_(model.classifier.weight, std=0.02)
        nn.init.zeros_(model.classifier.bias)
    return model


def half(images: Tensor, classes: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """The images of five classes, numbered from 0."""
    rows = (classes >= first) & (classes < first + 5)
    return images[rows], classes[rows] - first


def pick(classes: Tensor, n: int, seed: int) -> Tensor:
    """Rows of n images, equally many of each of five classes."""
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(200 + seed))
    return torch.cat([order[classes[order] == label][: n // 5] for label in range(5)])


def first_task(name: str, begin: str, data: dict, seed: int, peak: float) -> nn.Module:
    """A network that has learned the first task, or none."""
    torch.manual_seed(seed)
    model = NETWORKS[name](5 if begin == "digits 0-4" else len(SHAPES))
    return model if begin == "scratch" else train(model, peak, seed, *data[begin], steps=FIRST_STEPS)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    images, classes = digits()
    parts = [slice(0, N_TRAIN), slice(N_TRAIN, N_TRAIN + N_VALIDATION), slice(N_TRAIN + N_VALIDATION, None)]
    train_part, validation, test = (half(images[part], classes[part], 5) for part in parts)

    def shapes(n: int, seed: int) -> tuple[Tensor, Tensor]:
        drawn, labels = drawn_shapes(n, image_size=16, seed=seed)
        return nn.functional.avg_pool2d(drawn, 2), labels

    data = {"digits 0-4": half(images[parts[0]], classes[parts[0]], 0), "shapes": shapes(N_SHAPES, 100)}
    checks = {"digits 0-4": half(images[parts[1]], classes[parts[1]], 0), "shapes": shapes(1_000, 998)}
    runs, firsts = [], []
    for name in ("vit", "cnn"):
        for begin in ("scratch", "digits 0-4", "shapes"):
            starts = {seed: first_task(name, begin, data, seed, FIRST_PEAK[name]) for seed in [*SEEDS, SEARCH_SEED]}
            if begin != "scratch":
                reached = [accuracy(starts[seed], *checks[begin]) for seed in SEEDS]
                firsts.append({"network": name, "task": begin, "peak": FIRST_PEAK[name], "accuracy": reached})
                print(firsts[-1], flush=True)
            for n in N_LABELS:

                def after(seed: int, rate: float, starts: dict = starts, n: int = n) -> nn.Module:
                    rows = pick(train_part[1], n, seed)
                    model = with_new_classifier(starts[seed], seed)
                    return train(model, rate, seed, train_part[0][rows], train_part[1][rows], steps=STEPS)

                search = [accuracy(after(SEARCH_SEED, rate), *validation) for rate in PEAKS]
                best = PEAKS[search.index(max(search))]
                run = {"network": name, "begin": begin, "n_labels": n, "search": search, "peak": best}
                run["test"] = [accuracy(after(seed, best), *test) for seed in SEEDS]
                runs.append(run)
                print(run, flush=True)
    settings = {"steps": STEPS, "first_steps": FIRST_STEPS, "peaks": PEAKS, "first_peaks": FIRST_PEAK}
    sizes = {
        "n_shapes": N_SHAPES,
        "n_first": len(data["digits 0-4"][1]),
        "n_test": len(test[1]),
        "n_validation": len(validation[1]),
    }
    _record.write(
        "vit_transfer",
        {"settings": {**settings, **sizes}, "firsts": firsts, "runs": runs},
        seeds=SEEDS,
        started=started,
    )


if __name__ == "__main__":
    main()
