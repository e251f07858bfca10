"""Where is the animal: in which of the encoder's notes can it be read, and in which does the decoder read it?

The chapter's small translator, five seeds, trained as on the page. The memory has a row, a note, for each source token.
*Probe*: a linear map (ridge regression in closed form, and, as another analysis, the nearest mean) is fitted on the
training sentences to name the animal from one note, and tested on the 270 held-out ones: the note of the noun, of the
word before it, of the verb and of the end mark. The same probe reads an untrained encoder, and the embeddings below it.
*Hide*: the decoder may not look at the noun's note, or may look at nothing else. *Exchange*: the noun's note, or all
notes but the noun's, come from the same sentence with the next animal; every decoder layer then sees notes of the kind
it was trained on. *Learn*: the decoder alone is trained on, 160 steps more, with the noun's note hidden and the encoder
frozen: can a decoder read the animal from what the neighbours hold?

The translator that ships with the package is asked the same, with nouns and sentences of our own: 12 nouns in 64
sentences each, of which the probe is fitted on half. *Attacks*: three other seeds at twice the width, and three times
as many steps. About four minutes of one core.
"""

import itertools

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.corpora.animals import NOUNS, animal_sentences
from ttutor.inside import fit_probe
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, WordTokenizer
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.packed import load_default

SEEDS, ATTACKING = [0, 1, 2, 3, 4], [5, 6, 7]
STEPS, WARMUP, BATCH, RATE, N_HELD_OUT = 160, 30, 32, 0.004, 270
PAIRS = animal_sentences()
WORDS = WordTokenizer.train([text for pair in PAIRS for text in pair])
ANIMALS = [english for english, _, _ in NOUNS]
GERMAN = {english: german for english, _, german in NOUNS}
ARTICLE = {english: article for english, article, _ in NOUNS}

REAL_NOUNS = {
    "man": "Mann",
    "woman": "Frau",
    "boy": "Junge",
    "girl": "Mädchen",
    "dog": "Hund",
    "horse": "Pferd",
    "child": "Kind",
    "cat": "Katze",
    "cow": "Kuh",
    "bird": "Vogel",
    "goat": "Ziege",
    "duck": "Ente",
}
ADJECTIVES = ["old", "small", "young", "happy", "tired", "big", "wet", "brown"]
VERBS = [
    "is running on the beach",
    "is sitting on a bench",
    "is sleeping in the grass",
    "is standing in the snow",
    "is looking at the sea",
    "is playing in the water",
    "is jumping over a fence",
    "is walking through the city",
]


def padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD_ID)


def sources_of(texts: list[str]) -> Tensor:
    return padded([[*WORDS.encode(text), EOS_ID] for text in texts])


SOURCES = sources_of([english for english, _ in PAIRS])
TARGETS = padded([[BOS_ID, *WORDS.encode(german), EOS_ID] for _, german in PAIRS])


def split() -> tuple[Tensor, Tensor]:
    """Rows held out, the page's goat first among them, and rows to learn from."""
    goat = PAIRS.index(("yesterday the old goat ate", "gestern fraß die alte Ziege"))
    order = torch.randperm(len(PAIRS), generator=torch.Generator().manual_seed(0))
    order = torch.cat([torch.tensor([goat]), order[order != goat]])
    return order[:N_HELD_OUT], order[N_HELD_OUT:]


HELD_OUT, TRAIN_ROWS = split()
NOUN = torch.tensor([len(english.split()) - 2 for english, _ in PAIRS])
"""Of each sentence, the place of its noun: the last word but one."""
ANIMAL = torch.tensor([ANIMALS.index(english.split()[-2]) for english, _ in PAIRS])


def trained(model: Transformer, seed: int, steps: int = STEPS, *, hidden: bool = False) -> Transformer:
    """Train as the page does; with ``hidden`` the decoder alone, which may not look at the noun's note."""
    if hidden:
        torch.manual_seed(seed)  # otherwise the batches follow the first weights, as on the page
    learning = [*model.decoder.parameters()] if hidden else [*model.parameters()]
    optimizer = torch.optim.Adam(learning)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, step / WARMUP) * (1 - (step - 1) / steps)
        batch = TRAIN_ROWS[torch.randint(len(TRAIN_ROWS), (BATCH,))]
        source, target = SOURCES[batch], TARGETS[batch]
        readable = real(source)
        if hidden:
            readable = readable & ~one_hot(NOUN[batch], source)
        logits = logits_of(model, model.encode(source), readable, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
    return model


def real(source: Tensor) -> Tensor:
    return source != PAD_ID


def one_hot(place: Tensor, source: Tensor) -> Tensor:
    return torch.arange(source.shape[1]) == place[:, None]


def logits_of(model: Transformer, memory: Tensor, readable: Tensor, written: Tensor) -> Tensor:
    return model.project(model.decode(written, memory, readable[:, None, None]))


@torch.no_grad()
def write(model: Transformer, memory: Tensor, readable: Tensor, longest: int) -> list[list[int]]:
    """The tokens that the decoder writes from these notes, the most probable one each time."""
    written = torch.full((len(memory), 1), BOS_ID)
    for _ in range(longest):
        best = logits_of(model, memory, readable, written)[:, -1].argmax(dim=-1, keepdim=True)
        written = torch.cat([written, best], dim=1)
    rows = written[:, 1:].tolist()
    return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


def names(written: list[list[int]], wanted: list[str]) -> float:
    """The share of texts that hold the wanted word."""
    found = [word in WORDS.decode(row).split() for row, word in zip(written, wanted, strict=True)]
    return round(sum(found) / len(found), 4)


def share_right(written: list[list[int]]) -> float:
    """The share of held-out sentences that are written without a mistake."""
    right = [WORDS.decode(row) == PAIRS[at][1] for row, at in zip(written, HELD_OUT.tolist(), strict=True)]
    return round(sum(right) / len(right), 4)


def by_mean(hidden: Tensor, labels: Tensor, test: Tensor, n_labels: int) -> Tensor:
    centres = torch.stack([hidden[labels == label].mean(dim=0) for label in range(n_labels)])
    return torch.cdist(test, centres).argmin(dim=-1)


def probed(notes: Tensor, labels: Tensor, learn: Tensor, test: Tensor, n_labels: int) -> list[float]:
    """Shares of tested notes whose label is read rightly: by ridge regression, and by the nearest mean."""
    probe = fit_probe(notes[learn], labels[learn], n_labels)
    near = by_mean(notes[learn], labels[learn], notes[test], n_labels)
    return [
        round(probe.accuracy(notes[test], labels[test]), 4),
        round((near == labels[test]).double().mean().item(), 4),
    ]


PLACES = {"the noun": 0, "the word before": -1, "the verb": 1, "<eos>": 2}


def probes(memory: Tensor) -> dict:
    rows = torch.arange(len(memory))
    return {
        name: probed(memory[rows, NOUN + by], ANIMAL, TRAIN_ROWS, HELD_OUT, len(ANIMALS)) for name, by in PLACES.items()
    }


def other_animal(row: int) -> tuple[str, str]:
    """The same sentence with the next animal of the list, and that animal."""
    words = PAIRS[row][0].split()
    other = ANIMALS[(ANIMALS.index(words[-2]) + 1) % len(ANIMALS)]
    return " ".join([*words[:-2], other, words[-1]]), other


@torch.no_grad()
def read(model: Transformer) -> dict:
    """What the decoder writes with notes hidden or exchanged, in the held-out sentences."""
    source, others = SOURCES[HELD_OUT], [other_animal(row) for row in HELD_OUT.tolist()]
    memory, other_memory = model.encode(source), model.encode(sources_of([text for text, _ in others]))
    assert memory.shape == other_memory.shape
    at_noun, everything = one_hot(NOUN[HELD_OUT], source), real(source)
    own = [PAIRS[row][0].split()[-2] for row in HELD_OUT.tolist()]
    other = [animal for _, animal in others]
    exchanged = torch.where(at_noun[..., None], other_memory, memory)
    rest_exchanged = torch.where(at_noun[..., None], memory, other_memory)
    texts = {
        "whole": write(model, memory, everything, 7),
        "noun hidden": write(model, memory, everything & ~at_noun, 7),
        "noun alone": write(model, memory, at_noun, 7),
        "noun exchanged": write(model, exchanged, everything, 7),
        "rest exchanged": write(model, rest_exchanged, everything, 7),
    }
    return {
        name: {
            "own animal": names(written, [GERMAN[one] for one in own]),
            "other animal": names(written, [GERMAN[one] for one in other]),
            "own article": names(written, [ARTICLE[one] for one in own]),
            "other article": names(written, [ARTICLE[one] for one in other]),
            "sentence right": share_right(written),
        }
        for name, written in texts.items()
    }


def small(seed: int, d_model: int = 32, steps: int = STEPS) -> dict:
    """The chapter's translator, or a wider one, or one that was trained longer, asked everything."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=WORDS.vocab_size, d_model=d_model, n_heads=4, n_layers=2, d_ff=2 * d_model, dropout=0.0, max_len=16
    )
    model = Transformer(config)
    with torch.no_grad():
        untrained = probes(model.encode(SOURCES))
    trained(model, seed, steps)
    with torch.no_grad():
        below = probes(model.source_embeddings(SOURCES))
        result = {"probe": probes(model.encode(SOURCES)), "probe, untrained": untrained, "probe, embeddings": below}
    result["read"] = read(model)
    if (d_model, steps) == (32, STEPS):
        trained(model, seed, hidden=True)
        result["read, decoder trained on"] = read(model)
    print(seed, result, flush=True)
    return result


@torch.no_grad()
def real_translator() -> dict:
    """The same of the translator that ships with the package."""
    translator = load_default()
    model, tokenizer = translator.model, translator.tokenizer
    cases = list(itertools.product(range(len(REAL_NOUNS)), ADJECTIVES, VERBS))
    nouns = list(REAL_NOUNS)

    def source(noun: str, adjective: str, verb: str) -> list[int]:
        article = "An" if adjective[0] in "aeiou" else "A"
        return [*tokenizer.encode(translator.style.prepare(f"{article} {adjective} {noun} {verb}.")), EOS_ID]

    rows = [source(nouns[noun], adjective, verb) for noun, adjective, verb in cases]
    other_rows = [source(nouns[(noun + 1) % len(nouns)], adjective, verb) for noun, adjective, verb in cases]
    assert all(len(row) == len(other) for row, other in zip(rows, other_rows, strict=True))
    sources, others = padded(rows), padded(other_rows)
    assert ((sources != others).sum(dim=1) == 1).all()
    place = (sources != others).int().argmax(dim=1)
    memory, other_memory = model.encode(sources), model.encode(others)
    at_noun, everything = one_hot(place, sources), real(sources)
    labels = torch.tensor([noun for noun, _, _ in cases])
    learn = torch.tensor([(ADJECTIVES.index(a) + VERBS.index(v)) % 2 == 0 for _, a, v in cases])
    ends = everything.sum(dim=1)
    at = {
        "the noun": place,
        "the word before": place - 1,
        "is": place + 1,
        "the full stop": ends - 2,
        "<eos>": ends - 1,
    }
    each = torch.arange(len(rows))
    read_by_probe = {name: probed(memory[each, where], labels, learn, ~learn, len(nouns)) for name, where in at.items()}
    german = [REAL_NOUNS[nouns[noun]] for noun, _, _ in cases]
    other_german = [REAL_NOUNS[nouns[(noun + 1) % len(nouns)]] for noun, _, _ in cases]
    arms = {
        "whole": (memory, everything),
        "noun hidden": (memory, everything & ~at_noun),
        "noun exchanged": (torch.where(at_noun[..., None], other_memory, memory), everything),
        "rest exchanged": (torch.where(at_noun[..., None], memory, other_memory), everything),
    }
    found = {}
    for name, (notes, readable) in arms.items():
        texts = [tokenizer.decode(row) for row in write(model, notes, readable, 20)]
        found[name] = {
            which: round(sum(word in text for word, text in zip(words, texts, strict=True)) / len(texts), 4)
            for which, words in (("own noun", german), ("other noun", other_german))
        }
        found[name]["example"] = texts[cases.index((nouns.index("dog"), "old", VERBS[0]))]
    return {"nouns": len(nouns), "sentences": len(cases), "probe": read_by_probe, "read": found}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    shipped = real_translator()
    print(shipped, flush=True)
    torch.set_default_dtype(torch.float64)
    results = {"seeds": {str(seed): small(seed) for seed in SEEDS}, "shipped": shipped}
    results["attacks"] = {
        "twice the width": [small(seed, d_model=64) for seed in ATTACKING],
        "three times the steps": [small(seed, steps=3 * STEPS) for seed in ATTACKING],
    }
    _record.write("transformer_notes", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
