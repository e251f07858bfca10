"""Ways to read longer texts with rotary positions, without another step of training.

Rotary models of `_positions.py`, trained on 32 tokens and tested on texts up to eight times as long, with the
frequencies of the training; all slowed (linear); by turns (Llama 3); by a larger base (NTK); by place (YaRN, its bounds
set to a quarter turn and one turn, since heads of eight features turn little within 32 tokens), with and without its
sharper softmax; or with the second of four pairs slowed alone, or the two slowest. Two more models were trained with a
larger base from the start, and with half of the features left unturned; three seeds of these. About three minutes of
one core.
"""

import time

import torch
from torch import Tensor

from experiments import _positions as study
from experiments import _record
from ttutor.positions import RotaryScaling, rotary_frequencies
from ttutor.positions.scaling import YarnScaling, ntk_base, partial_frequencies

D_HEAD, TIMES = 8, [1, 2, 4, 8]
USUAL = rotary_frequencies(D_HEAD)


def slowed_alone(pairs: list[int], times: int) -> Tensor:
    frequencies = USUAL.clone()
    frequencies[pairs] /= times
    return frequencies


def ways(times: int) -> dict[str, tuple[Tensor, float]]:
    """The frequencies and the factor of the scores, by each way."""
    plain = D_HEAD**-0.5
    yarn = YarnScaling(factor=float(times), trained_len=study.TRAINED_LEN, few_turns=0.25, many_turns=1.0)
    return {
        "as trained": (USUAL, plain),
        "linear": (RotaryScaling(factor=float(times))(USUAL), plain),
        "by turns": (RotaryScaling(factor=float(times), trained_len=study.TRAINED_LEN)(USUAL), plain),
        "larger base (NTK)": (rotary_frequencies(D_HEAD, ntk_base(D_HEAD, float(times))), plain),
        "YaRN": (yarn(USUAL), yarn.scale(D_HEAD)),
        "YaRN without its factor": (yarn(USUAL), plain),
        "second pair alone": (slowed_alone([1], times), plain),
        "two slowest alone": (slowed_alone([2, 3], times), plain),
    }


TRAINED_OTHERWISE = {
    "trained with base 500,000": rotary_frequencies(D_HEAD, 500_000.0),
    "trained with half of the features turned": partial_frequencies(D_HEAD, D_HEAD // 2),
}


def measure(model: study.Reader, task: str) -> dict[tuple[str, str], list[float]]:
    """The accuracies of a model that was trained with the usual frequencies, by way and test."""
    found = {}
    for way in ways(1):
        for test in study.TASKS[task]:
            found[way, test] = []
            for times in TIMES:
                model.turn(*ways(times)[way])
                found[way, test].append(study.accuracy(model, study.TASKS[task][test], times))
    return found


def main() -> None:
    torch.set_num_threads(1)
    started, began, runs = _record.start(), time.process_time(), []
    for task, tests in study.TASKS.items():
        found = [measure(study.train("rotary", task, seed)[0], task) for seed in study.SEEDS]
        for way, test in found[0]:
            runs.append({"task": test, "way": way, "accuracy": [one[way, test] for one in found]})
        for way, frequencies in TRAINED_OTHERWISE.items():
            models = [study.train("rotary", task, seed, frequencies=frequencies)[0] for seed in study.SEEDS[:3]]
            shares = [study.accuracies(model, task, TIMES) for model in models]
            runs += [{"task": test, "way": way, "accuracy": [one[test] for one in shares]} for test in tests]
        print(*runs, f"{time.process_time() - began:.0f} s of one core", sep="\n", flush=True)
    settings = {
        "trained_len": study.TRAINED_LEN,
        "times": TIMES,
        "steps": study.STEPS,
        "d_head": D_HEAD,
        "chance": 1 / study.N_SYMBOLS,
        "core_minutes": round((time.process_time() - began) / 60, 1),
    }
    _record.write("positions_scaling", {"settings": settings, "runs": runs}, seeds=study.SEEDS, started=started)


if __name__ == "__main__":
    main()
