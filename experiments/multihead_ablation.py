"""What do the heads of our translator do, and what is lost without each of them? Three seeds.

Trains the preset ``embedded`` (two layers of four heads in each of its three attentions: the encoder's, the decoder's,
and from decoder to encoder) and measures on held-out sentences, in nats per target token: where each head looks, the
loss without each head, without more and more of them, and with one head left in a layer; and how much the subspaces of
a layer's heads have in common, before and after training. Each seed runs in a process of its own.
"""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import combinations
from multiprocessing import get_context

import torch
from einops import rearrange, reduce
from torch import Tensor

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.inside import ablate, attention_entropy, capture, first_token_score, induction_score, weight_on
from ttutor.inside import previous_token_score as before_score
from ttutor.multihead import MultiHeadAttention
from ttutor.tokenization import PAD_ID
from ttutor.training.batching import Batch
from ttutor.training.loss import batch_loss
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.transformer import Transformer
from ttutor.translation.translator import Translator
from ttutor.widgets.heads import label_of

SEEDS = [0, 1, 2]
N_BATCHES = 3
N_ORDERS = 3
Place = tuple[str, int]
Head = tuple[str, int, int]


def layers_of(model: Transformer) -> dict[tuple[str, int], MultiHeadAttention]:
    """Every attention layer by its part and its number."""
    found = {}
    for number, layer in enumerate(model.encoder.layers):
        found["encoder", number] = layer.self_attention
    for name in ("self_attention", "cross_attention"):
        for number, layer in enumerate(model.decoder.layers):
            found["decoder" if name == "self_attention" else "cross", number] = getattr(layer, name)
    return found


def site(part: str, layer: int) -> str:
    """The name of an attention layer."""
    stack, module = {
        "encoder": ("encoder", "self_attention"),
        "decoder": ("decoder", "self_attention"),
        "cross": ("decoder", "cross_attention"),
    }[part]
    return f"{stack}.layers.{layer}.{module}"


def heads_of(model: Transformer) -> list[Head]:
    """All heads of a model: part, layer, number."""
    return [(*place, head) for place, layer in layers_of(model).items() for head in range(layer.n_heads)]


@contextmanager
def without(
    model: Transformer, heads: list[Head], means: dict[tuple[str, int], Tensor] | None = None
) -> Iterator[None]:
    """The model without some heads: their context is zero, or what it is on the average."""
    with ExitStack() as stack:
        for place in sorted({head[:2] for head in heads}):
            numbers = [head for *where, head in heads if tuple(where) == place]
            by = "zero" if means is None else means[place]
            stack.enter_context(ablate(model, f"{site(*place)}.context", heads=numbers, by=by))
        yield


@torch.no_grad()
def loss_on(model: Transformer, batches: list[Batch]) -> float:
    """Mean cross-entropy of a target token, in nats."""
    total = sum(batch_loss(model, batch, 0.0).item() * batch.n_target_tokens for batch in batches)
    return total / sum(batch.n_target_tokens for batch in batches)


@torch.no_grad()
def mean_contexts(model: Transformer, batches: list[Batch]) -> dict[tuple[str, int], Tensor]:
    """Of each attention layer the mean of each head's context over all real queries."""
    sums: dict[tuple[str, int], Tensor] = {}
    counts: dict[tuple[str, int], int] = {}
    for batch in batches:
        with capture(model, "**.context") as seen:
            batch_loss(model, batch, 0.0)
        for place in layers_of(model):
            is_real = (batch.source if place[0] == "encoder" else batch.target_in) != PAD_ID
            real = rearrange(seen[f"{site(*place)}.context"], "batch heads tokens d_head -> batch tokens heads d_head")
            real = real[is_real]
            sums[place] = sums.get(place, 0) + reduce(real, "tokens heads d_head -> 1 heads 1 d_head", "sum")
            counts[place] = counts.get(place, 0) + len(real)
    return {place: total / counts[place] for place, total in sums.items()}


def rules(part: str, batch: Batch) -> dict[str, Callable[[Tensor], Tensor]]:
    """What a head may look at, each with the function that scores it on weights of one layer."""
    queries = (batch.source if part == "encoder" else batch.target_in) != PAD_ID
    keys = queries if part == "decoder" else batch.source != PAD_ID
    n_keys = keys.sum(dim=1, keepdim=True)
    position = torch.arange(keys.shape[1])

    def on(columns: Tensor) -> Callable[[Tensor], Tensor]:
        wanted = rearrange(queries, "batch queries -> batch queries 1") & columns
        return lambda weights: weight_on(weights, wanted)

    ends = {
        "first": on(rearrange(keys & (position == 0), "batch keys -> batch 1 keys")),
        "last": on(rearrange(keys & (position == n_keys - 1), "batch keys -> batch 1 keys")),
    }
    if part == "cross":
        return {"first key": ends["first"], "last key": ends["last"]}
    own = torch.eye(keys.shape[1], dtype=torch.bool)
    found = {"own token": on(own), "token before": lambda weights: before_score(weights, queries)}
    if part == "encoder":
        found["token after"] = on(own.roll(1, dims=1).triu(1) & rearrange(keys, "batch keys -> batch 1 keys"))
    found["first token"] = lambda weights: first_token_score(weights, queries)
    if part == "encoder":
        found["last token"] = ends["last"]
    return found


@torch.no_grad()
def look(model: Transformer, batches: list[Batch]) -> dict[str, dict]:
    """Of each head the mean weight on what the rules name, its effective number of keys, and its name."""
    sums: dict[tuple[str, int], dict[str, Tensor]] = {}
    n_keys = {"encoder": 0.0, "decoder": 0.0, "cross": 0.0}
    for batch in batches:
        with capture(model, "**.weights") as seen:
            batch_loss(model, batch, 0.0)
        for part, layer in layers_of(model):
            weights = seen[f"{site(part, layer)}.weights"]
            is_real = (batch.source if part == "encoder" else batch.target_in) != PAD_ID
            scores = {name: score(weights) for name, score in rules(part, batch).items()}
            scores["entropy"] = attention_entropy(weights, is_real)
            scores["uniform"] = (weights > 0).sum(dim=-1).double()[:, 0][is_real].mean().expand(weights.shape[1])
            kept = sums.setdefault((part, layer), {})
            for name, score in scores.items():
                kept[name] = kept.get(name, 0) + score / len(batches)
    found: dict[str, dict] = {}
    for (part, _), scores in sums.items():
        n_keys[part] = scores.pop("uniform")[0].item()
        scores["keys in effect"] = scores.pop("entropy").exp()
        names = list(scores)
        rows = torch.stack(list(scores.values()), dim=-1).tolist()
        entry = found.setdefault(part, {"names": names, "n_keys": round(n_keys[part], 2), "scores": [], "labels": []})
        entry["scores"].append([[round(one, 3) for one in row] for row in rows])
        entry["labels"].append([label_of(names, row, n_keys[part]) for row in rows])
    return found


@torch.no_grad()
def induction(model: Transformer, seed: int) -> list[list[float]]:
    """Induction scores of the decoder's heads on 64 rows of 12 random tokens, said twice."""
    generator = torch.Generator().manual_seed(seed)
    once = torch.randint(4, model.config.vocab_size, (64, 12), generator=generator)
    twice = torch.cat([once, once], dim=1)
    with capture(model, "decoder.layers.*.self_attention.weights") as seen:
        model.decode(twice, model.encode(once))
    return [[round(score, 3) for score in induction_score(weights, twice).tolist()] for weights in seen.values()]


def prune(model: Transformer, batches: list[Batch], order: list[Head], means: dict | None) -> list[float]:
    """The loss without the first 0, 1, 2, ... heads of an order, up to all of them."""
    losses = []
    for count in range(len(order) + 1):
        with without(model, order[:count], means):
            losses.append(round(loss_on(model, batches), 4))
    return losses


def one_left(model: Transformer, batches: list[Batch], whole: float) -> dict[str, float]:
    """For each layer the change of the loss when the best single head of it is left."""
    found = {}
    for place, layer in layers_of(model).items():
        changes = []
        for kept in range(layer.n_heads):
            with without(model, [(*place, head) for head in range(layer.n_heads) if head != kept]):
                changes.append(loss_on(model, batches) - whole)
        found[f"{place[0]} {place[1]}"] = round(min(changes), 4)
    return found


def overlap(model: Transformer) -> dict[str, dict[str, float]]:
    """Mean squared and largest principal cosine between the subspaces of two heads of a layer, over all pairs."""
    found: dict[str, list[Tensor]] = {}
    for layer in layers_of(model).values():
        spaces = {name: getattr(layer, f"to_{name}").weight.T for name in ("query", "key", "value")}
        for name, columns in {**spaces, "output": layer.to_output.weight}.items():
            by_head = rearrange(columns, "d_model (heads d_head) -> heads d_model d_head", heads=layer.n_heads)
            found.setdefault(name, []).extend(cosines(by_head))
    return {
        name: {
            "mean squared": round(torch.cat(all_of).square().mean().item(), 4),
            "largest": round(torch.cat(all_of).max().item(), 4),
        }
        for name, all_of in found.items()
    }


@torch.no_grad()
def cosines(spaces: Tensor) -> list[Tensor]:
    """The principal cosines of each pair of subspaces, spanned by columns."""
    bases = [torch.linalg.qr(space.double())[0] for space in spaces]
    return [torch.linalg.svdvals(one.T @ other) for one, other in combinations(bases, 2)]


def study(seed: int) -> dict:
    """Train with one seed and measure everything."""
    corpus = embedded_corpus()
    trainer = Trainer(corpus, TrainingRecipe.preset("embedded").replace(seed=seed), precision="fp32")
    before = {"look": look(trainer.model.eval(), validation(trainer)), "overlap": overlap(trainer.model)}
    trainer.run()
    model = Translator.of(trainer).model
    batches = validation(trainer)
    means = mean_contexts(model, list(trainer.batches.epoch(0))[:N_BATCHES])
    whole, heads = loss_on(model, batches), heads_of(model)
    effects = {}
    for name, by in (("zero", None), ("mean", means)):
        effects[name] = {}
        for head in heads:
            with without(model, [head], by):
                effects[name][head] = loss_on(model, batches) - whole
    ranked = sorted(heads, key=effects["zero"].get)
    shuffled = []
    for number in range(N_ORDERS):
        order = list(heads)
        random.Random(100 * seed + number).shuffle(order)
        shuffled.append(prune(model, batches, order, None))
    spare = [head for head in heads if effects["zero"][head] < 0.05 * whole]
    with without(model, spare):
        together = loss_on(model, batches) - whole
    parts = {}
    for part in ("encoder", "decoder", "cross"):
        with without(model, [head for head in heads if head[0] == part]):
            parts[part] = round(loss_on(model, batches) - whole, 4)
    return {
        "seed": seed,
        "loss": round(whole, 4),
        "n_target_tokens": sum(batch.n_target_tokens for batch in batches),
        "heads": [list(head) for head in heads],
        "effects": {name: [round(one[head], 5) for head in heads] for name, one in effects.items()},
        "pruned": {
            "by effect": prune(model, batches, ranked, None),
            "by effect, mean": prune(model, batches, sorted(heads, key=effects["mean"].get), means),
            "at random": shuffled,
        },
        "spare": {
            "n": len(spare),
            "one by one": round(sum(effects["zero"][head] for head in spare), 5),
            "together": round(together, 5),
        },
        "parts": parts,
        "one left": one_left(model, batches, whole),
        "look": look(model, batches),
        "induction": induction(model, seed),
        "overlap": overlap(model),
        "before": before,
    }


def validation(trainer: Trainer) -> list[Batch]:
    """Held-out sentences."""
    return list(trainer.validation.epoch(0))[:N_BATCHES]


def one_thread() -> None:
    """Each seed has a process of its own, and in it one thread: results do not depend on the number of cores."""
    torch.set_num_threads(1)


def main() -> None:
    one_thread()
    started = _record.start()
    with ProcessPoolExecutor(len(SEEDS), mp_context=get_context("spawn"), initializer=one_thread) as pool:
        runs = list(pool.map(study, SEEDS))
    recipe = TrainingRecipe.preset("embedded")
    settings = {"recipe": "embedded", **{name: getattr(recipe, name) for name in ("d_model", "n_heads", "n_layers")}}
    _record.write(
        "multihead_ablation", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started, embedded_corpus=True
    )


if __name__ == "__main__":
    main()
