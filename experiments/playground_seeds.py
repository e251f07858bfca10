"""The playground's trainings (`ttutor.widgets.PlaygroundExplorer`), five seeds each, by the script that runs in a page.

    python experiments/playground_seeds.py                   # half an hour on one core

For each task: all parts, one or two parts changed, in one layer and in two; other numbers of heads; other rates.
Browsers, and versions of one, round `Math.exp` in different ways in the last digit. That moves trainings without skips
and norms, which lose and find their way by chance; those that learn come out alike. Some rows of *sort* were made by
the same script under Node.
"""

from __future__ import annotations

from book._tools.chromium import open_browser
from experiments import _record
from ttutor.widgets.playground import CAUSAL, HEADS, LAYERS, RATES, TASKS, USUAL_RATE, engine_source, key_of

SEEDS = [101, 102, 103, 104, 105]
SWITCHED = [(), ("positions",), ("causal",), ("skips",), ("norm",), ("positions", "causal"), ("skips", "norm")]
"""Which of the switches stand otherwise than at first."""
N_TESTED = 64
"""So that the simplest answer is measured on the very sequences on which the page tests."""
TRAIN = """
({ task, parts, rate, seeds }) => seeds.map((seed) => {
  const training = new window.Training(task, seed);
  const seen = [];
  for (let step = 0; step < window.tasks[task].steps; step += 1) seen.push(training.step(parts, rate).seen);
  const last = seen.slice(-10).reduce((sum, one) => sum + one / 10, 0);
  return [training.right(parts), last].map((share) => Math.round(1000 * share) / 1000);
})
"""


def settings_of(task: str) -> list[dict]:
    """The trainings of a task: its parts and its rate."""
    usual = {"positions": True, "causal": task in CAUSAL, "heads": 2, "skips": True, "norm": True}
    changed = [
        usual | {name: not usual[name] for name in names} | {"layers": layers}
        for layers in LAYERS
        for names in SWITCHED
    ]
    one = usual | {"layers": 1}
    settings = [{"parts": parts, "rate": USUAL_RATE} for parts in changed]
    settings += [{"parts": one | {"heads": heads}, "rate": USUAL_RATE} for heads in HEADS if heads != one["heads"]]
    settings += [{"parts": one, "rate": rate} for rate in RATES if rate != USUAL_RATE]
    return settings


def main() -> None:
    started = _record.start()
    rows, simplest = [], {}
    with open_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(0)
        page.evaluate(f"async () => Object.assign(window, await ({engine_source()}))")
        for task in TASKS:
            simplest[task] = round(page.evaluate("([task, n]) => simplestShare(task, n)", [task, N_TESTED]), 3)
            for setting in settings_of(task):
                runs = page.evaluate(TRAIN, {"task": task, "seeds": SEEDS, **setting})
                key = key_of(task, **setting["parts"], rate=setting["rate"])
                rows.append({"setting": key, "right": [one[0] for one in runs], "seen": [one[1] for one in runs]})
                print(rows[-1], flush=True)
    _record.write("playground_seeds", {"simplest": simplest, "runs": rows}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
