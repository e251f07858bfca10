"""Train Multi30k from nothing and score it on test_2016_flickr: one command a seed, all in one JSON file.

    ttutor fetch multi30k
    python benchmarks/multi30k.py [--preset multi30k-tiny] [--languages en-de] [--seed 0] [--out FOLDER]

Adds the run to benchmarks/results/multi30k.json, in place of an earlier one of the same preset, languages and seed:
recipe, command, machine, versions, minutes, tokens, BLEU with its signatures, and BLEU on the way, with the mean and
the spread over the seeds. Runs of a recipe that has changed since are dropped. No sentence of the corpus is stored.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from experiments import _record
from ttutor.corpora.corpus import read_aligned
from ttutor.corpora.datasets import find_dataset
from ttutor.training.checkpoint import copy_into
from ttutor.training.recipe import PRESETS
from ttutor.training.trainer import Trainer
from ttutor.translation.evaluation import Evaluation, evaluate
from ttutor.translation.training_command import TrainingRequest, run
from ttutor.translation.translator import Translator

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "multi30k.json"
TEST_SET = "test_2016_flickr"
SUMMARISED = ("bleu", "bleu_lower_cased", "bleu_as_words", "chrf")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="multi30k-tiny", choices=[name for name in PRESETS if "multi30k" in name])
    parser.add_argument("--languages", default="en-de", choices=("en-de", "en-fr"), help="from and to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="another length than the preset's, to try something out")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--data-dir", type=Path, help="the folder that holds multi30k/; default as for ttutor fetch")
    parser.add_argument("--out", type=Path, help="keep the trained model in this folder")
    return parser.parse_args()


def train(options: argparse.Namespace, folder: Path) -> tuple[Trainer, list[dict]]:
    """Train; returns the trainer and its averaged weights as they stood at each validation."""
    snapshots: list[dict] = []

    def remember(trainer: Trainer) -> None:
        snapshots.append({name: tensor.clone() for name, tensor in trainer.average.tensors.items()})

    changes = {"seed": options.seed, "languages": options.languages, "steps": options.steps}
    request = TrainingRequest(preset=options.preset, changes=changes, data_dir=options.data_dir, out=folder)
    return run(request, on_validation=remember), snapshots


def score(translator: Translator, pairs: list[tuple[str, str]], options: argparse.Namespace) -> Evaluation:
    """Translate a test set with a beam and score it, every sentence of it."""
    answers = translator.translate([source for source, _ in pairs], beam_size=options.beam)
    references = [target for _, target in pairs]
    return evaluate([answer.text for answer in answers], references, language=options.languages.split("-")[1])


def rounded(values: dict) -> dict:
    """Floats with five digits, the rest as it is."""
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in values.items()}


def measure(options: argparse.Namespace) -> dict:
    """Train, score, and gather what a reader needs to judge the figure."""
    pairs = read_aligned(*find_dataset("multi30k", options.languages, options.data_dir)["test"])
    cpu = time.process_time()
    with tempfile.TemporaryDirectory() as temporary:
        trainer, snapshots = train(options, options.out or Path(temporary) / "run")
    cpu_seconds, load = time.process_time() - cpu, [round(value, 1) for value in os.getloadavg()]
    translator = Translator.of(trainer)
    started, cpu = time.perf_counter(), time.process_time()
    final = score(translator, pairs, options)
    decoding = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
    curve = []
    for record, weights in zip(trainer.metrics, snapshots, strict=True):
        copy_into(dict(translator.model.named_parameters()), weights, "the snapshot")
        curve.append(rounded(record | {"test_bleu": score(translator, pairs, options).bleu}))
    position = trainer.position
    return {
        "seed": options.seed,
        "command": command(),
        "machine": _record.machine(),
        "versions": _record.versions(),
        "parameters": trainer.model.n_parameters(),
        "precision": trainer.precision,
        "training_minutes": round(position.seconds / 60, 1),
        "cpu_minutes": round(cpu_seconds / 60, 1),
        "load_average": load,
        "steps": position.step,
        "target_tokens": position.target_tokens,
        "target_tokens_per_second": round(position.target_tokens / position.seconds),
        "target_tokens_per_cpu_second": round(position.target_tokens / cpu_seconds),
        "real_share_of_target_tokens": round(trainer.batches.real_share(), 4),
        "test_set": TEST_SET,
        "test": rounded(final.as_dict()),
        "decoding": {"beam_size": options.beam} | rounded(decoding),
        "curve": curve,
    }


def command() -> str:
    """The command that was run, without the folders of the machine it ran on."""
    short = [Path(argument).name if os.path.isabs(argument) else argument for argument in sys.argv[1:]]
    return " ".join([f"python {Path(sys.argv[0]).parent.name}/{Path(sys.argv[0]).name}", *short])


def add(series: list[dict], options: argparse.Namespace, run: dict) -> list[dict]:
    """The stored series with one more run in its place, and the summary of its series made anew."""
    recipe = tomllib.loads(PRESETS[options.preset].read_text(encoding="utf-8"))
    recipe |= {"languages": options.languages} | ({"steps": options.steps} if options.steps else {})
    same = {"preset": options.preset, "languages": options.languages}
    others = [one for one in series if not same.items() <= one.items()]
    earlier = [one for one in series if same.items() <= one.items() and one["recipe"] == recipe]
    runs = [run, *(other for one in earlier for other in one["runs"] if other["seed"] != run["seed"])]
    runs.sort(key=lambda one: one["seed"])
    found = [*others, same | {"recipe": recipe, "summary": summary(runs), "runs": runs}]
    return sorted(found, key=lambda one: (one["preset"], one["languages"]))


def summary(runs: list[dict]) -> dict:
    """Mean and sample standard deviation over the seeds."""
    found: dict = {"seeds": [run["seed"] for run in runs]}
    scores = {name: [run["test"][name] for run in runs] for name in SUMMARISED}
    scores["training_minutes"] = [run["training_minutes"] for run in runs]
    for name, values in scores.items():
        found[name] = {"mean": round(statistics.mean(values), 2)}
        if len(values) > 1:
            found[name]["standard_deviation"] = round(statistics.stdev(values), 2)
    return found


def stored() -> list[dict]:
    """The series in the result file; none where there is no file."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))["series"] if RESULTS.exists() else []


def write(options: argparse.Namespace, run: dict) -> list[dict]:
    """Put the run into the result file; returns all series."""
    series = add(stored(), options, run)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"series": series}, indent=1) + "\n", encoding="utf-8")
    test = run["test"]
    print(f"BLEU {test['bleu']:.2f} ({test['bleu_signature']}) after {run['training_minutes']} min")
    return series


if __name__ == "__main__":
    given = arguments()
    write(given, measure(given))
    print(f"written: {RESULTS.name}")
