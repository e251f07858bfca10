"""Is 2.3 where post-norm with full first writes ends? The task of `encoder_start`, four times the steps.

The two arms that stood near 2.3 after 300 steps, with 100 steps of warm-up and without, at the rate that was best
there, 0.001; and at 0.003, with 400 steps of warm-up and without. Three seeds. Stored is the mean loss of a symbol
over twenty steps, after 300, 600, 900 and 1,200 of them.
"""

import torch

from experiments import _record, encoder_start

SEEDS, STEPS, AT = [0, 1, 2], 1200, [300, 600, 900, 1200]


def main() -> None:
    """Run both arms on."""
    torch.set_num_threads(1)
    started, rows = _record.start(), []
    encoder_start.SEEDS, encoder_start.STEPS = SEEDS, STEPS
    for rate, warmup in ((1e-3, 1), (1e-3, 100), (3e-3, 1), (3e-3, 400)):
        encoder_start.RATES = [rate]
        losses = encoder_start.train("post", "full", warmup)[:, 0]
        means = [[round(value, 2) for value in losses[step - 20 : step].mean(dim=0).tolist()] for step in AT]
        rows.append({"rate": rate, "warmup": warmup, "losses": means})
        print(rows[-1], flush=True)
    _record.write("encoder_start_longer", {"at": AT, "rows": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
