"""What is each part of an encoder layer needed for? A small translator, word by word, with one part taken away.

Sentences of ten English words are translated word by word into German. Twelve nouns have two meanings, and the last
word of the sentence, a place, decides between them. The German article and the ending of the adjective follow from
the gender of the noun *as translated* and from its case. So a noun has to find the place, and the article has to find
the noun. Pairs of a noun and a place that are held out for the test never occur in training.

Five stacks of three layers, of width 32: whole pre-norm layers; and the same without attention, without skips,
without norms (the last norm included), or without feed-forward networks. Five learning rates, five seeds, 300 steps
of Adam with batches of 32, no warm-up; the rate falls in a straight line to zero, so that no run ends on a jump. All
rates and seeds of one stack are trained side by side. The best rate is the one with the lowest mean loss on unseen
sentences with pairs of the training; the test has the pairs held out. An attack: the same with every map as in a
fresh encoder layer of PyTorch's, at two rates, from three seeds. All losses are means per word, in nats; null stands
where a training broke off.

Stored beside them: the loss when each English word is translated by itself, by the counts of the training at its
position.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional

from experiments import _record
from ttutor.layers import FeedForward, LayerNorm
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import sinusoidal_encoding

SEEDS = [0, 1, 2, 3, 4]
RATES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
STARTS = {"full": (RATES, SEEDS), "torch": ([1e-2, 3e-2], SEEDS[:3])}
STEPS, BATCH, D_MODEL, N_HEADS = 300, 32, 32, 2
BOTH = ["attention", "feed-forward"]
ARMS = {
    "whole": {"parts": BOTH, "skips": True, "norms": True},
    "no attention": {"parts": BOTH[1:], "skips": True, "norms": True},
    "no skips": {"parts": BOTH, "skips": False, "norms": True},
    "no norms": {"parts": BOTH, "skips": True, "norms": False},
    "no feed-forward": {"parts": BOTH[:1], "skips": True, "norms": True},
}
N_LAYERS = 3

ADJECTIVES = {"old": "alt", "small": "klein", "young": "jung", "red": "rot"}
VERBS = {"saw": "sah", "found": "fand", "liked": "mochte"}
NOUNS = {"man": "Mann m", "girl": "Mädchen n", "woman": "Frau f", "dog": "Hund m", "cat": "Katze f", "child": "Kind n"}
IN_NATURE = {"bat": "Fledermaus f", "seal": "Robbe f", "plant": "Pflanze f", "bug": "Käfer m", "crane": "Kranich m"}
IN_NATURE |= {"spring": "Quelle f", "branch": "Ast m", "log": "Stamm m", "cricket": "Grille f", "bed": "Beet n"}
IN_NATURE |= {
    "bank": "Ufer n",
    "mole": "Maulwurf m",
    "cave": "Höhle f",
    "forest": "Wald m",
    "lake": "See m",
    "meadow": "Wiese f",
}
IN_TOWN = {"bat": "Schläger m", "seal": "Siegel n", "plant": "Werk n", "bug": "Wanze f", "crane": "Kran m"}
IN_TOWN |= {"spring": "Feder f", "branch": "Filiale f", "log": "Protokoll n", "cricket": "Kricket n", "bed": "Bett n"}
IN_TOWN |= {
    "bank": "Bank f",
    "mole": "Spion m",
    "office": "Büro n",
    "factory": "Fabrik f",
    "hotel": "Hotel n",
    "school": "Schule f",
}
TWO_MEANINGS = ["bat", "seal", "plant", "bug", "crane", "spring", "branch", "log", "cricket", "bed", "bank", "mole"]
PLACES = ["cave", "forest", "lake", "meadow", "office", "factory", "hotel", "school"]
ARTICLES = {"subject": {"m": "der", "f": "die", "n": "das"}, "object": {"m": "den", "f": "die", "n": "das"}}
ARTICLES |= {"place": {"m": "dem", "f": "der", "n": "dem"}}


def sentence(choice: list[int]) -> tuple[list[str], list[str], bool]:
    """A sentence, its translation, and whether it is held out, from seven numbers."""
    noun, place = TWO_MEANINGS[choice[0] % 12], PLACES[choice[1] % 8]
    nouns = [noun, list(NOUNS)[choice[2] % 6]][:: 1 if choice[3] % 2 else -1] + [place]
    verb = list(VERBS)[choice[4] % 3]
    adjectives = [list(ADJECTIVES)[choice[5] % 4], list(ADJECTIVES)[choice[6] % 4]]
    meanings = NOUNS | (IN_TOWN if place in IN_TOWN else IN_NATURE)
    german, gender = zip(*(meanings[word].split() for word in nouns), strict=True)
    article = [ARTICLES[case][of] for case, of in zip(ARTICLES, gender, strict=True)]
    ending = ["e", "en" if article[1] == "den" else "e"]
    endings = [ADJECTIVES[adjective] + end for adjective, end in zip(adjectives, ending, strict=True)]
    english = ["the", adjectives[0], nouns[0], verb, "the", adjectives[1], nouns[1], "in", "the", place]
    translated = [article[0], endings[0], german[0], VERBS[verb], article[1], endings[1], german[1], "in"]
    held_out = (TWO_MEANINGS.index(noun) + PLACES.index(place)) % 4 == 0
    return english, [*translated, article[2], german[2]], held_out


def encode(texts: list[list[str]]) -> Tensor:
    """Rows of ids: each word is its place in the sorted list of all words of these texts."""
    words = sorted({word for text in texts for word in text})
    return torch.tensor([[words.index(word) for word in text] for text in texts])


def sentences() -> tuple[Tensor, Tensor, Tensor]:
    """Ids of English and German words of 6,000 sentences, and which are held out."""
    choices = torch.randint(288, (6000, 7), generator=torch.Generator().manual_seed(0)).tolist()
    english, german, held_out = zip(*map(sentence, choices), strict=True)
    return encode(list(english)), encode(list(german)), torch.tensor(held_out)


class Layer(nn.Module):
    """The parts of a layer, each with or without skip and norm."""

    def __init__(self, parts: list[str], skips: bool, norms: bool) -> None:
        super().__init__()
        make = {
            "attention": lambda: MultiHeadAttention(D_MODEL, N_HEADS),
            "feed-forward": lambda: FeedForward(D_MODEL, 4 * D_MODEL),
        }
        self.parts = nn.ModuleList(make[part]() for part in parts)
        self.norms = nn.ModuleList(LayerNorm(D_MODEL) if norms else nn.Identity() for _ in parts)
        self.skips = skips

    def forward(self, stream: Tensor) -> Tensor:
        for part, norm in zip(self.parts, self.norms, strict=True):
            write = part(norm(stream))
            stream = stream + write if self.skips else write
        return stream


class Translator(nn.Module):
    """Embed, run the layers, score every German word at every position."""

    def __init__(self, n_english: int, n_german: int, parts: list[str], skips: bool, norms: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(n_english, D_MODEL)
        self.register_buffer("places", sinusoidal_encoding(10, D_MODEL))
        self.layers = nn.Sequential(*(Layer(parts, skips, norms) for _ in range(N_LAYERS)))
        self.last_norm = LayerNorm(D_MODEL) if norms else nn.Identity()
        self.to_logits = nn.Linear(D_MODEL, n_german)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.to_logits(self.last_norm(self.layers(self.words(token_ids) + self.places)))


@torch.no_grad()
def start_as_torch(model: Translator) -> None:
    """Give every map of the layers the weights of a fresh layer of PyTorch's."""
    for layer in model.layers:
        fresh = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, 4 * D_MODEL)
        for part in layer.parts:
            if isinstance(part, MultiHeadAttention):
                inward = fresh.self_attn.in_proj_weight.chunk(3)
                for linear, weight in zip([part.to_query, part.to_key, part.to_value], inward, strict=True):
                    linear.weight.copy_(weight)
                    linear.bias.zero_()
                pairs = [(part.to_output, fresh.self_attn.out_proj)]
            else:
                pairs = [(part.widen, fresh.linear1), (part.narrow, fresh.linear2)]
            for linear, source in pairs:
                linear.load_state_dict(source.state_dict())


def train(
    arm: dict[str, Any], start: str, english: Tensor, german: Tensor, rows: Tensor
) -> tuple[Tensor, list[nn.Module]]:
    """The loss of every step, ``steps rates seeds``, and the trained models."""
    models, (tried, seeds) = [], STARTS[start]
    for _ in tried:
        for seed in seeds:
            torch.manual_seed(seed)
            models.append(Translator(int(english.max()) + 1, int(german.max()) + 1, **arm))
            if start == "torch":
                start_as_torch(models[-1])
    weights, buffers = stack_module_state(models)
    rates = torch.tensor(tried).repeat_interleave(len(seeds))
    first = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    second = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def loss_of(one: dict[str, Tensor], constants: dict[str, Tensor], source: Tensor, target: Tensor) -> Tensor:
        logits = functional_call(models[0], (one, constants), (source,))
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    step_of_all = vmap(grad_and_value(loss_of))
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
    losses = []
    for step in range(1, STEPS + 1):
        batch = torch.stack([rows[torch.randint(len(rows), (BATCH,), generator=each)] for each in generators])
        batch = batch.repeat(len(tried), 1)
        gradients, loss = step_of_all(weights, buffers, english[batch], german[batch])
        losses.append(loss.detach())
        with torch.no_grad():  # Adam, with a rate for each slice
            for name, weight in weights.items():
                first[name].lerp_(gradients[name], 0.1)
                second[name].lerp_(gradients[name].square(), 0.001)
                size = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
                rate = (rates * (1 - step / STEPS)).view(-1, *[1] * (weight.ndim - 1))
                weight.sub_(rate * first[name] / (1 - 0.9**step) / size)
    with torch.no_grad():
        for number, model in enumerate(models):
            for name, parameter in model.named_parameters():
                parameter.copy_(weights[name][number])
    return torch.stack(losses).unflatten(1, (len(tried), len(seeds))), models


def losses_of(model: Translator, english: Tensor, german: Tensor) -> tuple[float, float]:
    """Mean loss of a word, and share of the sentences without a mistake."""
    with torch.no_grad():
        logits = model(english)
    loss = functional.cross_entropy(logits.flatten(0, 1), german.flatten()).item()
    return loss, (logits.argmax(dim=-1) == german).all(dim=-1).float().mean().item()


def by_itself(english: Tensor, german: Tensor) -> float:
    """The loss when each word at each position has its translations as often as these sentences do."""
    counts = torch.zeros(10, int(english.max()) + 1, int(german.max()) + 1)
    positions = torch.arange(10).expand_as(english)
    counts.index_put_((positions, english, german), torch.tensor(1.0), accumulate=True)
    shares = counts / counts.sum(dim=-1, keepdim=True).clamp(min=1)
    return -shares[positions, english, german].log().mean().item()


def rounded(losses: list[float]) -> list[float | None]:
    """Four digits; None where the training broke off and left no number."""
    return [round(loss, 4) if math.isfinite(loss) else None for loss in losses]


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    english, german, held_out = sentences()
    unseen = ~held_out & (torch.arange(len(held_out)) >= 5000)
    rows = (~held_out & (torch.arange(len(held_out)) < 5000)).nonzero()[:, 0]
    found = []
    for start, (rates, seeds) in STARTS.items():
        for name, arm in ARMS.items():
            losses, models = train(arm, start, english, german, rows)
            validation = [losses_of(model, english[unseen], german[unseen])[0] for model in models]
            test = [losses_of(model, english[held_out], german[held_out]) for model in models]
            by_rate = [
                {
                    "rate": rate,
                    "train": rounded(losses[-20:, number].mean(dim=0).tolist()),
                    "validation": rounded(validation[len(seeds) * number :][: len(seeds)]),
                    "test": rounded([loss for loss, _ in test[len(seeds) * number :][: len(seeds)]]),
                    "whole": [round(share, 3) for _, share in test[len(seeds) * number :][: len(seeds)]],
                }
                for number, rate in enumerate(rates)
            ]
            tried = [result for result in by_rate if None not in result["validation"]]
            best = min(tried, key=lambda result: sum(result["validation"]))["rate"]
            n_parameters = sum(parameter.numel() for parameter in models[0].layers.parameters())
            found.append({"start": start, "arm": name, "n_parameters": n_parameters, "best": best, "rates": by_rate})
            print(start, name, n_parameters, best, by_rate, flush=True)
    settings = {"steps": STEPS, "batch": BATCH, "d_model": D_MODEL, "n_heads": N_HEADS, "n_layers": N_LAYERS}
    alone = round(by_itself(english[rows], german[rows]), 3)
    results = {"settings": settings, "each word by itself": alone, "rows": found}
    _record.write("encoder_parts", results, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
