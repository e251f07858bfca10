"""The translator that ships with the package and runs in the book's pages: English to German, captions of photographs.

    ttutor fetch multi30k
    python experiments/page_translator.py                   # half an hour on two cores; goes on where it was cut off
    python experiments/page_translator.py --run FOLDER      # packs a training that is there, as it stands

Trains the recipe ``multi30k-tiny``, keeps the weights with the best validation loss, packs them in eight bits
(`ttutor.translation.packed`), and scores both forms on test_2016_flickr with a beam of 5. Beside the weights the file
holds the pieces of words, the mean of what every head gives over the first validation pairs, numbers by which unknown
words are known, and a card. No sentence of the corpus is stored.
"""

import argparse
from pathlib import Path

from experiments import _record
from ttutor.corpora.corpus import read_aligned
from ttutor.corpora.datasets import find_dataset
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.run_folder import RunFolder
from ttutor.translation.evaluation import evaluate
from ttutor.translation.packed import PackedTranslator, head_means, known_words
from ttutor.translation.training_command import TrainingRequest, run
from ttutor.translation.translator import Translator
from ttutor.widgets.translator import EXAMPLES, answer_to, sizes

PRESET, LANGUAGES, SEED, PATIENCE = "multi30k-tiny", "en-de", 0, 4
N_MEANS = 500
LARGEST = 3_500_000
TERMS = (
    "Trained on the captions of Multi30k (Elliott et al. 2016), which derive from Flickr30k (Young et al. 2014). Both "
    "are offered for research and teaching. The file NOTICE beside the weights says more."
)


def train(folder: Path) -> None:
    """Train, or go on; the weights of the best validation loss are kept."""
    changes = {"languages": LANGUAGES, "seed": SEED, "patience": PATIENCE}
    begun = RunFolder(folder).exists
    preset = {} if begun else {"preset": PRESET, "changes": changes}
    run(TrainingRequest(out=folder, resume=begun, **preset))  # type: ignore[arg-type]


def bleu(translator: Translator, pairs: list[tuple[str, str]]) -> float:
    """BLEU, cased, on detokenized text."""
    answers = translator.translate([source for source, _ in pairs])
    score = evaluate([one.text for one in answers], [target for _, target in pairs], language=LANGUAGES[-2:]).bleu
    return round(score, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="a training's folder, packed as it stands")
    options = parser.parse_args()
    started = _record.start()
    folder = options.run or Path("ttutor-runs/page-translator")
    if options.run is None:
        train(folder)
    training, validation, test = (
        read_aligned(*find_dataset("multi30k", LANGUAGES)[part]) for part in ("train", "validation", "test")
    )
    full, last = Translator.load(folder), list(RunFolder(folder).read_metrics())
    best = min(last, key=lambda record: record["validation_loss"])
    extras = head_means(full, validation[:N_MEANS]), known_words(source for source, _ in training)
    in_eight_bits = PackedTranslator.from_bytes(PackedTranslator(full, *extras).to_bytes()).translator
    scores = {"bleu_full_precision": bleu(full, test), "bleu_eight_bits": bleu(in_eight_bits, test)}
    steps = TrainingRecipe.preset(PRESET).steps
    summary = (
        f"Our own model: {full.model.n_parameters() / 1e6:.1f} million weights in eight bits each, trained on 29,000 "
        f"captions of photographs; {scores['bleu_eight_bits']:.1f} BLEU on captions that it never saw."
    )
    card = {
        "summary": summary,
        "data": "Multi30k, task 1: 29,000 English captions of photographs with their German translations.",
        "recipe": f"{PRESET}, seed {SEED}; the weights of step {best['step']:,} (of {steps:,}), chosen by validation.",
        "scores": "BLEU on test_2016_flickr, beam 5, cased: "
        f"{scores['bleu_full_precision']} in full precision, {scores['bleu_eight_bits']} in eight bits.",
        "limits": "It knows captions: people, animals and things that one sees in a photograph, in the third person. "
        "Anything else it turns into a caption. It repeats the prejudices of those who wrote the captions.",
        "terms": TERMS,
    }
    shipped = PackedTranslator.from_bytes(PackedTranslator(full, *extras, card).to_bytes())
    packed = shipped.to_bytes()
    results = {
        **scores,
        "card": card,
        "note": summary,
        "sizes": sizes(shipped),
        "bytes": len(packed),
        "steps": best["step"],
        "training_minutes": round(best["seconds"] / 60, 1),
        "validation_loss": round(best["validation_loss"], 4),
        "example": answer_to(shipped, text=EXAMPLES[0]),
    }
    print(_record.write("page_translator", results, seeds=[SEED], started=started, weights=packed, largest=LARGEST))
    print(card["scores"])


if __name__ == "__main__":
    main()
