"""The ViT of ``vit_data_size.py`` on 25,600 drawn shapes with three times the steps: was the end of the curve data?

There 1,000 steps of 32 show it 32,000 images, each of the 25,600 about once. Here 3,000, and nothing else is changed:
the same images, the same peak rate, three seeds. About two minutes on one core.
"""

import torch

from experiments import _record, vit_data_size
from ttutor.variants.drawings import drawn_shapes

SEEDS = [0, 1, 2]
N_IMAGES, PEAK, STEPS = 25_600, 3e-3, 3_000


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    vit_data_size.STEPS = STEPS
    test = drawn_shapes(2_000, image_size=vit_data_size.IMAGE, seed=999)
    images, classes = drawn_shapes(N_IMAGES, image_size=vit_data_size.IMAGE, seed=100)
    shares = []
    for seed in SEEDS:
        shares.append(vit_data_size.accuracy(vit_data_size.train("vit", PEAK, seed, images, classes), *test))
        print(shares, flush=True)
    settings = {"n_images": N_IMAGES, "batch": vit_data_size.BATCH, "steps": STEPS, "peak": PEAK}
    _record.write("vit_data_steps", {"settings": settings, "test": shares}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
