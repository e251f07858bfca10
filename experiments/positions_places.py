"""What is new on a longer text: the place, the distance, or the angle of one pair? Each is changed alone.

Readers of `_positions.py` that learned *three back* on 32 letters, with waves and with rotary positions; five seeds,
and five more that try to refute what the first five say. They read

- texts of 64 letters: the share of right answers by place;
- texts of 32 letters that begin at a later place: new places, old distances;
- longer texts in which each letter sees itself and the 31 before it: new places and more text, old distances;
- longer texts with one pair of features slowed, by as much as the text is longer: one pair's old angles, all else new.

Then the cause is changed in training. The second pair turns at another rate, all others as usual: a pair that goes
full circle in training can meet no new angle, one that hardly moves meets angles close to old ones. Or texts in
training have 64 letters, in which the second pair of the usual rates comes round.

The attacks repeat all this with other rates of learning, four times the steps, and heads twice as wide, of eight pairs.
About six minutes of one core.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from experiments import _positions as study
from experiments import _record
from ttutor.positions import rotary_frequencies

SEEDS, ATTACK_SEEDS, FEW = study.SEEDS, [5, 6, 7, 8, 9], [0, 1, 2]
BEGINS, LONGER = [0, 1, 2, 4, 8, 16, 32, 64, 128], [2, 4, 8]
SECOND_RATES = [0.01, 0.05, 0.1, 0.15, 0.2, 0.3]
RECIPES = {"peak .0015": {"peak": 1.5e-3}, "peak .015": {"peak": 1.5e-2}, "1,600 steps": {"steps": 1600}}
N_TEXTS = 128


@contextmanager
def setting(**values: int) -> Iterator[None]:
    """Other sizes of the study for a while."""
    before = {name: getattr(study, name) for name in values}
    for name, value in values.items():
        setattr(study, name, value)
    yield
    for name, value in before.items():
        setattr(study, name, value)


@torch.no_grad()
def right(model: study.Reader, n_tokens: int, *, begin: int = 0, window: int | None = None) -> Tensor:
    """By place, the share of texts in which the letter three back is named, from the fourth place on."""
    token_ids, target = study.three_back(N_TEXTS, n_tokens, torch.Generator().manual_seed(n_tokens))
    places = torch.arange(begin, begin + n_tokens)[None]
    mask = None if window is None else (places.T - places < window)
    told = {} if model.rotary is None else {"rotation": model.rotary(places)}
    hidden = model.stack(model.embeddings(token_ids, places), mask=mask, **told)
    found = model.to_logits(hidden).argmax(dim=-1) == target
    return found[:, study.OFFSET :].double().mean(dim=0)


def last(shares: Tensor) -> float:
    """The share of right answers at the last places, as many as a text in training has."""
    return round(shares[-(study.TRAINED_LEN - study.OFFSET) :].mean().item(), 4)


def slowed(model: study.Reader, usual: Tensor, times: int) -> list[float]:
    """With each pair slowed alone, on texts so many times as long; the model is left as it was."""
    found = []
    for pair in range(len(usual)):
        frequencies = usual.clone()
        frequencies[pair] /= times
        model.turn(frequencies)
        found.append(last(right(model, times * study.TRAINED_LEN)))
    model.turn(usual)
    return found


def examine(model: study.Reader, usual: Tensor | None) -> dict:
    """All that is asked of one reader; ``usual`` are the frequencies of a rotary one."""
    length = study.TRAINED_LEN
    found = {
        "by place": [round(share, 3) for share in right(model, 2 * length).tolist()],
        "begins": [last(right(model, length, begin=begin)) for begin in BEGINS],
        "longer": [last(right(model, times * length)) for times in LONGER],
        "longer, seeing 32": [last(right(model, times * length, window=length)) for times in LONGER],
    }
    if usual is not None:
        found["one pair slowed"] = {times: slowed(model, usual, times) for times in LONGER[:2]}
    return found


def trained(scheme: str, seeds: list[int], frequencies: Tensor | None = None, **choices) -> list[dict]:
    """Readers of one kind, examined."""
    found = []
    for seed in seeds:
        if frequencies is not None:
            choices["frequencies"] = frequencies
        model, loss = study.train(scheme, "three back", seed, **choices)
        usual = None
        if scheme == "rotary":
            usual = rotary_frequencies(model.d_head) if frequencies is None else frequencies
        found.append({"seed": seed, "training loss": loss, **examine(model, usual)})
    return found


def with_second(rate: float) -> Tensor:
    """The frequencies of a head of eight features, the second pair at this rate."""
    frequencies = rotary_frequencies(8)
    frequencies[1] = rate
    return frequencies


def main() -> None:
    torch.set_num_threads(1)
    started, began = _record.start(), time.process_time()

    def say(what: str) -> None:
        print(what, f"{time.process_time() - began:.0f} s", flush=True)

    results: dict = {"readers": {}, "attacks": {}}
    for scheme in ("sinusoidal", "rotary"):
        results["readers"][scheme] = trained(scheme, SEEDS)
        results["attacks"][f"{scheme}, other seeds"] = trained(scheme, ATTACK_SEEDS)
        for name, recipe in RECIPES.items():
            results["attacks"][f"{scheme}, {name}"] = trained(scheme, FEW[:1], **recipe)
        say(scheme)
    results["second pair at another rate"] = {
        rate: [
            {key: one[key] for key in ("seed", "training loss", "longer")}
            for one in trained("rotary", FEW, with_second(rate))
        ]
        for rate in SECOND_RATES
    }
    say("rates")
    with setting(TRAINED_LEN=64):
        results["trained on 64 letters"] = trained("rotary", FEW)
    say("64 letters")
    with setting(D_MODEL=64):
        results["attacks"]["rotary, heads of 16"] = trained("rotary", FEW[:2])
    say("wide")
    results["settings"] = {
        "trained_len": study.TRAINED_LEN,
        "steps": study.STEPS,
        "begins": BEGINS,
        "longer": LONGER,
        "chance": 1 / study.N_SYMBOLS,
        "frequencies": rotary_frequencies(8).tolist(),
        "turns in training": [
            round((study.TRAINED_LEN - 1) * rate / (2 * math.pi), 4) for rate in rotary_frequencies(8).tolist()
        ],
        "core_minutes": round((time.process_time() - began) / 60, 1),
    }
    _record.write("positions_places", results, seeds=[*SEEDS, *ATTACK_SEEDS], started=started)


if __name__ == "__main__":
    main()
