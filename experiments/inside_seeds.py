"""What chapter 12 says of three small language models, asked of five: the three of ``inside_language.py`` and two more.

The two further seeds are trained here as those were. All five are measured on the page's 360 texts. Stored are:
directions (many ways to fit a linear probe for the subject's number at the noun before the verb: how well each reads
held-out nouns, its cosine with the difference of means, and the share of held-out verbs that turn when the noun's
vector is pushed along it, all pushes equally long); the lens by depth; the head that looks at the subject, and what is
left without it; one vector exchanged between two sentences; and heads of the first layer that look at the first token.

Under ``attacks`` stands what was tried to refute the page: ten times the texts for fitting; pushes of half and twice
the length; the probe's direction multiplied by the covariance again; twenty random directions, of which the one that
turns most is kept; another label that can be read (the number of the noun itself). The head that looks at the subject
is taken away alone, with all that look there, and beside it as many heads that do not.
"""

import random

import torch
from torch import Tensor
from torch.nn import functional

from experiments import _record, inside_language
from ttutor import assets
from ttutor.inside import activation_patching, capture, fit_probe, logit_lens, patch, residual_stream, weight_on
from ttutor.variants.gpt import GPT

SEEDS = [0, 1, 2, 3, 4]
N_TEXTS, N_FIT, MANY = 360, 240, 2400
N_RANDOM, LOOKS = 20, 0.3
RIDGES, PENALTIES = (0.001, 0.1, 1.0), (0.0001, 0.01)
LANGUAGE = inside_language
PLURAL = torch.tensor([LANGUAGE.INDEX_OF[stem] for stem in LANGUAGE.EITHER + LANGUAGE.VERBS])
NEAR, THE, BOS = (LANGUAGE.INDEX_OF[word] for word in ("near", "the", "<bos>"))


def places(ids: Tensor) -> tuple[Tensor, Tensor]:
    """At each noun of "near the ...", the number of the subject (1 plural), else -1; and where the subject stands."""
    number, subject = torch.full_like(ids, -1), torch.full_like(ids, -1)
    for row, at in (ids == NEAR).nonzero().tolist():
        noun = at + 2 if at + 2 < ids.shape[1] and ids[row, at + 2] >= 10 else at + 3
        if noun < ids.shape[1]:
            number[row, noun], subject[row, noun] = ids[row, at - 1] % 2, at - 1
    return number, subject


def odds(logits: Tensor) -> Tensor:
    """Log odds of a plural verb as the next word."""
    return logits[..., PLURAL].logsumexp(dim=-1) - logits[..., PLURAL + 1].logsumexp(dim=-1)


def logistic(x: Tensor, y: Tensor, penalty: float) -> Tensor:
    """The direction of a logistic regression, its squared length at this price, on centred features."""
    x = x - x.mean(dim=0)
    weight, bias = x.new_zeros(x.shape[1]).requires_grad_(), x.new_zeros(1).requires_grad_()
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=500, line_search_fn="strong_wolfe", tolerance_change=1e-12)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(x @ weight + bias, y.to(x.dtype))
        loss = loss + penalty * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight.detach()


def least_squares(x: Tensor, y: Tensor, ridge: float) -> Tensor:
    """The direction of the chapter's own probe."""
    weight = fit_probe(x, y, 2, ridge=ridge).weight
    return weight[1] - weight[0]


def difference(x: Tensor, y: Tensor) -> Tensor:
    """The mean vector of the plurals less that of the singulars."""
    return x[y == 1].mean(dim=0) - x[y == 0].mean(dim=0)


def ways(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Directions fitted to the same vectors and labels, by name."""
    found = {"difference of means": difference(x, y)}
    found |= {f"logistic, penalty {price}": logistic(x, y, price) for price in reversed(PENALTIES)}
    return found | {f"least squares, ridge {ridge}": least_squares(x, y, ridge) for ridge in reversed(RIDGES)}


def reads(way: Tensor, x: Tensor, y: Tensor, new: Tensor, label: Tensor) -> float:
    """The share of new vectors on the right side, when the border lies halfway between the two means."""
    border = (x[y == 1].mean(dim=0) + x[y == 0].mean(dim=0)) / 2 @ way
    return ((new @ way > border) == (label == 1)).double().mean().item()


@torch.no_grad()
def turns(model: GPT, ids: Tensor, asked: Tensor, depth: int, way: Tensor, number: Tensor) -> float:
    """The share of verbs with the wrong number after the noun's vector was pushed to the wrong side."""
    sign = 2.0 * number[asked] - 1

    def push(stream: Tensor) -> Tensor:
        stream = stream.clone()
        stream[asked] -= sign[:, None] * way
        return stream

    with patch(model, {f"decoder.layers.{depth - 1}": push}):
        return ((odds(model(ids))[asked] * sign) < 0).double().mean().item()


def directions(
    model: GPT, seed: int, ids: Tensor, number: Tensor, fitted: Tensor, held_out: Tensor
) -> tuple[dict, dict]:
    """For each direction and depth: read, cosine with the means, turned; and the same of the attacks."""
    rows: dict[str, dict] = {}
    attacks: dict[str, dict] = {}
    many = LANGUAGE.texts(MANY, seed=7)[:, :-1]
    many_number, _ = places(many)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        streams, many_streams = residual_stream(model, ids), residual_stream(model, many)
    for depth in (1, 2, 3, 4):
        x, y = streams[depth][fitted], number[fitted]
        new, label = streams[depth][held_out], number[held_out]
        means, fitted_ways = difference(x, y), ways(x, y)
        found = dict(fitted_ways)
        own = ids[fitted] % 2
        found["own number: means"] = difference(x, own)
        thin = least_squares(x, y, RIDGES[0])
        found["least squares times covariance"] = x.T.cov() @ thin
        big, big_y = many_streams[depth][many_number >= 0], many_number[many_number >= 0]
        found["least squares, ten times the texts"] = least_squares(big, big_y, RIDGES[0])
        found["half as long: means"] = means
        found["twice as long: least squares"] = thin
        for name, way in found.items():
            scale = {"half": 0.5, "twice": 2.0}.get(name.split()[0], 1.0)
            push = way * means.norm() / way.norm() * scale
            (rows if name in fitted_ways else attacks).setdefault(name, {})[str(depth)] = {
                "reads": round(reads(way, x, y, new, label), 3),
                "cosine": round(functional.cosine_similarity(way, means, dim=0).item(), 3),
                "turned": round(turns(model, ids, held_out, depth, push, number), 3),
            }
        drawn = functional.normalize(torch.randn(N_RANDOM, 32, generator=generator), dim=-1) * means.norm()
        most = max(turns(model, ids, held_out, depth, way, number) for way in drawn)
        attacks.setdefault("random: the most of twenty", {})[str(depth)] = {"turned": round(most, 3)}
    return rows, attacks


@torch.no_grad()
def lens(model: GPT, ids: Tensor, following: Tensor, number: Tensor, misleading: Tensor) -> dict:
    """By depth: loss of the reading; share of nouns with the right number; present word first at depth 0."""
    logits = logit_lens(model, ids)
    nouns = ids >= 10

    def right(where: Tensor) -> list[float]:
        sign = 2.0 * number[where] - 1
        return [round(((odds(one[where]) * sign) > 0).double().mean().item(), 2) for one in logits]

    return {
        "loss": [round(functional.cross_entropy(one.flatten(0, 1), following.flatten()).item(), 2) for one in logits],
        "right number": right(misleading),
        "right number, nouns agree": right((number >= 0) & ~misleading),
        "present word first": round((logits[0].argmax(-1) == ids)[nouns].double().mean().item(), 2),
    }


def mean_at(head: int, where: Tensor | None, zero: bool = False):
    """A patch: at these tokens (all, if None) the head hands on its mean over them, or nothing."""

    def replace(context: Tensor) -> Tensor:
        context = context.clone()
        chosen = torch.ones(context.shape[0], context.shape[2], dtype=torch.bool) if where is None else where
        context[:, head][chosen] = 0.0 if zero else context[:, head][chosen].mean(dim=0)
        return context

    return replace


@torch.no_grad()
def subject_head(model: GPT, ids: Tensor, number: Tensor, subject: Tensor, misleading: Tensor) -> dict:
    """Heads that look at the subject: the log odds whole, without the best, without all, and without as many others."""
    asked, n = number >= 0, ids.shape[1]
    wanted = (subject[:, :, None] == torch.arange(n)) & asked[:, :, None]
    with capture(model, "**.weights") as seen:
        whole = odds(model(ids))
    weight = weight_on(seen.stack(), wanted)
    sign = 2.0 * number[misleading] - 1

    def without(heads: list[tuple[int, int]]) -> Tensor:
        edits = {}
        for layer in {layer for layer, _ in heads}:
            of_layer = [mean_at(head, asked) for at, head in heads if at == layer]
            edits[f"decoder.layers.{layer}.self_attention.context"] = lambda context, fs=of_layer: chained(context, fs)
        with patch(model, edits):
            return odds(model(ids))[misleading] * sign

    best = divmod(int(weight.argmax()), 4)
    later = [(layer, head) for layer in (1, 2, 3) for head in range(4)]
    lookers = [one for one in later if weight[one] > LOOKS]
    rest = [one for one in later if weight[one] <= LOOKS]
    lots = [random.Random(lot).sample(rest, len(lookers)) for lot in range(6)]
    arms = [whole[misleading] * sign, without([best]), without(lookers)]
    return {
        "head": list(best),
        "weight": round(weight.max().item(), 2),
        "lookers": [list(one) for one in lookers],
        "share right": [round((one > 0).double().mean().item(), 3) for one in arms],
        "log odds": [round(one.mean().item(), 2) for one in arms],
        "log odds, as many others": [round(without(lot).mean().item(), 2) for lot in lots],
    }


def chained(context: Tensor, changes: list) -> Tensor:
    """One change after another."""
    for change in changes:
        context = change(context)
    return context


@torch.no_grad()
def patched(model: GPT) -> dict:
    """Share of the effect of each vector, depths by tokens: one pair, and twenty."""

    def ids_of(line: str) -> Tensor:
        return torch.tensor([[LANGUAGE.INDEX_OF[word] for word in line.split()]])

    def table(source: Tensor, target: Tensor) -> list:
        trace = activation_patching(
            model,
            lambda: odds(model(source)[:, -1]).mean(),
            lambda: odds(model(target)[:, -1]).mean(),
            "embeddings",
            "decoder.layers.*",
        )
        return [[round(x, 2) for x in row] for row in trace.recovered().tolist()]

    stems = LANGUAGE.EITHER + LANGUAGE.NOUNS
    pairs = [(one, two + end) for one, two in zip(stems, stems[1:] + stems[:1], strict=True) for end in ("", "s")]
    many = [torch.cat([ids_of(f"<bos> the {one}{end} near the {two}") for one, two in pairs]) for end in ("s", "")]
    return {
        "cats": table(*(ids_of(f"<bos> the {noun} near the king") for noun in ("cats", "cat"))),
        "twenty pairs": table(*many),
    }


@torch.no_grad()
def resting(model: GPT, ids: Tensor, following: Tensor) -> list[dict]:
    """Heads of layer 0 with more than .8 of their weight on <bos> at some word but less than a third on average."""
    name = "decoder.layers.0.self_attention"

    def loss(edits: dict) -> float:
        with patch(model, edits):
            return functional.cross_entropy(model(ids).flatten(0, 1), following.flatten()).item()

    whole, found = loss({}), []
    with capture(model, f"{name}.weights", f"{name}.context") as seen:
        model(ids)
    to_output = model.get_submodule(name).to_output.weight
    for head in range(4):
        on_first = seen[f"{name}.weights"][:, head, :, 0]
        late = torch.arange(ids.shape[1]).expand_as(ids) >= 4
        words = [word for word in ids.unique().tolist() if on_first[late & (ids == word)].mean() > 0.8]
        if not words or on_first[late].mean() > 1 / 3:
            continue
        rests = torch.isin(ids, torch.tensor(words))
        written = (seen[f"{name}.context"][:, head] @ to_output[:, 8 * head : 8 * head + 8].T).norm(dim=-1)
        edits = {
            "mean over these words, at them": mean_at(head, rests),
            "zero at these words": mean_at(head, rests, zero=True),
            "mean over all words, everywhere": mean_at(head, None),
            "zero everywhere": mean_at(head, None, zero=True),
        }
        found.append(
            {
                "head": head,
                "words": [LANGUAGE.VOCABULARY[word] for word in words],
                "mean weight on <bos>": round(on_first[late].mean().item(), 2),
                "length written at these words, elsewhere": [
                    round(written[late & where].mean().item(), 1) for where in (rests, ~rests)
                ],
                "more loss": {what: round(loss({f"{name}.context": one}) - whole, 3) for what, one in edits.items()},
            }
        )
    return found


def models() -> dict[int, GPT]:
    """The three stored models and two further ones."""
    stored = assets.weights("inside_language")
    peak = assets.load("inside_language")["settings"]["peak"]
    data = list(LANGUAGE.texts(LANGUAGE.BATCH * LANGUAGE.STEPS, seed=1).split(LANGUAGE.BATCH))
    test, found = LANGUAGE.texts(LANGUAGE.N_TEST, LANGUAGE.TEST_SEED), {}
    for seed in SEEDS:
        model = LANGUAGE.fresh(seed)
        if str(seed) not in stored:
            torch.set_default_dtype(torch.float32)
            flat, _ = LANGUAGE.trained(LANGUAGE.fresh(seed), data, test, peak)
            torch.set_default_dtype(torch.float64)
        else:
            flat = stored[str(seed)]
        model = model.double().eval()
        torch.nn.utils.vector_to_parameters(flat.double(), model.parameters())
        found[seed] = model
    return found


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    chance = random.Random(99)
    whole = torch.tensor([[LANGUAGE.INDEX_OF[word] for word in LANGUAGE.text(chance)] for _ in range(N_TEXTS)])
    ids, following = whole[:, :-1], whole[:, 1:]
    number, subject = places(ids)
    asked = number >= 0
    misleading = asked & (ids % 2 != number)
    is_fitted = (torch.arange(N_TEXTS) < N_FIT)[:, None]
    results: dict = {
        name: {} for name in ("directions", "attacks", "lens", "subject head", "patched", "resting", "loss")
    }
    for seed, model in models().items():
        print("seed", seed, flush=True)
        with torch.no_grad():
            loss = functional.cross_entropy(model(ids).flatten(0, 1), following.flatten()).item()
        results["loss"][str(seed)] = round(loss, 3)
        found = directions(model, seed, ids, number, is_fitted & asked, ~is_fitted & asked)
        results["directions"][str(seed)], results["attacks"][str(seed)] = found
        results["lens"][str(seed)] = lens(model, ids, following, number, misleading)
        results["subject head"][str(seed)] = subject_head(model, ids, number, subject, misleading)
        results["patched"][str(seed)] = patched(model)
        results["resting"][str(seed)] = resting(model, ids, following)
    results["counts"] = {"held-out nouns": int((~is_fitted & asked).sum()), "misleading": int(misleading.sum())}
    _record.write("inside_seeds", results, seeds=SEEDS, started=started)
    print({name: results[name] for name in ("lens", "subject head", "resting", "loss", "counts")})


if __name__ == "__main__":
    main()
