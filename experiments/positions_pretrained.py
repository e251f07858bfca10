"""The rotary clock of a published model: how fast its pairs turn, which of them its heads use, and for what.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. Its heads have 64 features, so 32 pairs, from
one radian a token to a ten-thousandth of that and less. Stored are

- the turns of every pair within the longest text of the training;
- how large each pair is: the mean length of its part of the queries times that of the keys, as a share of all pairs;
- for the ten heads that look most at the token before, chosen on twelve sentences and tested on 24 others: what each
  pair adds to the score of the token before, over what it adds to its neighbours; and the weight on the token before,
  where some pairs do not turn. All else stays as it is: queries and keys are those of the whole model;
- the loss of the model where some pairs do not turn in any head, on the 24 sentences and on prose of a thousand tokens
  from the manual that comes with every Python;
- for every head, on that prose, how much of its weight beside that on the first token stays within eight tokens.

The attacks: other sentences choose the heads, tokens are shuffled, pairs are drawn by chance, and pairs turn the wrong
way in place of not at all.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from experiments import _record
from experiments.decoder_text import paragraphs, topics
from experiments.multihead_pretrained import CHOOSING, TESTED, best_heads, rounded, weights_of
from ttutor.attention import attention_weights
from ttutor.inside import capture, previous_token_score
from ttutor.masks import causal_mask
from ttutor.positions import RotaryPositions
from ttutor.pretrained import Pretrained, load

SEED = 0
N_HEADS, N_PROSE, PROSE_TOKENS, NEAR, FURTHEST = 10, 2, 1024, 8, 6
GROUPS = {f"pairs {first} to {first + 7}": list(range(first, first + 8)) for first in (0, 8, 16, 24)}

Head = tuple[int, int]


def prose(chat: Pretrained) -> list[Tensor]:
    """Pieces of the manual, one after another, as tokens."""
    ids = chat.ids("\n".join(paragraphs(sorted(topics))))
    return [ids[:, start : start + PROSE_TOKENS] for start in range(0, N_PROSE * PROSE_TOKENS, PROSE_TOKENS)]


@contextmanager
def standing(chat: Pretrained, pairs: list[int]) -> Iterator[None]:
    """The model, in which these pairs do not turn."""
    rotary, usual = chat.model.rotary, chat.model.rotary.frequencies
    rotary.frequencies = tuple(0.0 if pair in pairs else rate for pair, rate in enumerate(usual))
    yield
    rotary.frequencies = usual


def queries_and_keys(chat: Pretrained, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Of all layers, as they are compared: turned, and keys shared by groups of heads said again for each."""
    with capture(chat.model, "layers.*.self_attention.q", "layers.*.self_attention.k") as seen:
        chat.model(ids)
    layers = range(chat.model.config.n_layers)
    q, k = (torch.cat([seen[f"layers.{n}.self_attention.{part}"] for n in layers]) for part in "qk")
    return q, k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)


def pairs_of(chat: Pretrained, vectors: Tensor) -> Tensor:
    """The two features of each pair: ... pairs two."""
    assert chat.model.rotary.layout == "half"
    return torch.stack(vectors.chunk(2, dim=-1), dim=-1)


def sizes(chat: Pretrained, q: Tensor, k: Tensor) -> Tensor:
    """By layer and head, each pair's share of the product of lengths, without the first token."""
    lengths = [pairs_of(chat, part)[:, :, 1:].norm(dim=-1).mean(dim=2) for part in (q, k)]
    return (lengths[0] * lengths[1]) / (lengths[0] * lengths[1]).sum(dim=-1, keepdim=True)


def gains(chat: Pretrained, q: Tensor, k: Tensor, head: Head) -> Tensor:
    """By pair, what it adds to the score of the token before, less what it adds to others near by on average."""
    query, key = (pairs_of(chat, part[head]) for part in (q, k))
    n = query.shape[0]
    added = torch.einsum("qpt,kpt->pqk", query, key) / math.sqrt(2 * query.shape[1])
    by_distance = torch.stack(
        [added.diagonal(-back, dim1=1, dim2=2)[:, FURTHEST - back : n - back].mean(dim=-1) for back in range(FURTHEST)]
    )
    return by_distance[1] - by_distance[[0, 2, 3, 4, 5]].mean(dim=0)


def one_back(chat: Pretrained, q: Tensor, k: Tensor, heads: list[Head], still: list[int], factor: float = 1.0) -> list:
    """The mean weight on the token before, where some pairs are turned back: once they stand, twice go backwards."""
    usual = torch.tensor(chat.model.rotary.frequencies, dtype=torch.float64)
    back = torch.zeros_like(usual)
    back[still] = -factor * usual[still]
    rotation = RotaryPositions(q.shape[-1], frequencies=back)(torch.arange(q.shape[2])[None])
    found = []
    for layer, head in heads:
        query, key = (rotation(part[layer, head][None, None].double()) for part in (q, k))
        weights = attention_weights(query, key, causal_mask(q.shape[2]))[0, 0]
        found.append(weights.diagonal(-1)[FURTHEST - 1 :].mean().item())
    return found


def loss(chat: Pretrained, ids: Tensor) -> float:
    """Mean loss of a token, in nats, from the second on."""
    return functional.cross_entropy(chat.model(ids)[0, :-1], ids[0, 1:]).item()


def mean_of(rows: list) -> Tensor:
    return torch.tensor(rows).mean(dim=0)


def chosen(chat: Pretrained, texts: list[str]) -> list[Head]:
    """The heads that look most at the token before."""
    scores = torch.stack([previous_token_score(weights_of(chat, chat.ids(text))) for text in texts]).mean(dim=0)
    return best_heads(scores)[:N_HEADS]


def look_at(chat: Pretrained, texts: list[Tensor], heads: list[Head], arms: dict[str, tuple[list[int], float]]) -> dict:
    """Sizes, gains and weights on the token before, over some texts."""
    shares, added, weights = [], [], {arm: [] for arm in arms}
    for ids in texts:
        q, k = queries_and_keys(chat, ids)
        shares.append(sizes(chat, q, k))
        added.append(torch.stack([gains(chat, q, k, head) for head in heads]))
        for arm, (still, factor) in arms.items():
            weights[arm].append(one_back(chat, q, k, heads, still, factor))
    return {
        "size": torch.stack(shares).mean(dim=0),
        "gain": torch.stack(added).mean(dim=0),
        "one back": {arm: mean_of(rows) for arm, rows in weights.items()},
    }


@torch.inference_mode()
def main() -> None:
    """Read the clock, then stop parts of it."""
    started, chat = _record.start(), load("smollm2")
    config = chat.model.config
    frequencies = torch.tensor(chat.model.rotary.frequencies, dtype=torch.float64)
    n_pairs = len(frequencies)
    generator = torch.Generator().manual_seed(SEED)
    heads, all_pairs = chosen(chat, CHOOSING), list(range(n_pairs))
    drawn = sorted(torch.randperm(n_pairs, generator=generator)[:8].tolist())
    arms = {"as it is": ([], 1.0), "no pair turns": (all_pairs, 1.0)}
    arms |= {f"{name} stand": (pairs, 1.0) for name, pairs in GROUPS.items()}
    arms |= {f"only {name} turn": ([p for p in all_pairs if p not in pairs], 1.0) for name, pairs in GROUPS.items()}
    arms |= {f"{name} go backwards": (pairs, 2.0) for name, pairs in GROUPS.items()}
    arms["eight drawn pairs stand"] = (drawn, 1.0)
    plain = [chat.ids(text) for text in TESTED]
    shuffled = [ids[:, torch.randperm(ids.shape[1], generator=generator)] for ids in plain]
    of_plain, of_shuffled = (look_at(chat, texts, heads, arms) for texts in (plain, shuffled))
    swapped = look_at(chat, [chat.ids(text) for text in CHOOSING], chosen(chat, TESTED), arms)
    print(heads, {arm: one.mean() for arm, one in of_plain["one back"].items()}, flush=True)

    pieces = prose(chat)
    losses = {"sentences": {}, "prose": {}}
    stand = {"as it is": [], "no pair turns": all_pairs, "eight drawn pairs stand": drawn}
    stand |= {f"{name} stand": pairs for name, pairs in GROUPS.items()}
    for arm, pairs in stand.items():
        with standing(chat, pairs):
            losses["sentences"][arm] = [loss(chat, ids) for ids in plain]
            losses["prose"][arm] = [loss(chat, ids) for ids in pieces]
        print(arm, {where: sum(one[arm]) / len(one[arm]) for where, one in losses.items()}, flush=True)

    near, first, size = [], [], []
    for ids in pieces:
        q, k = queries_and_keys(chat, ids)
        size.append(sizes(chat, q, k))
        mask, layers = causal_mask(PROSE_TOKENS), []
        for layer in range(config.n_layers):
            weights = attention_weights(q[layer][None], k[layer][None], mask)
            beside = weights[..., 1:, 1:].tril()
            inside = beside.triu(-(NEAR - 1))
            layers.append((inside.sum(dim=(-2, -1)) / beside.sum(dim=(-2, -1)))[0])
            first.append(weights[0, :, 1:, 0].mean(dim=-1))
        near.append(torch.stack(layers))
    of_heads = torch.stack(near).mean(dim=0)
    size_of_heads = torch.stack(size).mean(dim=0)
    fast = size_of_heads[..., :8].sum(dim=-1)
    ranks = torch.stack([one.flatten().argsort().argsort().double() for one in (of_heads, fast)])
    results = {
        "clock": {
            "base": config.rotary_base,
            "d_head": config.d_head or config.d_model // config.n_heads,
            "trained_len": config.max_len,
            "rates": [float(f"{rate:.6g}") for rate in frequencies.tolist()],
            "turns": [float(f"{rate * config.max_len / (2 * math.pi):.4g}") for rate in frequencies.tolist()],
        },
        "heads": [list(head) for head in heads],
        "groups": GROUPS,
        "drawn": drawn,
        "n_sentences": len(TESTED),
        "size": {
            "all heads, sentences": rounded(of_plain["size"].flatten(0, 1).median(dim=0).values.tolist(), 4),
            "all heads, prose": rounded(size_of_heads.flatten(0, 1).median(dim=0).values.tolist(), 4),
            "mean of all heads, prose": rounded(size_of_heads.flatten(0, 1).mean(dim=0).tolist(), 4),
            "the ten": rounded(torch.stack([of_plain["size"][head] for head in heads]).tolist(), 4),
        },
        "gain": rounded(of_plain["gain"].tolist()),
        "one back": {arm: rounded(one.tolist()) for arm, one in of_plain["one back"].items()},
        "loss": {where: {arm: rounded(one) for arm, one in arms.items()} for where, arms in losses.items()},
        "near": {
            "share of weight within eight tokens": rounded(of_heads.tolist()),
            "weight on the first token": rounded(torch.stack(first).mean().item()),
            "rank correlation with the size of pairs 0 to 7": round(torch.corrcoef(ranks)[0, 1].item(), 2),
        },
        "attacks": {
            "shuffled tokens": {arm: rounded(one.tolist()) for arm, one in of_shuffled["one back"].items()},
            "heads chosen by the 24, tested on the twelve": {
                arm: rounded(one.tolist()) for arm, one in swapped["one back"].items()
            },
            "gain, shuffled tokens": rounded(of_shuffled["gain"].tolist()),
        },
    }
    _record.write("positions_pretrained", results, seeds=[SEED], started=started)


if __name__ == "__main__":
    main()
