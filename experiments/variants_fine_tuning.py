"""Fine-tuning against training from scratch: are the words of an English sentence in order?

Sentences are those of the embedded corpus, of four words or more, which a grammar makes from some 230 words. In half of
them two neighbouring words are swapped. (A few swaps stay grammatical, so nobody is always right.) A small BERT reads
a sentence behind ``[CLS]``, and a linear map on it tells whether it was swapped. Pre-trained, it has filled gaps in
3,000 sentences without labels for 1,000 steps; then it has 200 steps on the labelled ones, some of these. From
scratch it has 1,200 steps on the labelled ones alone, as many as both together, from BERT's own start (a standard
deviation of 0.02) or from PyTorch's. Constant rates, Adam, gradients clipped to norm 1, batches of 32.

Each method has its rate chosen for each number of labels: the largest share right on validation sentences (of equal
ones the larger rate), by one run with a seed used for nothing else. Then three seeds, on test sentences. Beside them
stand two tables of neighbouring words, which know no network. One is counted on the labelled sentences (how much more
often a pair stood in right ones than in swapped ones), the other on all 3,000 without labels (is there a pair that
never occurred?).
"""

import copy
import math
from collections import Counter
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.heads import TransformerForSequenceClassification
from ttutor.variants.objectives import mask_tokens

SEEDS, SEED_OF_CHOICE = [0, 1, 2], 100
RATES, LABELS, BATCH = [3e-4, 1e-3, 3e-3, 1e-2], [100, 400, 1600], 32
SPECIAL = PAD, MASK, CLS = range(3)
STEPS_OF_GAPS, RATE_OF_GAPS = 1000, 3e-3
STEPS = {"pre-trained": 200, "from scratch, BERT's start": 1200, "from scratch, PyTorch's start": 1200}
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 128, "dropout": 0.0}

Sentences = list[list[str]]
Examples = tuple[Tensor, Tensor]


def long_enough(pairs: list[tuple[str, str]], n: int) -> Sentences:
    return [words for english, _ in pairs if len(words := english.split()) >= 4][:n]


def swapped(sentences: Sentences, seed: int) -> tuple[Sentences, Tensor]:
    """The sentences, every second one with two neighbours swapped; and which."""
    generator = torch.Generator().manual_seed(seed)
    result = []
    for number, words in enumerate(sentences):
        place = int(torch.randint(len(words) - 1, (), generator=generator))
        middle = words[place : place + 2]
        result.append([*words[:place], *(middle[::-1] if number % 2 else middle), *words[place + 2 :]])
    return result, torch.arange(len(sentences)) % 2


class Language:
    """The sentences, and their words as numbers."""

    def __init__(self) -> None:
        corpus = embedded_corpus(sizes={"train": 4000, "validation": 600, "test": 1200})
        self.train, self.validation, self.test = (
            long_enough(pairs, n) for pairs, n in ((corpus.train, 3000), (corpus.validation, 400), (corpus.test, 800))
        )
        words = sorted({word for part in (self.train, self.validation, self.test) for each in part for word in each})
        self.index = {word: number for number, word in enumerate(words, start=len(SPECIAL))}
        self.size = len(SPECIAL) + len(words)

    def ids(self, sentences: Sentences) -> Tensor:
        rows = [torch.tensor([CLS, *map(self.index.__getitem__, words)]) for words in sentences]
        rows.append(torch.zeros(13, dtype=torch.long))  # all batches are of one width
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)[:-1]

    def encoder(self, seed: int, method: str) -> BERT:
        torch.manual_seed(seed)
        encoder = BERT(BERTConfig(vocab_size=self.size, max_len=13, **SIZES), pooler=False)
        if method == "from scratch, PyTorch's start":
            for module in encoder.modules():
                if isinstance(module, (nn.Linear, nn.Embedding)):
                    module.reset_parameters()
        return encoder

    def pre_trained(self, seed: int) -> BERT:
        model, generator = BERTForMaskedLM(self.encoder(seed, "pre-trained")), torch.Generator().manual_seed(seed)
        texts = self.ids(self.train)

        def loss(model: nn.Module, picks: Tensor) -> Tensor:
            made = mask_tokens(
                texts[picks], mask_id=MASK, vocab_size=self.size, special_ids=SPECIAL, generator=generator
            )
            logits = model(made.inputs, made.inputs != PAD)
            return functional.cross_entropy(logits.flatten(0, 1), made.labels.flatten())

        batches = [torch.randint(len(texts), (BATCH,), generator=generator) for _ in range(STEPS_OF_GAPS)]
        fit(model, batches, loss, steps=STEPS_OF_GAPS, learning_rate=RATE_OF_GAPS)
        return model.bert

    def labelled(self, n_labels: int, seed: int) -> tuple[Sentences, Tensor]:
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))[:n_labels]
        return swapped([self.train[number] for number in order.tolist()], seed)

    def classifier(self, encoder: BERT, n_labels: int, steps: int, rate: float, seed: int) -> tuple[nn.Module, float]:
        """A trained classifier, and its share right on its own labelled sentences."""
        sentences, is_swapped = self.labelled(n_labels, seed)
        examples = self.ids(sentences), is_swapped
        torch.manual_seed(seed)
        model = TransformerForSequenceClassification(encoder, SIZES["d_model"], 2, dropout=0.0)

        def loss(model: nn.Module, picks: Tensor) -> Tensor:
            texts = examples[0][picks]
            return functional.cross_entropy(model(texts, texts != PAD), examples[1][picks])

        batches = [torch.randint(n_labels, (BATCH,)) for _ in range(steps)]
        fit(model, batches, loss, steps=steps, learning_rate=rate)
        return model, share_right(model, examples)


def share_right(model: nn.Module, examples: Examples) -> float:
    texts, is_swapped = examples
    with torch.no_grad():
        return round((model(texts, texts != PAD).argmax(dim=-1) == is_swapped).double().mean().item(), 3)


def neighbours(words: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(["", *words, ""]))


def by_labelled_pairs(labelled: tuple[Sentences, Tensor], new: tuple[Sentences, Tensor]) -> float:
    counts = Counter(), Counter()
    for words, label in zip(labelled[0], labelled[1].tolist(), strict=True):
        counts[label].update(neighbours(words))

    def score(words: list[str]) -> float:
        return sum(math.log((counts[1][pair] + 1) / (counts[0][pair] + 1)) for pair in neighbours(words))

    said = torch.tensor([score(words) > 0 for words in new[0]])
    return round((said == new[1].bool()).double().mean().item(), 3)


def by_unlabelled_pairs(sentences: Sentences, new: tuple[Sentences, Tensor]) -> float:
    known = {pair for words in sentences for pair in neighbours(words)}
    said = torch.tensor([not known.issuperset(neighbours(words)) for words in new[0]])
    return round((said == new[1].bool()).double().mean().item(), 3)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    language = Language()
    validation, test = swapped(language.validation, 1000), swapped(language.test, 1001)
    on_validation, on_test = ((language.ids(sentences), labels) for sentences, labels in (validation, test))
    trained = {seed: language.pre_trained(seed) for seed in (*SEEDS, SEED_OF_CHOICE)}
    rows = []
    for method, n_labels in ((method, n_labels) for method in STEPS for n_labels in LABELS):

        def one(rate: float, seed: int, method: str = method, n_labels: int = n_labels) -> tuple[nn.Module, float]:
            is_trained = method == "pre-trained"
            encoder = copy.deepcopy(trained[seed]) if is_trained else language.encoder(seed, method)
            return language.classifier(encoder, n_labels, STEPS[method], rate, seed)

        tried = [share_right(one(rate, SEED_OF_CHOICE)[0], on_validation) for rate in RATES]
        rate = max(zip(tried, RATES, strict=True))[1]
        models = [one(rate, seed) for seed in SEEDS]
        rows.append(
            {
                "method": method,
                "labels": n_labels,
                "tried": tried,
                "rate": rate,
                "labelled": [share for _, share in models],
                "right": [share_right(model, on_test) for model, _ in models],
            }
        )
        print(rows[-1], flush=True)
    labelled_pairs = [
        {"labels": n_labels, "right": [by_labelled_pairs(language.labelled(n_labels, seed), test) for seed in SEEDS]}
        for n_labels in LABELS
    ]
    unlabelled_pairs = by_unlabelled_pairs(language.train, test)
    print(labelled_pairs, unlabelled_pairs)
    settings = {"steps": STEPS, "rates": RATES, "steps_of_gaps": STEPS_OF_GAPS, "words": language.size - len(SPECIAL)}
    examples = [" ".join(words) for words in test[0][:6]]
    results = {
        "settings": settings, "rows": rows, "labelled_pairs": labelled_pairs, "unlabelled_pairs": unlabelled_pairs,
        "examples": examples,
    }  # fmt: skip
    _record.write(
        "variants_fine_tuning", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
