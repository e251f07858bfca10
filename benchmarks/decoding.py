"""How fast the translator translates, beside other toolkits with the same weights, all in one run.

    TTUTOR_DATA=path/to/data python benchmarks/decoding.py [--run FOLDER] [--sentences 512] [--rounds 3]
        [--sections cpu wall memory] [--quick]

Transformer-Tiny, the sentences of Multi30k's test_2016_flickr, greedily and with a beam of five. Peers
(`benchmarks/README.md` tells how to install them; one that is missing is named in the result with the reason):
CTranslate2 in float32 and int8, Hugging Face's `generate`, JoeyNMT, and a tutorial's loop over ``nn.Transformer``. All
get the weights of the translator that ships, or of the run in FOLDER. What is measured goes from token ids to token
ids.

- cpu: output tokens by second of one processor core (process CPU time, one thread), each at the best of the batch sizes
  tried, in turn within each round; ratios within a round. The two that keep no cache, many times slower, translate an
  eighth of the sentences in each round, and are compared with ours on the same eighth.
- wall: the same, and sentences, by second of wall clock with two threads, of those that keep a cache. Ours and
  CTranslate2 translate two batches side by side, one thread each.
  Beside both stand BLEU, and how many of the translations are ours, word for word.
- memory: the peak resident size of a fresh process that translates 128 sentences with the beam.

Writes benchmarks/results/decoding.json.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch loads

import torch

from benchmarks import _decoding_peers as peers
from benchmarks import _in_turn
from experiments import _record
from ttutor.corpora.corpus import read_aligned
from ttutor.corpora.datasets import find_dataset
from ttutor.translation.evaluation import evaluate
from ttutor.translation.packed import load_default
from ttutor.translation.translator import Translator

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results" / "decoding.json"
SECTIONS = ("cpu", "wall", "memory")
PACKAGES = ("torch", "ctranslate2", "transformers", "joeynmt")
BEAMS = {"greedy": 1, "beam 5": 5}
BATCH_SIZES = (64, 128, 256, 512)
BLOCK = 64
"""Sentences of like length that stay together where only a part is translated."""

SLOW_SHARE = 8


class Work:
    """What all of them translate, and the model that all of them have.

    Args:
        folder: of a run of `ttutor train`; the translator that ships when left out.
        n_sentences: how many of the test set, from the first on; all when left out.
    """

    def __init__(self, folder: Path | None = None, n_sentences: int | None = None) -> None:
        self.translator = Translator.load(folder) if folder else load_default()
        pairs = read_aligned(*find_dataset("multi30k", "en-de", None)["test"])[:n_sentences]
        prepared = [self.translator.style.prepare(source) for source, _ in pairs]
        tokenizer = self.translator.tokenizer
        sources = [[*ids, peers.EOS_ID] for ids in tokenizer.encode_all(prepared)]
        order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
        self.sources = [sources[place] for place in order]
        self.pairs = [pairs[place] for place in order]
        self.block = min(BLOCK, len(sources) // SLOW_SHARE)

    def places(self, part: int, n_parts: int) -> list[int]:
        """Every so many-th block of sentences, from one on."""
        return [place for place in range(len(self.sources)) if place // self.block % n_parts == part % n_parts]

    def bleu(self, places: list[int], found: list[peers.Ids]) -> float:
        """Cased sacreBLEU of translations of these sentences."""
        tokenizer, style = self.translator.tokenizer, self.translator.style
        texts = [" ".join(tokenizer.decode(ids).split()) for ids in found]
        texts = [style.restore(text, self.pairs[place][0]) for text, place in zip(texts, places, strict=True)]
        return evaluate(texts, [self.pairs[place][1] for place in places], language="de").bleu


@cache
def maker(work: Work, threads: int) -> Callable[[str], peers.Translate]:
    """Makes the one of a name once and keeps it."""
    return cache(lambda name: peers.MAKERS[name](work.translator.model, threads))


def present(work: Work) -> tuple[list[str], dict[str, str]]:
    """The names that can be measured here, and for the others the reason why not."""
    names, missing = [], {}
    for name in peers.MAKERS:
        try:
            maker(work, 1)(name)
        except ModuleNotFoundError as error:
            missing[name] = f"not installed ({error.name}): benchmarks/README.md says how"
        else:
            names.append(name)
    return names, missing


# Measuring ------------------------------------------------------------------------------------------------------------


class Measured:
    """One way to translate, timed; what it found is kept for the quality."""

    def __init__(self, work: Work, name: str, beam: int, threads: int) -> None:
        self.work, self.beam = work, beam
        self.translate = maker(work, threads)(name)
        self.size = BLOCK
        self.found: dict[int, peers.Ids] = {}

    def seconds(self, places: list[int], clock: Callable[[], float]) -> float:
        """How long these sentences take at the present batch size."""
        sources = [self.work.sources[place] for place in places]
        started = clock()
        found = self.translate(sources, self.beam, self.size)
        spent = clock() - started
        self.found.update(zip(places, found, strict=True))
        return spent

    def tokens_by_second(self, places: list[int], clock: Callable[[], float]) -> float:
        """Output tokens, the end mark of each counted, by second."""
        spent = self.seconds(places, clock)
        return sum(len(self.found[place]) + 1 for place in places) / spent

    def choose_size(self, places: list[int], sizes: tuple[int, ...], clock: Callable[[], float]) -> dict[int, float]:
        """Take the batch size at which these sentences are translated fastest; the first of all warms up."""
        self.size = sizes[0]
        self.seconds(places[:BLOCK], clock)
        rates = {}
        for size in sizes:
            self.size = size
            rates[size] = _in_turn.digits(self.tokens_by_second(places, clock))
        self.size = max(rates, key=rates.get)
        return rates


def race(work: Work, names: list[str], rounds: int, clock: Callable[[], float], threads: int) -> list[dict]:
    """All in turn, in each round in another order: rates, ratios to ours, and what was found."""
    rows = []
    torch.set_num_threads(threads)
    for search, beam in BEAMS.items():
        measured = {name: Measured(work, name, beam, threads) for name in names}
        everything, few = work.places(0, 1), work.places(SLOW_SHARE // 2, SLOW_SHARE)
        tried = {
            name: one.choose_size(few, (32, 64), clock)
            if name in peers.SLOW
            else one.choose_size(everything, BATCH_SIZES, clock)
            for name, one in measured.items()
        }
        rates: dict[str, list[float]] = {name: [] for name in names}
        of_ours: dict[str, list[float]] = {name: [] for name in names}
        for number, order in enumerate(_in_turn.shuffled(names, rounds)):
            part = work.places(number, SLOW_SHARE)
            for name in order:
                places = part if name in peers.SLOW else everything
                rates[name].append(measured[name].tokens_by_second(places, clock))
            on_part = measured["ttutor"].tokens_by_second(part, clock)
            for name in names:
                of_ours[name].append(on_part if name in peers.SLOW else rates["ttutor"][-1])
        for name in names:
            sentences = [rate * len(work.sources) / n_tokens(measured, name, work) for rate in rates[name]]
            row = {"name": name, "search": search, "batch_size": measured[name].size, "tried": tried[name]}
            row["tokens_per_second"] = _in_turn.spread(rates[name])
            if name not in peers.SLOW:
                row["sentences_per_second"] = _in_turn.spread(sentences)
            row |= {"ttutor_to_it": _in_turn.ratio(of_ours[name], rates[name])} if name != "ttutor" else {}
            rows.append(row | quality_of(work, measured, name))
            print(json.dumps(rows[-1]), flush=True)
    torch.set_num_threads(1)
    return rows


def n_tokens(measured: dict[str, Measured], name: str, work: Work) -> float:
    """Output tokens of the whole test set, reckoned from those found."""
    found = measured[name].found
    return sum(len(ids) + 1 for ids in found.values()) * len(work.sources) / len(found)


def quality_of(work: Work, measured: dict[str, Measured], name: str) -> dict:
    """BLEU over what it translated, that of ours over the same, and the share that is ours word for word."""
    found, our = measured[name].found, measured["ttutor"].found
    places = sorted(found)
    return {
        "sentences_scored": len(places),
        "bleu": round(work.bleu(places, [found[place] for place in places]), 2),
        "bleu_of_ttutor": round(work.bleu(places, [our[place] for place in places]), 2),
        "same_as_ttutor": round(sum(found[place] == our[place] for place in places) / len(places), 3),
    }


def cpu(work: Work, rounds: int) -> dict:
    """One thread, process CPU time."""
    names, missing = present(work)
    return {"rounds": rounds, "rows": race(work, names, rounds, time.process_time, threads=1), "missing": missing}


def wall(work: Work, rounds: int) -> dict:
    """Two threads, wall clock; without those that keep no cache."""
    names, missing = present(work)
    names = [name for name in names if name not in peers.SLOW]
    return {"rounds": rounds, "rows": race(work, names, rounds, time.perf_counter, threads=2), "missing": missing}


def memory(work: Work, rounds: int, arguments: list[str]) -> dict:
    """Peak resident megabytes of a fresh process that translates, and of one that only loads."""
    names, missing = present(work)
    rows = []
    for name in ["nothing", *names]:
        command = [sys.executable, "-W", "ignore", str(Path(__file__)), "--peak-of", name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append({"name": name, "peak_megabytes": int(done.stdout.split()[-1]) // 1_000_000})
        print(json.dumps(rows[-1]), flush=True)
    return {"rows": rows, "missing": missing}


def print_peak(work: Work, name: str) -> None:
    """Translate 128 sentences with the beam, and print this process's peak resident size in bytes."""
    torch.set_num_threads(1)
    if name != "nothing":
        Measured(work, name, BEAMS["beam 5"], 1).seconds(work.places(0, SLOW_SHARE)[:128], time.process_time)
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    print(int(line.split()[1]) * 1024)


# The command ----------------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="folder of a trained model (default: the translator that ships)")
    parser.add_argument("--sentences", type=int, help="only the first so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sections", nargs="+", default=SECTIONS, choices=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="32 sentences, nothing written: to see whether it runs")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the sections and write the file."""
    options = arguments()
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    torch.set_num_threads(1)
    work = Work(options.run, 32 if options.quick else options.sentences)
    if options.peak_of:
        return print_peak(work, options.peak_of)
    given = [*(["--run", str(options.run)] if options.run else []), *(["--quick"] if options.quick else [])]
    some = f" --sentences {options.sentences}" if options.sentences else ""
    sections = {"cpu": cpu, "wall": wall, "memory": partial(memory, arguments=given)}
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not options.quick else {}
    for name in options.sections:
        print(f"# {name}", flush=True)
        started = time.monotonic()
        figures = sections[name](work, 1 if options.quick else options.rounds)
        found[name] = {
            "command": f"python benchmarks/decoding.py --sections {name} --rounds {options.rounds}{some}",
            "minutes": round((time.monotonic() - started) / 60, 1),
            "machine": _record.machine() | {"load_average": [round(load, 1) for load in os.getloadavg()]},
            "versions": versions(),
            "model": {"parameters": work.translator.model.n_parameters()} | work.translator.model.config.to_dict(),
            **figures,
        }
        if not options.quick:
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(f"written: {RESULTS.name}", flush=True)


def versions() -> dict[str, str]:
    """Of what was measured."""
    installed = {distribution.name.lower(): distribution.version for distribution in importlib.metadata.distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed}


if __name__ == "__main__":
    main()
