"""The exported translator as a web service: requests a second, and how long one takes, with 32 clients at once.

    TTUTOR_DATA=path/to/data python benchmarks/serving.py [--clients 32] [--requests 640]

The translator that ships is exported to each form and served by `_service.py`, the twenty lines that the book shows.
Each client sends one caption of test_2016_flickr after the other, beam 5, on one connection. Beside it the same
sentences in one call, which may be put into batches. One service at a time, in turn.

Writes benchmarks/results/serving.json: command, machine, versions, figures.
"""

import argparse
import gzip
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from experiments import _record
from ttutor.translation.export import export_translator, load_exported
from ttutor.translation.packed import load_default

BENCHMARKS = Path(__file__).resolve().parent
KINDS: list[tuple[str, str | None]] = [
    ("ctranslate2", None),
    ("ctranslate2", "int8"),
    ("onnx", None),
    ("onnx", "int8"),
    ("huggingface", None),
]
PORT = 8765
RESULTS = BENCHMARKS / "results" / "serving.json"


def wait_for(port: int, process: subprocess.Popen) -> None:
    """Return when the service answers."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with status {process.returncode}")
        try:
            ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60), "A man.")
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise RuntimeError("the service did not answer within a minute")


def ask(connection: http.client.HTTPConnection, sentence: str) -> float:
    """Seconds until the translation is there."""
    started = time.perf_counter()
    connection.request("POST", "/", sentence.encode())
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200 or not text:
        raise RuntimeError(f"status {answer.status} and {text!r} for {sentence!r}")
    return time.perf_counter() - started


def under_load(port: int, sentences: list[str], n_clients: int) -> dict[str, float]:
    """All sentences by so many clients, each with one connection."""

    def client(number: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        return [ask(connection, sentence) for sentence in sentences[number::n_clients]]

    started = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        seconds = sorted(second for part in pool.map(client, range(n_clients)) for second in part)
    return {
        "requests_per_second": round(len(seconds) / (time.perf_counter() - started), 1),
        "median_milliseconds": round(1000 * statistics.median(seconds)),
        "slowest_of_20_milliseconds": round(1000 * seconds[int(0.95 * len(seconds))]),
    }


def measure(folder: Path, sentences: list[str], n_clients: int) -> dict[str, float]:
    """One exported translator: alone, under load, and in one call."""
    command = [sys.executable, str(BENCHMARKS / "_service.py"), str(folder), str(PORT)]
    with subprocess.Popen(command) as process:
        try:
            wait_for(PORT, process)
            alone = under_load(PORT, sentences[:64], 1)["median_milliseconds"]
            loaded = under_load(PORT, sentences, n_clients)
        finally:
            process.terminate()
    translator = load_exported(folder)
    started = time.perf_counter()
    translator.translate(sentences)
    together = len(sentences) / (time.perf_counter() - started)
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return {
        "megabytes": round(megabytes, 1),
        "alone_milliseconds": alone,
        **loaded,
        "one_call_sentences_per_second": round(together, 1),
    }


def main() -> None:
    """Measure every form, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=640)
    arguments = parser.parse_args()
    path = Path(os.environ["TTUTOR_DATA"]) / "multi30k" / "test_2016_flickr.en.gz"
    sentences = gzip.decompress(path.read_bytes()).decode().splitlines()[: arguments.requests]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        for to, quantization in KINDS:
            folder = export_translator(
                load_default(), Path(place, f"{to}-{quantization}"), to, quantization=quantization
            )
            row = {"form": to, "quantization": quantization, **measure(folder, sentences, arguments.clients)}
            rows.append(row | {"load_average": round(os.getloadavg()[0], 1)})
            print(rows[-1], flush=True)
    result = {
        "command": _record.command_line("serving", sys.argv[1:]).replace("experiments/", "benchmarks/"),
        "machine": _record.machine(),
        "versions": _record.versions(),
        "clients": arguments.clients,
        "requests": len(sentences),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
