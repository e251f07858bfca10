"""The models of ``inside_language.py`` without skips: the same language, sizes, data and steps.

Every sublayer gives what it computed from the normalised stream, and nothing is added to what came in. Stored as there,
but the peak is the best of three by the mean loss of all seeds, since without skips the seeds differ more.
"""

import torch
from torch import Tensor

from experiments import _record, inside_language
from ttutor.layers import PreNorm
from ttutor.variants.gpt import GPT


class NoSkip(PreNorm):
    """Norm and sublayer, and no sum."""

    def forward(self, hidden: Tensor, sublayer) -> Tensor:
        """Give what the sublayer makes of the normalised stream."""
        return self.dropout(sublayer(self.norm(hidden)))


def plain(seed: int) -> GPT:
    """A model at its start, all its residual connections cut."""
    model = inside_language.fresh(seed)
    for layer in model.decoder.layers:
        layer.around_attention = NoSkip(model.config.d_model)
        layer.around_feed_forward = NoSkip(model.config.d_model)
    return model


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    there = inside_language
    data = list(there.texts(there.BATCH * there.STEPS, seed=1).split(there.BATCH))
    test = there.texts(there.N_TEST, there.TEST_SEED)
    runs = {peak: [there.trained(plain(seed), data, test, peak) for seed in there.SEEDS] for peak in there.PEAKS}
    losses = {peak: [loss for _, loss in trained] for peak, trained in runs.items()}
    peak = min(losses, key=lambda peak: sum(losses[peak]))
    results = {
        "settings": {"steps": there.STEPS, "batch": there.BATCH, "peak": peak, "test_seed": there.TEST_SEED},
        "losses_by_peak": {str(peak): values for peak, values in losses.items()},
        "losses": losses[peak],
    }
    print(results["losses_by_peak"], flush=True)
    weights = {str(seed): flat for seed, (flat, _) in zip(there.SEEDS, runs[peak], strict=True)}
    _record.write("inside_plain", results, seeds=there.SEEDS, started=started, weights=weights)


if __name__ == "__main__":
    main()
