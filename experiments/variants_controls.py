"""Three controls for chapter 9, three seeds each; language and models are those of its other scripts.

*What the position alone tells.* ELECTRA's discriminator of `variants_objectives`, trained again in the same way: the
area under the curve of its scores; that of a score which knows the position only (how often each position is replaced
in the very texts that are judged, the same for all texts); and the area within positions, over pairs of a replaced and
an original token at the same place, where knowing the position is worth nothing.

*Which tenth does what.* The BERT of `variants_mask_rate` at 15 %, all selected tokens counting, with other fates: all
masked; two tenths random and none kept; two tenths kept and none random. Measured as in `variants_longer`.

*How much is hidden, and how much is asked.* The same BERT with as many questions in 700 steps as 30 % has, but 15 %
hidden (64 sentences a step for 32); and with 30 % hidden and as many questions as 15 % has (half of the labels count).
"""

from functools import partial

import torch

from experiments import _record
from experiments import variants_longer as longer
from experiments import variants_mask_rate as mask_rate
from experiments import variants_objectives as language
from ttutor.variants.objectives import IGNORE_ID, mask_tokens

SEEDS = [0, 1, 2]
FATES = {"100, 0, 0": (1.0, 0.0), "80, 20, 0": (0.8, 0.2), "80, 0, 20": (0.8, 0.0)}


def within_positions(scores: torch.Tensor, is_replaced: torch.Tensor) -> float:
    """The area over pairs of tokens at one place: one half for a score that is the same for all texts."""
    right, pairs = 0.0, 0
    for score, positive in zip(scores.T, is_replaced.T, strict=True):
        n = int(positive.sum()) * int((~positive).sum())
        if n:
            right, pairs = right + n * language.area(score, positive), pairs + n
    return right / pairs


def discriminator(seed: int) -> dict[str, float]:
    area, judged = language.area, []

    def noted(scores, is_replaced):
        judged.append((scores, is_replaced))
        return area(scores, is_replaced)

    language.area = noted
    result = language.replaced(seed)
    language.area = area
    for name, (scores, is_replaced) in zip(("", "_told"), judged, strict=True):
        by_place = is_replaced.double().mean(dim=0).expand(is_replaced.shape)
        result["position" + name] = round(area(by_place, is_replaced), 4)
        result["within" + name] = round(within_positions(scores, is_replaced), 4)
    return result


def tenths() -> list[dict]:
    found = []
    for name, (mask_share, random_share) in FATES.items():
        mask_rate.mask_tokens = partial(mask_tokens, mask_share=mask_share, random_share=random_share)
        models = [mask_rate.train(0.15, seed) for seed in SEEDS]
        above = [mask_rate.above_the_floor(model) for model in models]
        found.append({"fates": name, "above": above, "visible": [longer.on_visible_words(model) for model in models]})
        print(found[-1], flush=True)
    mask_rate.mask_tokens = mask_tokens
    return found


def half_asked(token_ids, **settings):
    inputs, labels = mask_tokens(token_ids, **settings)
    is_asked = torch.rand(labels.shape, generator=settings["generator"]) < 0.5
    return inputs, torch.where(is_asked, labels, IGNORE_ID)


def hidden_and_asked() -> list[dict]:
    found = []
    for hidden, batch, rule in ((0.15, 64, mask_tokens), (0.3, 32, half_asked)):
        language.BATCH, mask_rate.mask_tokens = batch, rule
        models = [mask_rate.train(hidden, seed) for seed in SEEDS]
        asked = hidden * batch / 32 * (0.5 if rule is half_asked else 1)
        found.append({"hidden": hidden, "batch": batch, "asked": asked})
        found[-1] |= {"above": [mask_rate.above_the_floor(model) for model in models]}
        found[-1] |= {"coherent": [mask_rate.coherent(model) for model in models]}
        print(found[-1], flush=True)
    language.BATCH, mask_rate.mask_tokens = 32, mask_tokens
    return found


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    results = {"discriminator": [discriminator(seed) for seed in SEEDS]}
    print(results["discriminator"], flush=True)
    results |= {"tenths": tenths(), "rates": hidden_and_asked()}
    _record.write("variants_controls", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
