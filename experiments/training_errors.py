"""What the translator of real text gets wrong, and where it looked: error counts, alignments, samples.

    ttutor fetch multi30k
    python benchmarks/multi30k.py --preset multi30k-tiny --seed 0 --out FOLDER      # the run that is looked at
    python benchmarks/multi30k.py --preset multi30k-short --seed 0 --out SHORTER    # the run that it is compared with
    ttutor train --preset embedded --seed 0 --out FOLDER0                           # and seeds 1 and 2
    python experiments/training_errors.py FOLDER SHORTER FOLDER0 FOLDER1 FOLDER2

Nothing is trained here. The captions of Multi30k's test set are translated as in the benchmark (beam 5), and counted:
quality by length and by the rarity of the rarest word, and whether what the source names (a colour, a number, a man or
a woman) is named in the translation, with the human reference counted by the same rule. For these words the alignment
is checked, too: does the German word look at the English one? Only numbers are stored of the corpus; the samples are
sentences of our own. With the captions of the shorter run the BLEU of both is compared, by drawing captions anew for
both at once (Koehn 2004). Of the three runs on the embedded corpus the exact translations of its test set are counted.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus, read_aligned
from ttutor.corpora.datasets import find_dataset
from ttutor.training.run_folder import RunFolder
from ttutor.translation.answer import Translation
from ttutor.translation.evaluation import evaluate, exact_match, sentence_chrf
from ttutor.translation.translator import Translator

NAMED = {
    "colour": {
        "red": "rot", "blue": "blau", "green": "grün", "yellow": "gelb", "black": "schwarz", "white": "weiß",
        "brown": "braun", "orange": "orange", "pink": "rosa", "gray": "grau", "purple": "lila",
    },
    "number": {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"},
    "person": {"man": "mann", "woman": "frau", "boy": "junge", "girl": "mädchen", "men": "männer", "women": "frauen"},
}  # fmt: skip
SAMPLES = [
    "A dog runs on the grass.",
    "Two women in red jackets are talking to each other.",
    "A man who is wearing a hat is not smiling.",
    "A small girl gives her mother a yellow flower.",
    "The minister rejected the proposal because it was too expensive.",
]
LENGTHS = [(1, 8), (9, 11), (12, 14), (15, 99)]
RARITY = [(0, 0), (1, 9), (10, 99), (100, 10**9)]


def words_of(text: str) -> list[str]:
    """Lower-cased words without punctuation at their ends."""
    return [word for word in (part.strip(".,;:!?\"'()").lower() for part in text.split()) if word]


def named(text: str, group: dict[str, str], place: int) -> set[str]:
    """Which entries of a group a text names, in English (0: the word itself) or in German (1: a word beginning so)."""
    words = words_of(text)
    if place == 0:
        return {english for english in group if english in words}
    return {english for english, german in group.items() if any(word.startswith(german) for word in words)}


def by_group(values: list[float], keys: list[int], groups: list[tuple[int, int]]) -> list[dict]:
    """Mean of the values whose key lies in a group, its standard error, and how many there are."""
    found = []
    for low, high in groups:
        chosen = np.array([value for value, key in zip(values, keys, strict=True) if low <= key <= high])
        error = chosen.std(ddof=1) / len(chosen) ** 0.5
        row = {"from": low, "to": high, "n": len(chosen), "mean": round(chosen.mean(), 2), "error": round(error, 2)}
        found.append(row)
    return found


def what_is_named(pairs: list[tuple[str, str]], answers: list[Translation]) -> dict:
    """Of each group: how often the source names something, and how often translation and reference name it, too."""
    found = {}
    for name, group in NAMED.items():
        counts = Counter()
        for (source, reference), answer in zip(pairs, answers, strict=True):
            wanted = named(source, group, 0)
            counts["source"] += len(wanted)
            counts["reference"] += len(wanted & named(reference, group, 1))
            counts["translation"] += len(wanted & named(answer.text, group, 1))
        found[name] = dict(counts)
    return found


def alignment(answers: list[Translation]) -> dict:
    """How often a German word of the lists looks most at its English word, where each stands there once."""
    n_layers = len(answers[0].attention.weights)
    right, n, chance = Counter(), 0, 0.0
    for answer in answers:
        looked = answer.attention
        sources = [word.text.lower() for word in looked.source_words]
        targets = [word.text.lower() for word in looked.target_words]
        for group in NAMED.values():
            for english, german in group.items():
                ours = [place for place, word in enumerate(targets) if word.startswith(german)]
                theirs = [place for place, word in enumerate(sources) if word == english]
                if len(ours) != 1 or len(theirs) != 1:
                    continue
                n, chance = n + 1, chance + 1 / len(sources)
                for layer in (None, *range(n_layers)):
                    row = looked.by_word(layer)[ours[0]]
                    right["mean" if layer is None else str(layer)] += int(row.argmax()) == theirs[0]
    return {"n": n, "chance": round(chance / n, 4), "right": {name: right[name] for name in sorted(right)}}


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Spearman's, without ties."""
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def compared(shorter: list[str], longer: list[str], references: list[str]) -> dict:
    """By how much BLEU the second translations are ahead, and how likely chance alone would put them so far apart."""
    systems = [("shorter", shorter), ("longer", longer)]
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, [references], test_type="bs", n_samples=1000)()
    first, second = scores["BLEU"]
    return {"difference": round(second.score - first.score, 2), "p": round(float(second.p_value), 3)}


def real_text(folder: Path, shorter: Path) -> dict:
    """All that is counted of the run on Multi30k."""
    translator = Translator.load(folder)
    files = find_dataset("multi30k", "en-de", None)
    pairs = read_aligned(*files["test"])
    occurrences = Counter(word for source, _ in read_aligned(*files["train"]) for word in set(words_of(source)))
    answers = translator.translate([source for source, _ in pairs], beam_size=5, attention=True)
    texts, references = [answer.text for answer in answers], [reference for _, reference in pairs]
    of_shorter = Translator.load(shorter).translate([source for source, _ in pairs], beam_size=5)
    bootstrap = BLEU().corpus_score(texts, [references], n_bootstrap=1000)
    chrf = sentence_chrf(texts, references)
    repeated = sum(any(a == b for a, b in zip(words, words[1:], strict=False)) for words in map(words_of, texts))
    samples = translator.translate(SAMPLES, beam_size=5, attention=True)
    return {
        "bleu": round(evaluate(texts, references, language="de").bleu, 2),
        "bleu_interval_half": round(bootstrap._ci, 2),
        "beside_the_shorter": compared([answer.text for answer in of_shorter], texts, references),
        "exact": exact_match(texts, references),
        "mean_chrf": round(float(np.mean(chrf)), 2),
        "chrf_by_length": by_group(chrf, [len(words_of(source)) for source, _ in pairs], LENGTHS),
        "chrf_by_rarity": by_group(
            chrf, [min(occurrences[word] for word in words_of(source)) for source, _ in pairs], RARITY
        ),
        "words_written": sum(len(words_of(text)) for text in texts),
        "words_of_references": sum(len(words_of(reference)) for reference in references),
        "a_word_twice_in_a_row": {
            "translation": repeated,
            "reference": sum(any(a == b for a, b in zip(w, w[1:], strict=False)) for w in map(words_of, references)),
        },
        "score_and_chrf": round(rank_correlation([answer.score for answer in answers], chrf), 3),
        "named": what_is_named(pairs, answers),
        "alignment": alignment(answers),
        "samples": [sample_of(sample, occurrences) for sample in samples],
    }


def sample_of(answer: Translation, occurrences: Counter) -> dict:
    """A sentence of our own, its translation, the mean attention between their words, and its words in the training."""
    looked = answer.attention
    return {
        "source": answer.source,
        "translation": answer.text,
        "score": round(answer.score, 3),
        "source_words": [word.text for word in looked.source_words],
        "target_words": [word.text for word in looked.target_words],
        "weights": [[round(weight, 3) for weight in row] for row in looked.by_word().tolist()],
        "captions_with": {word: occurrences[word] for word in words_of(answer.source)},
    }


def of_the_grammar(folder: Path) -> dict:
    """How many test sentences of the embedded corpus a run translates exactly."""
    run, pairs = RunFolder(folder), embedded_corpus().test
    answers = Translator.load(folder).translate([source for source, _ in pairs], beam_size=1, attention=False)
    hits = sum(answer.text == reference for answer, (_, reference) in zip(answers, pairs, strict=True))
    recipe = run.recipe()
    return {"seed": recipe.seed, "steps": recipe.steps, "optimizer": recipe.optimizer, "exact": hits, "of": len(pairs)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    if len(sys.argv) < 4:
        sys.exit(
            "training_errors.py needs run folders, two of Multi30k and then those of the grammar; see its docstring"
        )
    real, shorter, *grammar = map(Path, sys.argv[1:])
    results = {"multi30k": real_text(real, shorter), "embedded": [of_the_grammar(folder) for folder in grammar]}
    seeds = [run["seed"] for run in results["embedded"]]
    _record.write("training_errors", results, seeds=seeds, started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
