"""Two marks 20 pixels apart: do those that failed in ``vit_spread.py`` learn it with more steps?

The same task, and two of its networks: the convolutional one whose features see 28 pixels, and the one that sees 12
with dense layers behind. There 250 steps, here 1,000, at each of two peak rates. Three seeds, all reported. About two
minutes on one core.
"""

import torch

from experiments import _record, vit_spread

SEEDS = [0, 1, 2]
PEAKS = [1e-3, 3e-3]
NETWORKS, DISTANCE, STEPS = ["sees 28", "sees 12, dense"], 20, 1_000


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    vit_spread.STEPS = STEPS
    test = vit_spread.two_marks(vit_spread.N_TEST, DISTANCE, torch.Generator().manual_seed(999))
    runs = []
    for name in NETWORKS:
        for peak in PEAKS:
            shares = [vit_spread.accuracy(name, DISTANCE, peak, seed, test) for seed in SEEDS]
            runs.append({"network": name, "distance": DISTANCE, "peak": peak, "test": shares})
            print(runs[-1], flush=True)
    settings = {"steps": STEPS, "peaks": PEAKS}
    _record.write("vit_spread_longer", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
