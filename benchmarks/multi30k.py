"""Train English-German Multi30k from nothing and score it on test_2016_flickr: one command, one JSON file.

    TTUTOR_DATA=path/to/data python benchmarks/multi30k.py [--steps 1500 | --minutes 12] [--seed 0] [--out FOLDER]

The data folder holds multi30k/train.en.gz and so on. Writes benchmarks/results/multi30k.json: command, machine,
versions, seed, minutes, tokens, BLEU with its signature, and BLEU on the way; no sentence of the corpus.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHMARKS.parent / "experiments"))

from ttutor.translation.checkpoint import copy_into  # noqa: E402
from ttutor.translation.corpus import read_lines, read_pairs  # noqa: E402
from ttutor.translation.evaluation import Evaluation, evaluate  # noqa: E402
from ttutor.translation.trainer import Trainer  # noqa: E402
from ttutor.translation.training_command import TrainingRequest, run  # noqa: E402
from ttutor.translation.translator import Translator  # noqa: E402

import _record  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--language", default="de", choices=("de", "fr"), help="target language")
    parser.add_argument("--steps", type=int, help="train this many steps instead of the preset's number")
    parser.add_argument("--minutes", type=float, help="train this long instead of the preset's number of steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--out", type=Path, help="keep the trained model in this folder")
    return parser.parse_args()


def data_files(language: str) -> dict[str, tuple[Path, Path]]:
    """Source and target file of each split.

    Raises:
        SystemExit: TTUTOR_DATA is not set, or a file is missing.
    """
    if "TTUTOR_DATA" not in os.environ:
        raise SystemExit("set TTUTOR_DATA to the folder that holds multi30k/train.en.gz and so on")
    folder = Path(os.environ["TTUTOR_DATA"]) / "multi30k"
    splits = ("train", "val", "test_2016_flickr")
    files = {split: (folder / f"{split}.en.gz", folder / f"{split}.{language}.gz") for split in splits}
    missing = [str(path) for pair in files.values() for path in pair if not path.is_file()]
    if missing:
        raise SystemExit(f"missing: {', '.join(missing)}")
    return files


def train(options: argparse.Namespace, files: dict, folder: Path) -> tuple[Trainer, list[dict]]:
    """Train; returns the trainer and its averaged weights as they stood at each validation."""
    snapshots: list[dict] = []

    def remember(trainer: Trainer) -> None:
        snapshots.append({name: tensor.clone() for name, tensor in trainer.average.tensors.items()})

    request = TrainingRequest(
        files={
            "source": files["train"][0],
            "target": files["train"][1],
            "validation_source": files["val"][0],
            "validation_target": files["val"][1],
        },
        preset="multi30k-tiny",
        changes={"steps": options.steps, "minutes": options.minutes, "seed": options.seed},
        out=folder,
    )
    return run(request, on_validation=remember), snapshots


def score(translator: Translator, files: tuple[Path, Path], beam: int) -> Evaluation:
    """Translate a test set with a beam and score it.

    Raises:
        SystemExit: a line of the test set was skipped, so that the score would not be comparable.
    """
    pairs, skips = read_pairs(*files)
    if skips or len(pairs) != len(read_lines(files[0])):
        raise SystemExit(f"the test set must be scored whole, but pairs were skipped: {skips}")
    answers = translator.translate([source for source, _ in pairs], beam_size=beam)
    return evaluate([answer.text for answer in answers], [target for _, target in pairs])


def curve(trainer: Trainer, snapshots: list[dict], files: tuple[Path, Path], beam: int) -> list[dict]:
    """The metrics of the training, each with the BLEU of the weights at that moment."""
    translator, points = Translator.of(trainer), []
    for record, weights in zip(trainer.metrics, snapshots, strict=True):
        copy_into(dict(translator.model.named_parameters()), weights, "the snapshot")
        bleu = score(translator, files, beam).bleu
        point = {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in record.items()}
        points.append(point | {"test_bleu": round(bleu, 2)})
    return points


def measure(options: argparse.Namespace) -> dict:
    """Train, score, and gather what a reader needs to judge the figure."""
    cpu, files = time.process_time(), data_files(options.language)
    with tempfile.TemporaryDirectory() as temporary:
        trainer, snapshots = train(options, files, options.out or Path(temporary) / "run")
    cpu_seconds = time.process_time() - cpu
    load = [round(value, 1) for value in os.getloadavg()]
    started, cpu = time.perf_counter(), time.process_time()
    final = score(Translator.of(trainer), files["test_2016_flickr"], options.beam)
    decoding = {
        "beam_size": options.beam,
        "length_penalty": 0.6,
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    position = trainer.position
    return {
        "languages": f"en-{options.language}",
        "test_set": "test_2016_flickr",
        "preset": "multi30k-tiny",
        "parameters": trainer.model.n_parameters(),
        "precision": trainer.precision,
        "training_minutes": round(position.seconds / 60, 1),
        "cpu_minutes": round(cpu_seconds / 60, 1),
        "load_average": load,
        "steps": position.step,
        "target_tokens": position.target_tokens,
        "target_tokens_per_cpu_second": round(position.target_tokens / cpu_seconds),
        "real_share_of_target_tokens": round(trainer.batches.real_share(), 4),
        "test": {
            name: round(value, 4) if isinstance(value, float) else value for name, value in final.as_dict().items()
        },
        "decoding": decoding,
        "curve": curve(trainer, snapshots, files["test_2016_flickr"], options.beam),
    }


def write(result: dict, seed: int) -> Path:
    """Write the result beside this script, with command, machine and versions."""
    short = [Path(argument).name if os.path.isabs(argument) else argument for argument in sys.argv[1:]]
    provenance = {
        "command": " ".join([f"python {Path(sys.argv[0]).parent.name}/{Path(sys.argv[0]).name}", *short]),
        "machine": _record.machine(),
        "versions": _record.versions(),
        "seeds": [seed],
    }
    name = "multi30k.json" if result["languages"] == "en-de" else f"multi30k_{result['languages']}.json"
    path = BENCHMARKS / "results" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(provenance | result, indent=1) + "\n", encoding="utf-8")
    print(
        f"BLEU {result['test']['bleu']:.2f} ({result['test']['bleu_signature']}) after {result['training_minutes']} min"
    )
    return path


if __name__ == "__main__":
    given = arguments()
    print(f"written: {write(measure(given), given.seed).name}")
