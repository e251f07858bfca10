"""A published model, run by the block that chapter 9's second road writes by hand, and with parts of 2017 put back.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. Stored are

- its configuration, and its parameters counted from the tensors, part by part;
- how far the page's own lines, over all 30 layers, differ from our class in the logarithms of the probabilities, in
  double precision, on 24 sentences; and what they write after one beginning, always the likeliest token;
- the loss with one part changed in all layers and nothing trained, on the 24 sentences and on prose of the manual that
  comes with every Python.

The attack on the changed parts: the sentences and the prose are different kinds of text, and each change is also made
in one half of the layers.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from einops import rearrange, repeat
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments.multihead_pretrained import TESTED
from experiments.positions_pretrained import prose
from ttutor.masks import causal_mask
from ttutor.pretrained import Pretrained, load

BEGINNING, N_NEW = "The capital of France is", 12
PARTS = {
    "embedding": "embedding",
    "self_attention": "attention",
    "feed_forward": "feed-forward",
    "around_self_attention": "norms",
    "around_feed_forward": "norms",
    "final_norm": "norms",
}


def rms(x, gain, eps=1e-5):  # ... d_model
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


def silu(z):
    return z * torch.sigmoid(z)


SPLIT = "batch tokens (heads d_head) -> batch heads tokens d_head"
MERGE = "batch heads tokens d_head -> batch tokens (heads d_head)"
SHARED = "batch kv_heads tokens d_head -> batch (kv_heads group) tokens d_head"


def llama_block(x, w, rotary, n_heads, n_kv_heads):
    """x: batch tokens d_model; w: the weights by name, each map as d_out d_in."""
    normed = rms(x, w["gain 1"])  # batch tokens d_model
    q = rearrange(normed @ w["query"].T, SPLIT, heads=n_heads)
    k = rearrange(normed @ w["key"].T, SPLIT, heads=n_kv_heads)
    v = rearrange(normed @ w["value"].T, SPLIT, heads=n_kv_heads)
    rotate = rotary(torch.arange(x.shape[1])[None])
    q, k = rotate(q), rotate(k)
    group = n_heads // n_kv_heads  # so many query heads share a key and a value
    k, v = repeat(k, SHARED, group=group), repeat(v, SHARED, group=group)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5  # batch heads tokens tokens
    scores = scores.masked_fill(~causal_mask(x.shape[1]), -torch.inf)
    heads = scores.softmax(dim=-1) @ v  # batch heads tokens d_head
    x = x + rearrange(heads, MERGE) @ w["output"].T  # batch tokens d_model

    normed = rms(x, w["gain 2"])
    gated = silu(normed @ w["gate"].T) * (normed @ w["widen"].T)  # batch tokens d_ff
    return x + gated @ w["narrow"].T


def weights_of(layer):
    attention, network = layer.self_attention, layer.feed_forward
    return {
        "gain 1": layer.around_self_attention.norm.gain,
        "query": attention.to_query.weight, "key": attention.to_key.weight,
        "value": attention.to_value.weight, "output": attention.to_output.weight,
        "gain 2": layer.around_feed_forward.norm.gain,
        "gate": network.gate.weight, "widen": network.widen.weight,
        "narrow": network.narrow.weight,
    }  # fmt: skip


def run_by_hand(model, ids):
    sizes, table = model.config, model.embedding.table.weight  # table: tokens d_model
    x = table[ids]  # batch tokens d_model
    for layer in model.layers:
        x = llama_block(x, weights_of(layer), model.rotary, sizes.n_heads, sizes.n_kv_heads)
    return rms(x, model.final_norm.gain) @ table.T  # batch tokens vocabulary


def counted(model: nn.Module) -> dict[str, int]:
    """How many parameters each kind of part has."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        steps = name.split(".")
        counts[PARTS[steps[2] if steps[0] == "layers" else steps[0]]] += parameter.numel()
    return dict(counts)


class Centred(nn.Module):
    """A norm that takes the mean away first, as LayerNorm does."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x - x.mean(dim=-1, keepdim=True))


def one_head(weight: Tensor, n_kv_heads: int) -> Tensor:
    """A map to keys or values whose heads are all their mean."""
    heads = weight.unflatten(0, (n_kv_heads, -1))
    return heads.mean(dim=0, keepdim=True).expand_as(heads).flatten(0, 1)


@contextmanager
def changed(chat: Pretrained, part: str, layers: list[int]) -> Iterator[None]:
    """The model with one part changed in these layers, and in the last norm where these are all."""
    model, undo = chat.model, []

    def put(owner: object, name: str, new: object) -> None:
        undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    for layer in (model.layers[n] for n in layers):
        attention, network = layer.self_attention, layer.feed_forward
        if part == "norms":
            put(layer.around_self_attention, "norm", Centred(layer.around_self_attention.norm))
            put(layer.around_feed_forward, "norm", Centred(layer.around_feed_forward.norm))
        elif part == "key/value heads":
            for one in (attention.to_key, attention.to_value):
                put(one, "weight", nn.Parameter(one_head(one.weight, model.config.n_kv_heads)))
        elif part == "gate":
            put(network, "activation", functional.relu)
    if part == "norms" and len(layers) == len(model.layers):
        put(model, "final_norm", Centred(model.final_norm))
    yield
    for owner, name, old in undo:
        setattr(owner, name, old)


def loss(chat: Pretrained, texts: list[Tensor]) -> float:
    """Mean loss of a token, in nats, over all texts."""
    sums = [functional.cross_entropy(chat.model(ids)[0, :-1], ids[0, 1:], reduction="sum").item() for ids in texts]
    return round(sum(sums) / sum(ids.shape[1] - 1 for ids in texts), 3)


@torch.inference_mode()
def main() -> None:
    """Count, run by hand, then change one part at a time."""
    started, chat = _record.start(), load("smollm2")
    model = chat.model
    sentences, pages = [chat.ids(text) for text in TESTED], prose(chat)
    every = list(range(len(model.layers)))
    halves = {"all layers": every, "first half": every[: len(every) // 2], "second half": every[len(every) // 2 :]}
    losses = {"as it is": {"all layers": [loss(chat, sentences), loss(chat, pages)]}}
    for part in ("norms", "gate", "key/value heads"):
        losses[part] = {}
        for where, layers in halves.items():
            with changed(chat, part, layers):
                losses[part][where] = [loss(chat, sentences), loss(chat, pages)]
    model.double()
    far = [
        (run_by_hand(model, ids).log_softmax(dim=-1) - model(ids).log_softmax(dim=-1)).abs().max().item()
        for ids in sentences
    ]
    ids = chat.ids(BEGINNING)
    for _ in range(N_NEW):
        ids = torch.cat([ids, run_by_hand(model, ids)[:, -1:].argmax(dim=-1)], dim=1)
    results = {
        "config": model.config.to_dict(),
        "parameters": counted(model),
        "by hand": {
            "texts": len(far),
            "largest difference": max(far),
            "beginning": BEGINNING,
            "goes on": chat.tokenizer.decode(ids[0].tolist()),
        },
        "losses": losses,
        "tokens": [sum(ids.shape[1] - 1 for ids in texts) for texts in (sentences, pages)],
    }
    _record.write("variants_pretrained", results, seeds=[0], started=started)


if __name__ == "__main__":
    main()
