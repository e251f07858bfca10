"""Two heads of a published language model: one looks at the token before, one rests until a text repeats itself.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. Of its 270 heads, twelve sentences choose the
one with the most weight on the token before and those with the most weight on the first token; 24 other sentences test
them. Stored are, for each of the 24: the weight of the first head by distance, and the same with the sentence's tokens
shuffled; the weight of the others on the first token, on the sentence as it is and said twice; how long the vectors are
that they would write from the first token and from the others; and the loss when heads are switched off, or when their
first token is hidden from them. For one sentence the maps are kept.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional

from experiments import _record
from ttutor.inside import capture, first_token_score, patch, previous_token_score
from ttutor.pretrained import Pretrained, load

SEED = 0
N_IDLE, N_DRAWN, FURTHEST = 8, 8, 6
BEGINNINGS = ["Well,", "7", "Yesterday", "(", "Dear reader:"]
SHOWN = "The dog had bitten the man who lived next door."
CHOOSING = [
    "When the rain stopped, our neighbours carried the table back into the garden.",
    "Nobody had told the new teacher that the bell was broken.",
    "A thin layer of ice covered the pond behind the mill.",
    "Most of the bread was gone before the guests arrived.",
    "She counted the coins twice and still came up one short.",
    "Their ship reached the harbour three days late.",
    "In winter the road over the pass is closed to lorries.",
    "He wrote down every word, though he understood none of them.",
    "Some birds hide thousands of seeds and remember where.",
    "If you heat the wax slowly, it melts without smoke.",
    "Old maps show a river where the market stands today.",
    "My aunt paints doors, mostly blue ones.",
]
TESTED = [
    "The dog had bitten the man who lived next door.",
    "Every morning the baker opens the shutters before it is light.",
    "Two of the lamps in the hall have never worked.",
    "Under the floor they found a box of letters tied with string.",
    "It takes about an hour to walk around the lake.",
    "Because the train was full, we sat on our suitcases.",
    "Her brother repairs clocks and sells the oldest to museums.",
    "Without salt the soup tasted of nothing at all.",
    "Children who learn to swim early are seldom afraid of the sea.",
    "They planted apple trees along the wall last autumn.",
    "What the captain said was lost in the wind.",
    "Glass is made of sand, soda and a great deal of heat.",
    "At noon the square is empty except for the pigeons.",
    "Your keys are on the shelf beside the blue vase.",
    "The committee will meet again when the figures are ready.",
    "Not one of the students had read the last chapter.",
    "Copper turns green after many years in the open air.",
    "Please leave your boots outside, the carpet is new.",
    "We measured the height of the tower with a shadow and a stick.",
    "Once the paint is dry, nobody will see the crack.",
    "Seven ducks crossed the street while the cars waited.",
    "An honest answer would have cost him the job.",
    "Fresh snow makes the whole valley quiet.",
    "As a boy he could name all the stars above the farm.",
]

Head = tuple[int, int]


def site(layer: int, part: str) -> str:
    """The name of an intermediate of a layer's attention."""
    return f"layers.{layer}.self_attention.{part}"


def weights_of(chat: Pretrained, ids: Tensor) -> Tensor:
    """The attention weights of all heads: layers 1 heads queries keys."""
    with capture(chat.model, "layers.*.self_attention.weights") as seen:
        chat.model(ids)
    return seen.stack()


def best_heads(scores: Tensor) -> list[Head]:
    """All heads, the largest score first."""
    return [divmod(place, scores.shape[1]) for place in scores.flatten().argsort(descending=True).tolist()]


def by_distance(weights: Tensor) -> list[float]:
    """The mean weight of one head on what stands 0, 1, 2, ... places back, where there is so much before."""
    return [weights.diagonal(-back)[FURTHEST - back :].mean().item() for back in range(FURTHEST)]


def written(chat: Pretrained, ids: Tensor, heads: list[Head]) -> list[list[float]]:
    """Of each head: how long is what it would write with all its weight on the first token; and the others' median."""
    with capture(chat.model, "layers.*.self_attention.v") as seen:
        chat.model(ids)
    found = []
    for layer, head in heads:
        attention = chat.model.layers[layer].self_attention
        values = seen[site(layer, "v")][0, head * attention.n_kv_heads // attention.n_heads]
        columns = attention.to_output.weight[:, head * attention.d_head : (head + 1) * attention.d_head]
        lengths = (values @ columns.T).norm(dim=-1)
        found.append([lengths[0].item(), lengths[1:].median().item()])
    return found


def off(chat: Pretrained, heads: list[Head]) -> AbstractContextManager:
    """The model without what these heads find."""
    return edited(chat, heads, "context", lambda context, numbers: context.index_fill(1, numbers, 0.0))


def first_hidden(chat: Pretrained, heads: list[Head]) -> AbstractContextManager:
    """These heads may no longer look at the first token: the rest of their weight is scaled up to 1."""

    def hide(weights: Tensor, numbers: Tensor) -> Tensor:
        of_heads = weights[:, numbers].clone()
        of_heads[..., 1:, 0] = 0.0
        new = weights.clone()
        new[:, numbers] = of_heads / of_heads.sum(dim=-1, keepdim=True)
        return new

    return edited(chat, heads, "weights", hide)


def edited(
    chat: Pretrained, heads: list[Head], part: str, edit: Callable[[Tensor, Tensor], Tensor]
) -> AbstractContextManager:
    """The model with an edit of a part of some heads' attention; ``edit`` gets the value and the heads of its layer."""
    edits = {}
    for layer in sorted({layer for layer, _ in heads}):
        numbers = torch.tensor([head for at, head in heads if at == layer])
        edits[site(layer, part)] = lambda value, numbers=numbers: edit(value, numbers)
    return patch(chat.model, edits)


def losses(chat: Pretrained, rows: list[Tensor], begin: list[int], how: AbstractContextManager) -> list[float]:
    """Of each text the mean loss of a token, in nats, from a place on."""
    with how:
        logits = [chat.model(ids)[0, :-1] for ids in rows]
    return [
        functional.cross_entropy(one[at - 1 :], ids[0, at:]).item()
        for one, ids, at in zip(logits, rows, begin, strict=True)
    ]


def rounded(values: object, digits: int = 3) -> object:
    """Nested lists of numbers, rounded."""
    return [rounded(one, digits) for one in values] if isinstance(values, list) else round(values, digits)


@torch.inference_mode()
def main() -> None:
    """Choose two heads on twelve sentences, and test them on 24."""
    started, chat = _record.start(), load("smollm2")
    chosen_on = [weights_of(chat, chat.ids(text)) for text in CHOOSING]
    before, rest = (
        torch.stack([score(weights) for weights in chosen_on]).mean(dim=0)
        for score in (previous_token_score, first_token_score)
    )
    backward, idle = best_heads(before)[0], best_heads(rest)[:N_IDLE]
    alone = idle[:1]
    generator = torch.Generator().manual_seed(SEED)
    others = [divmod(place, before.shape[1]) for place in torch.randperm(before.numel(), generator=generator).tolist()]
    drawn = [head for head in others if head not in [backward, *idle]][:N_DRAWN]

    plain = [chat.ids(text) for text in TESTED]
    shuffled = [ids[:, torch.randperm(ids.shape[1], generator=generator)] for ids in plain]
    twice = [chat.ids(f"{text} {text}") for text in TESTED]
    followed = [chat.ids(f"{one} {other}") for one, other in zip(TESTED, TESTED[1:] + TESTED[:1], strict=True)]
    begin = [ids.shape[1] + 1 for ids in plain]
    found = {"distance": [], "distance, shuffled": [], "first token": [], "first token, shuffled": []}
    found |= {"first token, said again": [], "after an earlier twin": [], "first token, another follows": []}
    found["written"] = []
    for ids, mixed, again, pair in zip(plain, shuffled, twice, followed, strict=True):
        length = ids.shape[1]
        of_plain, of_mixed, of_again, of_pair = (weights_of(chat, one) for one in (ids, mixed, again, pair))
        found["distance"].append(by_distance(of_plain[backward[0], 0, backward[1]]))
        found["distance, shuffled"].append(by_distance(of_mixed[backward[0], 0, backward[1]]))
        for name, weights in (("first token", of_plain), ("first token, shuffled", of_mixed)):
            found[name].append([weights[layer, 0, head, 1:, 0].mean().item() for layer, head in idle])
        far = again.shape[1] - length  # from a token to the same one, the first time
        second = torch.arange(length + 1, again.shape[1] - 1)  # the very first token may be another behind a blank
        assert again[0, second].equal(again[0, second - far])
        said = [of_again[layer, 0, head] for layer, head in idle]
        found["first token, said again"].append([weights[second, 0].mean().item() for weights in said])
        found["after an earlier twin"].append([weights[second, second - far + 1].mean().item() for weights in said])
        found["first token, another follows"].append(
            [of_pair[layer, 0, head, length + 1 : -1, 0].mean().item() for layer, head in idle]
        )
        found["written"].append(written(chat, ids, idle))

    arms = {
        "whole": lambda: nullcontext(),
        "backward head off": lambda: off(chat, [backward]),
        "idle head off": lambda: off(chat, alone),
        "all idle off": lambda: off(chat, idle),
        "as many others off": lambda: off(chat, drawn),
        "idle head, first token hidden": lambda: first_hidden(chat, alone),
        "all idle, first token hidden": lambda: first_hidden(chat, idle),
        "as many others, first token hidden": lambda: first_hidden(chat, drawn),
    }
    loss = {
        name: {
            "once": losses(chat, plain, [1] * len(plain), how()),
            "said again": losses(chat, twice, begin, how()),
        }
        for name, how in arms.items()
    }
    other_beginnings = {}
    for begin_with in BEGINNINGS:
        rows = [weights_of(chat, chat.ids(f"{begin_with} {text}"))[idle[0][0], 0, idle[0][1]] for text in TESTED[:8]]
        other_beginnings[begin_with] = [row[1:, 0].mean().item() for row in rows]
    costs = {
        arm: [one - whole for one, whole in zip(both["once"], loss["whole"]["once"], strict=True)]
        for arm, both in loss.items()
        if arm.startswith(("all idle", "as many"))
    }
    mean = {name: torch.tensor(values).mean(dim=0) for name, values in found.items()}
    woken = int(mean["after an earlier twin"].argmax())
    summary = {
        "looks back: weight one place back": mean["distance"][1],
        "the same with the words shuffled": mean["distance, shuffled"][1],
        "rests: would write, from the first token": mean["written"][0][0],
        "rests: would write, from the others": mean["written"][0][1],
        "woken: weight on what followed": mean["after an earlier twin"][woken],
        "woken: weight on the first token after another sentence": mean["first token, another follows"][woken],
        **{f"more loss, {arm}": torch.tensor(cost).mean() for arm, cost in costs.items()},
    }
    ids = chat.ids(SHOWN)
    shown = weights_of(chat, ids)
    maps = {"backward": shown[backward[0], 0, backward[1]], "idle": shown[idle[0][0], 0, idle[0][1]]}
    results = {
        "heads": {"backward": list(backward), "idle": [list(head) for head in idle], "drawn": [list(h) for h in drawn]},
        "chosen by": {
            "backward": rounded(before.flatten().topk(3).values.tolist()),
            "idle": rounded(rest.flatten().topk(N_IDLE).values.tolist()),
        },
        "shown": {"tokens": chat.tokens(SHOWN), "maps": {name: rounded(one.tolist()) for name, one in maps.items()}},
        "n_sentences": len(TESTED),
        "summary": {name: round(float(value), 1 if "write" in name else 2) for name, value in summary.items()},
        "costs": {arm: rounded(cost) for arm, cost in costs.items()},
        "found": {name: rounded(values) for name, values in found.items()},
        "loss": {name: {where: rounded(one) for where, one in both.items()} for name, both in loss.items()},
        "other beginnings": {name: rounded(values) for name, values in other_beginnings.items()},
        "attacks": [
            "The heads are chosen on twelve sentences and tested on 24 others.",
            "Shuffled tokens: does the first head look for a place or for a word? (distance, shuffled)",
            "Five other beginnings of eight sentences: is it a word or the first place? (other beginnings)",
            "Another sentence follows: does it wake because the text goes on? (first token, another follows)",
            "As many other heads, drawn by chance, are switched off (as many others off).",
            "Rest is forbidden, in place of the whole head (all idle, first token hidden).",
            "Rest is forbidden to as many heads drawn by chance (as many others, first token hidden).",
        ],
    }
    print({k: torch.tensor(v).mean(0) for k, v in found.items()})
    print({k: {w: sum(x) / len(x) for w, x in v.items()} for k, v in loss.items()}, results["heads"])
    _record.write("multihead_pretrained", results, seeds=[SEED], started=started)


if __name__ == "__main__":
    main()
