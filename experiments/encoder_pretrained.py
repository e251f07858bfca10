"""A published encoder, layer by layer: do its words become alike, and which of its parts does it need?

Opens MiniLM (`ttutor fetch minilm`; six post-norm layers, published as all-MiniLM-L6-v2). First, 86 sentences are
read one by one, and the spread of the words' vectors is measured after each layer: their distance from their common
mean, relative to their length. The controls: each word sees only itself; and five models of the same shape that were
never trained, with BERT's first weights (deviation 0.02), and with this package's.

Then it searches: 41 questions, each in other words than the entry of the book's glossary that answers it, among the
first sentences of all entries. Counted is how often the entry that is meant is among the first five. And it tells two
senses of a word apart (*bank*, *bat*, *spring*, 62 sentences): counted is how often the last vector of the word is
nearer to the mean of the others of its own sense. Both are counted with a part taken away: what a sublayer writes is
replaced by its mean over the sentences read first, in all layers, or by zero; or the skips or the norms are taken
out.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from experiments import _record
from experiments.attention_pretrained import SENSES, by_centroid, vectors
from experiments.multihead_pretrained import CHOOSING, TESTED
from experiments.pretrained_search import FURTHER, GLOSSARY, ON_THE_PAGE, entries_of
from ttutor.inside import ablate, capture, patch
from ttutor.pretrained import Pretrained, load, sentence_vectors

SEEDS = [0, 1, 2, 3, 4]
BANK = [sentence for sentences in SENSES["bank"] for sentence in sentences]
READ = [*TESTED, *CHOOSING, *BANK, *SENSES["bat"][0], *SENSES["bat"][1], *SENSES["spring"][0][:4]]
SHOWN = "How good is a translation, as a number?"
PARTS = ["self_attention", "feed_forward"]


def spreads(encoder: Pretrained, *, alone: bool = False, words_only: bool = False) -> Tensor:
    """The spread after the embeddings and after each layer: sentences layers."""
    found = []
    for sentence in READ:
        ids = encoder.ids(sentence)
        only_itself = torch.eye(ids.shape[1]).bool()
        sites = [f"encoder.layers.{number}.self_attention.weights" for number in range(encoder.model.config.n_layers)]
        edits = dict.fromkeys(sites, lambda weights, eye=only_itself: eye.to(weights.dtype).expand_as(weights))
        names = ["encoder.layers.0.input", "encoder.layers.*"]
        with patch(encoder.model, edits if alone else {}), capture(encoder.model, *names) as seen:
            encoder.model(ids)
        hidden = seen.stack()[:, 0]
        hidden = hidden[:, 1:-1] if words_only else hidden
        away = hidden - hidden.mean(dim=1, keepdim=True)
        found.append(away.norm(dim=(1, 2)) / hidden.norm(dim=(1, 2)))
    return torch.stack(found)


@contextmanager
def untrained(encoder: Pretrained, seed: int, deviation: float | None) -> Iterator[None]:
    """The same model with first weights: normal with this deviation, or this package's."""
    trained = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    torch.manual_seed(seed)
    fresh = type(encoder.model)(encoder.model.config)
    for name, parameter in fresh.named_parameters():
        if deviation is not None and parameter.ndim > 1:
            nn.init.normal_(parameter, std=deviation)
        elif deviation is not None and not name.endswith("gain"):
            nn.init.zeros_(parameter)
    encoder.model.load_state_dict(fresh.state_dict())
    yield
    encoder.model.load_state_dict(trained)


class Around(nn.Module):
    """What stands around a sublayer of a post-norm layer, without its skip or without its norm."""

    def __init__(self, norm: nn.Module, without: str) -> None:
        super().__init__()
        self.norm, self.without = norm, without

    def forward(self, hidden: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(sublayer(hidden)) if self.without == "skips" else hidden + sublayer(hidden)


@contextmanager
def without(encoder: Pretrained, what: str) -> Iterator[None]:
    """The model without its skips or its norms."""
    names = ("around_attention", "around_feed_forward")
    usual = [(layer, name, getattr(layer, name)) for layer in encoder.model.encoder.layers for name in names]
    for layer, name, module in usual:
        setattr(layer, name, Around(module.norm, what))
    yield
    for layer, name, module in usual:
        setattr(layer, name, module)


def means(encoder: Pretrained) -> dict[str, Tensor]:
    """What each sublayer writes on average, over all tokens of the sentences."""
    sums: dict[str, list[Tensor]] = {}
    for sentence in READ:
        with capture(encoder.model, *(f"encoder.layers.*.{part}" for part in PARTS)) as seen:
            encoder.model(encoder.ids(sentence))
        for name, value in seen.items():
            sums.setdefault(name, []).append(value[0])
    return {name: torch.cat(values).mean(dim=0) for name, values in sums.items()}


def found(encoder: Pretrained, entries: dict[str, str]) -> dict:
    """How the model searches and tells senses apart, as it is now."""
    questions = {**ON_THE_PAGE, **FURTHER}
    asked = sentence_vectors(encoder, list(questions))
    table = asked @ sentence_vectors(encoder, [f"{name}: {said.split('. ')[0]}" for name, said in entries.items()]).T
    names, places = list(entries), []
    for row, wanted in zip(table, questions.values(), strict=True):
        places.append(int((row > row[names.index(wanted)]).sum()) + 1)
    right = 0
    for word, (first, second) in SENSES.items():
        points = vectors(encoder, word, [*first, *second], alone=False)[-1]
        right += sum(by_centroid(points, torch.arange(len(points)) < len(first)))
    best = table[list(questions).index(SHOWN)].topk(3).indices.tolist()
    return {
        "among five": sum(place <= 5 for place in places),
        "first": sum(place == 1 for place in places),
        "median place": sorted(places)[len(places) // 2],
        "senses": right,
        "shown": [names[number] for number in best],
    }


def arms(encoder: Pretrained) -> dict:
    """The model whole, and with parts taken away."""
    entries, usual = entries_of(GLOSSARY.read_text(encoding="utf-8")), means(encoder)
    n_layers, results = encoder.model.config.n_layers, {"whole": found(encoder, entries)}
    groups = {f"without {part}": [f"encoder.layers.{n}.{part}" for n in range(n_layers)] for part in PARTS}
    for name, sites in groups.items():
        with ExitStack() as stack:
            for site in sites:
                stack.enter_context(ablate(encoder.model, site, by=usual[site]))
            results[name] = found(encoder, entries)
        print(name, results[name], flush=True)
    for part in PARTS:
        with ablate(encoder.model, f"encoder.layers.*.{part}"):
            results[f"without {part}, zero"] = found(encoder, entries)
    for what in ("skips", "norms"):
        with without(encoder, what):
            results[f"without {what}"] = found(encoder, entries)
        print(what, results[f"without {what}"], flush=True)
    with untrained(encoder, 0, 0.02):
        results["untrained"] = found(encoder, entries)
    return {"entries": len(entries), "questions": len(ON_THE_PAGE) + len(FURTHER), "arms": results}


def by_layer(values: Tensor) -> list[list[float]]:
    """Lowest, median and highest of the sentences, after each layer."""
    ends = [(layer.min(), layer.median(), layer.max()) for layer in values.unbind(dim=1)]
    return [[float(f"{value:.2g}") for value in three] for three in ends]


@torch.inference_mode()
def main() -> None:
    """Read, then search with parts taken away."""
    torch.set_num_threads(1)
    started, encoder = _record.start(), load("minilm")
    spread = {
        "trained": by_layer(spreads(encoder)),
        "trained, each word alone": by_layer(spreads(encoder, alone=True)),
        "trained, without the two marks": by_layer(spreads(encoder, words_only=True)),
    }
    for name, deviation in (("untrained, as BERT", 0.02), ("untrained, as this package", None)):
        many = []
        for seed in SEEDS:
            with untrained(encoder, seed, deviation):
                many.append(spreads(encoder))
        spread[name] = by_layer(torch.cat(many))
    print(spread, flush=True)
    results = {"sentences": len(READ), "spread": spread, "shown": SHOWN, **arms(encoder)}
    _record.write("encoder_pretrained", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
