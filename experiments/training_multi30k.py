"""BLEU, loss and learning rate by minutes, of the small translator on real text (English-German Multi30k).

    TTUTOR_DATA=path/to/data python experiments/training_multi30k.py

One training run, one seed: the curve has no error bars, and says so. The same run's figures go to benchmarks/results as
well. Only numbers are stored, no sentence of the corpus.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import multi30k

import _record


def main() -> None:
    started, options = _record.start(), multi30k.arguments()
    result = multi30k.measure(options)
    multi30k.write(result, options.seed)
    _record.write("training_multi30k", result, seeds=[options.seed], started=started)


if __name__ == "__main__":
    main()
