"""What labels are worth to a model that filled gaps before: 32, 64 and 128 of them, in the language of chapter 9.

The task: is the verb of a sentence that of its animal, or another animal's? Model, training and test are those of the
chapter, function for function. A BERT fills gaps for 700 steps and is then tuned for 300, all of it or by a correction
of rank 4 (LoRA). A fresh one is trained on the labels alone, for 300 steps and for 1,000, as many as both together.
Each method has its rate chosen with 64 labels, on 300 sentences that are never labelled, with a seed used for nothing
else; then five seeds, each with labelled sentences of its own, on the 336 test sentences. `variants_mixed.py` has the
control that takes the pairs out of the pre-training.

Without any label the pre-trained models are asked in the form of their pre-training: hide the verb, and call the
sentence right if the model itself would put this verb there. And two tables, which know no network, and are told which
two words count: a sentence is right if its pair stood in a right labelled sentence; or, for a reader who knows that
each animal has one verb, half of those decided by chance whose animal never stood in one.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments import variants_objectives as language
from experiments.variants_readers import SIZES, VOCAB_SIZE
from ttutor import assets
from ttutor.variants.bert import BERT, BERTConfig, BERTForMaskedLM
from ttutor.variants.gpt import GPT, GPTConfig

SEEDS, SEED_OF_CHOICE = [0, 1, 2, 3, 4], 100
LABELS, RATES = [32, 64, 128], [3e-4, 1e-3, 3e-3, 1e-2]
CLS, MASK, ANIMAL, VERB = language.CLS, language.MASK, 2, 3
train, test = language.TRAIN, language.TEST
validation = train[900:]  # read in pre-training, never labelled
verb_ids = torch.tensor([language.INDEX[verb] for verb in language.CALLS.values()])
animal_ids = torch.tensor([language.INDEX[animal] for animal in language.CALLS])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def behind_class_token(sentences: Tensor) -> Tensor:
    return functional.pad(sentences, (1, 0), value=CLS)


def mask(token_ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    chosen = torch.rand(token_ids.shape, generator=generator) < 0.15
    fate = torch.rand(token_ids.shape, generator=generator)
    ordinary = torch.arange(8, VOCAB_SIZE)
    drawn = torch.randint(len(ordinary), token_ids.shape, generator=generator)
    inputs = token_ids.clone()
    inputs[chosen & (fate < 0.8)] = MASK
    replaced = chosen & (fate >= 0.8) & (fate < 0.9)
    inputs[replaced] = ordinary[drawn][replaced]
    return inputs, chosen


def pretrained(texts: Tensor, seed: int, steps: int = 700) -> nn.Module:
    torch.manual_seed(seed)
    model = fresh()
    generator = seeded(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        picks = torch.randint(len(texts), (32,), generator=generator)
        inputs, chosen = mask(texts[picks], generator)
        logits = model(behind_class_token(inputs))[:, 1:]
        loss = functional.cross_entropy(logits[chosen], texts[picks][chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def fresh() -> nn.Module:
    return BERTForMaskedLM(BERT(BERTConfig(**SIZES, max_len=12, dropout=0.0), pooler=False))


class Classifier(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.to_classes = nn.Linear(32, 2)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_classes(self.encoder(token_ids)[:, 0])


class LowRank(nn.Linear):
    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__(linear.in_features, linear.out_features)
        self.weight, self.bias = linear.weight, linear.bias
        self.A = nn.Parameter(torch.randn(rank, self.in_features) / self.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(self.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x @ self.A.T @ self.B.T


def add_low_rank(model: nn.Module, rank: int) -> None:
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, LowRank(child, rank))


def fine_tune(model: nn.Module, examples: Tensor, labels: Tensor, steps: int, rate: float) -> nn.Module:
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser, generator = torch.optim.Adam(trainable, lr=rate), seeded(0)
    for _ in range(steps):
        picks = torch.randint(len(labels), (32,), generator=generator)
        loss = functional.cross_entropy(model(examples[picks]), labels[picks])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def judged(sentences: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Every second sentence with another animal's verb; and which ones."""
    is_wrong = torch.arange(len(sentences)) % 2
    own = (sentences[:, [VERB]] == verb_ids).int().argmax(dim=1)
    shift = torch.randint(1, 8, own.shape, generator=seeded(seed))
    verbs = torch.where(is_wrong.bool(), verb_ids[(own + shift) % 8], sentences[:, VERB])
    sentences = sentences.clone()
    sentences[:, VERB] = verbs
    return behind_class_token(sentences), is_wrong


def share(said: Tensor, is_wrong: Tensor) -> float:
    return round((said.double().mean() if said.is_floating_point() else (said == is_wrong).double().mean()).item(), 3)


def share_right(model: nn.Module, examples: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return share(model(examples).argmax(dim=1), labels)


def labelled(n_labels: int, seed: int) -> tuple[Tensor, Tensor]:
    """Other sentences for each seed; of seed 0 the first ones, as in the chapter."""
    order = torch.arange(900) if seed == 0 else torch.randperm(900, generator=seeded(seed))
    return judged(train[order[:n_labels]], seed)


def run(method: str, bert: nn.Module | None, n_labels: int, rate: float, seed: int, on: tuple) -> float:
    torch.manual_seed(seed + 1)
    encoder = copy.deepcopy(bert).bert if bert else fresh().bert
    model = Classifier(encoder)
    if method == "LoRA":
        add_low_rank(model.encoder, rank=4)
    steps = 1000 if "1,000" in method else 300
    return share_right(fine_tune(model, *labelled(n_labels, seed), steps, rate), *on)


def by_gaps(model: nn.Module, on: tuple[Tensor, Tensor], *, is_bert: bool) -> float:
    """Share right without a label: is the verb the one that the model would put there?"""
    examples, is_wrong = on
    with torch.no_grad():
        if is_bert:
            hidden = examples.clone()
            hidden[:, VERB + 1] = MASK
            said = model(hidden)[:, VERB + 1].argmax(dim=1)
        else:
            said = model(examples[:, :-1])[:, VERB].argmax(dim=1)
    return share((said != examples[:, VERB + 1]).int(), is_wrong)


def stored_gpt(seed: int) -> nn.Module:
    model = GPT(GPTConfig(**SIZES, max_len=11, dropout=0.0))
    flat = assets.weights("variants_readers")[f"gpt.{seed}"]
    nn.utils.vector_to_parameters(flat.to(torch.float64), model.parameters())
    return model.eval()


def by_tables(n_labels: int, seed: int, on: tuple[Tensor, Tensor]) -> tuple[float, float]:
    examples, is_wrong = labelled(n_labels, seed)
    pairs = {tuple(row[[ANIMAL + 1, VERB + 1]].tolist()) for row in examples[is_wrong == 0]}
    known = {animal for animal, _ in pairs}
    rows = [tuple(row[[ANIMAL + 1, VERB + 1]].tolist()) for row in on[0]]
    seen = torch.tensor([pair not in pairs for pair in rows]).int()
    fair = torch.tensor([float((pair not in pairs) == bool(label)) if pair[0] in known else 0.5
                         for pair, label in zip(rows, on[1], strict=True)])  # fmt: skip
    return share(seen, on[1]), share(fair, on[1])


def tried_and_tested(method: str, models: dict[int, nn.Module] | None, seeds: list[int]) -> list[dict]:
    """A rate chosen with 64 labels and the seed of choice; then all numbers of labels."""
    on_validation, on_test = judged(validation, 2), judged(test, 1)

    def one(n_labels: int, rate: float, seed: int, on: tuple[Tensor, Tensor]) -> float:
        return run(method, models[seed] if models else None, n_labels, rate, seed, on)

    rates = RATES[1:] if method == "LoRA" else RATES[:3]
    tried = [one(64, rate, SEED_OF_CHOICE, on_validation) for rate in rates]
    rate, rows = max(zip(tried, rates, strict=True))[1], []
    for n_labels in LABELS:
        right = [one(n_labels, rate, seed, on_test) for seed in seeds]
        rows.append({"method": method, "labels": n_labels, "tried": tried, "rate": rate, "right": right})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started, on_test = _record.start(), judged(test, 1)
    berts = {seed: pretrained(train, seed) for seed in (*SEEDS, SEED_OF_CHOICE)}
    without = {
        "BERT": [by_gaps(berts[seed], on_test, is_bert=True) for seed in SEEDS],
        "GPT": [by_gaps(stored_gpt(seed), on_test, is_bert=False) for seed in range(3)],
    }
    tables = {n: [by_tables(n, seed, on_test) for seed in SEEDS] for n in LABELS}
    print(without, tables, flush=True)
    methods = {"tuned": berts, "LoRA": berts, "fresh": None, "fresh, 1,000 steps": None}
    results = {
        "rows": [row for method, models in methods.items() for row in tried_and_tested(method, models, SEEDS)],
        "without a label": without,
        "table of pairs": {n: [one for one, _ in found] for n, found in tables.items()},
        "table, one verb each": {n: [one for _, one in found] for n, found in tables.items()},
    }
    _record.write("variants_labels", results, seeds=[*SEEDS, SEED_OF_CHOICE], started=started)


if __name__ == "__main__":
    main()
