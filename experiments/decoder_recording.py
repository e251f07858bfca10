"""Beam search and greedy search token by token, for the explorer of decoding.

The embedded recipe is trained once and copied on its way. With each copy all validation sentences are translated by
both searches; where they differ is counted, and a few sentences are recorded step by step:

- after all steps, one on which they differ, or, if there is none, one on which they agree;
- earlier, where they differ, one that only beam search gets right, and one on which greedy search stops too soon: its
  sentence is the more probable one, and only the length penalty ranks it second;
- earlier still, one on which beam search is wrong too.

About a minute on two idle cores. Each sentence is stored as one line of JSON text, which keeps the file small.
"""

import json

import torch

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.translation.translator import LENGTH_PENALTY, Translation, Translator
from ttutor.widgets.decoding import Names, record_decoding, speaker_of

SEED = 0
BEAM = 3
SHARES = (0.2, 0.4, 1.0)
LONGEST = 24
"""Steps of a recorded search, at most."""
Pair = tuple[str, str]
"""A sentence and its translation."""


def trained_copies() -> tuple[dict[int, Translator], list[Pair]]:
    """A translator after each share of the training, by its number of steps, and the validation sentences."""
    corpus, recipe = embedded_corpus(), TrainingRecipe.preset("embedded").replace(seed=SEED)
    steps = [round(share * recipe.steps) for share in SHARES]
    copies: dict[int, Translator] = {}

    def keep(trainer: Trainer) -> None:
        if trainer.position.step in steps:
            copies[trainer.position.step] = Translator.of(trainer)

    Trainer(corpus, recipe, precision="fp32").run(on_validation=keep)
    return copies, corpus.validation


def differing(translator: Translator, pairs: list[Pair]) -> list[tuple[Pair, Translation, Translation]]:
    """Sentences that greedy search and beam search translate differently, with both translations."""
    sources = [source for source, _ in pairs]
    both = [translator.translate(sources, beam_size=width) for width in (1, BEAM)]
    return [(pair, greedy, beam) for pair, greedy, beam in zip(pairs, *both, strict=True) if greedy.text != beam.text]


def chosen(found: dict[int, list], pairs: list[Pair]) -> list[tuple[int, Pair]]:
    """Which sentence of which copy to record, where there is one that shows the case."""
    early, middle, last = found
    cases = [
        (middle, lambda right, greedy, beam: beam == right and len(greedy) > 0.8 * len(beam)),
        (middle, lambda right, greedy, beam: beam == right and beam.startswith(f"{greedy} ")),
        (early, lambda right, greedy, beam: right not in (beam, greedy) and len(right.split()) < 6),
    ]
    picked = []
    for step, shows in cases:
        shown = [pair for pair, greedy, beam in found[step] if shows(pair[1], greedy.text, beam.text)]
        picked += [(step, pair) for pair in shown[:1]]
    same = [pair for pair in pairs if 5 <= len(pair[0].split()) <= 7]
    return [(last, found[last][0][0] if found[last] else same[0]), *picked]


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    copies, pairs = trained_copies()
    found = {step: differing(translator, pairs) for step, translator in copies.items()}
    last = max(copies)
    names = Names(speaker_of(copies[last]))
    sentences = []
    for step, (source, reference) in chosen(found, pairs):
        trace = record_decoding(speaker_of(copies[step]), source, names, beam_size=BEAM, max_new_tokens=LONGEST)
        one = {"reference": reference, "model": f"after {step} of {last} steps", **trace}
        sentences.append(json.dumps(one, ensure_ascii=False, separators=(",", ":")))
    counts = ", ".join(f"{len(ones)} after {step}" for step, ones in found.items())
    note = (
        f"Recorded by python experiments/decoder_recording.py: our small English–French translator, at its end and "
        f"on its way there. Of {len(pairs)} validation sentences, greedy search and a beam of {BEAM} translate so many "
        f"differently: {counts} training steps."
    )
    results = {
        "beam_size": BEAM,
        "alpha": LENGTH_PENALTY,
        "note": note,
        "n_sentences": len(pairs),
        "n_differing": {str(step): len(ones) for step, ones in found.items()},
        "tokens": names.texts,
        "sentences": sentences,
    }
    _record.write("decoder_recording", results, seeds=[SEED], started=started, embedded_corpus=True)


if __name__ == "__main__":
    main()
