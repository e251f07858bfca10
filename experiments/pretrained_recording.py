"""What a published language model does on a few texts: maps of heads, the lens, next words, induction heads, its cache.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes, and stores what pages show of it, so that they
need no model: for one text with a repetition the attention weights of six layers; for one prompt what the logit lens
reads after each of the 30 layers; the next words at three temperatures; for all 270 heads how much they look at the
first token, at the token before, and at what came after an earlier twin; and what is lost where those heads are
switched off that do the last most, beside as many others drawn by chance. Heads are chosen on texts of seed 0, and the
loss is measured on texts of other seeds.
"""

from collections import defaultdict

import torch
from torch.nn import functional

from experiments import _record
from ttutor.cache import DecoderCache
from ttutor.inside import capture, first_token_score, induction_score, logit_lens, patch, previous_token_score
from ttutor.pretrained import Pretrained, load

SEEDS = [1, 2, 3]
REPETITION = "One two six nine. One two six"
LAYERS = [0, 2, 11, 16, 17, 18]
PROMPT, CONTINUED = "The capital of France is", "The weather today is"
BANK = "The old fisherman walked slowly down to the bank of the river, because the bank in town had closed at noon."
HALF = 24
"""Random tokens before they are repeated."""

Head = tuple[int, int]


def heads_at_work(chat: Pretrained, ids: torch.Tensor) -> torch.Tensor:
    """The attention weights of all layers: layers batch heads queries keys."""
    with capture(chat.model, "layers.*.self_attention.weights") as seen:
        chat.model(ids)
    return seen.stack()


def repeated(seed: int, n_rows: int = 4) -> torch.Tensor:
    """Random tokens, and the same once more."""
    ids = torch.randint(1000, 40_000, (n_rows, HALF), generator=torch.Generator().manual_seed(seed))
    return torch.cat([ids, ids], dim=1)


def loss_without(chat: Pretrained, heads: list[Head], ids: torch.Tensor) -> list[float]:
    """The loss on the first half and on its repetition, in nats, with these heads switched off."""
    in_layer = defaultdict(list)
    for layer, head in heads:
        in_layer[layer].append(head)

    def switched_off(numbers: list[int]):
        return lambda context: context.index_fill(1, torch.tensor(numbers), 0.0)

    edits = {f"layers.{layer}.self_attention.context": switched_off(numbers) for layer, numbers in in_layer.items()}
    with patch(chat.model, edits):
        logits = chat.model(ids)
    losses = functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    losses = losses.view(len(ids), -1)
    return [round(float(part.mean()), 2) for part in (losses[:, : HALF - 1], losses[:, HALF:])]


def best_words(chat: Pretrained, log_probabilities: torch.Tensor, n: int = 5) -> list[list]:
    """The most probable next words with their probabilities."""
    best = log_probabilities.exp().topk(n)
    return [
        [chat.tokenizer.decode([one]), round(float(p), 3)]
        for one, p in zip(best.indices.tolist(), best.values, strict=True)
    ]


@torch.inference_mode()
def main() -> None:
    """Read everything off one opened model."""
    started, chat = _record.start(), load("smollm2")
    n_heads = chat.model.config.n_heads
    random_ids = repeated(0)
    weights = heads_at_work(chat, random_ids)
    induction = induction_score(weights, random_ids)
    order = [divmod(place, n_heads) for place in induction.flatten().argsort(descending=True).tolist()]
    switched_off = {}
    for seed in SEEDS:
        ids, others = repeated(seed), torch.randperm(induction.numel(), generator=torch.Generator().manual_seed(seed))
        rest = [divmod(place, n_heads) for place in others.tolist()]
        groups = {"none": [], "best 4": order[:4], "best 8": order[:8]}
        groups["others 8"] = [head for head in rest if head not in order[:30]][:8]
        switched_off[seed] = {name: loss_without(chat, heads, ids) for name, heads in groups.items()}
    lens = logit_lens(chat.model, chat.ids(PROMPT))[:, 0, -1].log_softmax(dim=-1)
    (paris,) = chat.tokenizer.encode(" Paris").ids
    log_probabilities = chat.model(chat.ids(CONTINUED))[0, -1]
    on_text, cache = heads_at_work(chat, chat.ids(BANK)), DecoderCache(chat.model.config.n_layers)
    chat.model.decode(chat.ids(BANK), None, cache)
    of_repetition = heads_at_work(chat, chat.ids(REPETITION))
    results = {
        "repetition": {
            "text": REPETITION,
            "tokens": chat.tokens(REPETITION),
            "layers": LAYERS,
            "weights": [
                [[[round(x, 3) for x in row] for row in one] for one in of_repetition[layer, 0].tolist()]
                for layer in LAYERS
            ],
        },
        "lens": {
            "prompt": PROMPT,
            "best": [best_words(chat, one) for one in lens],
            "rank_of_Paris": [int((one > one[paris]).sum()) + 1 for one in lens],
        },
        "next_words": {
            "prompt": CONTINUED,
            "by_temperature": {
                str(t): best_words(chat, (log_probabilities / t).log_softmax(dim=-1), 8) for t in (0.5, 1.0, 2.0)
            },
        },
        "heads": {
            "first token": [[round(x, 3) for x in row] for row in first_token_score(on_text).tolist()],
            "token before": [[round(x, 3) for x in row] for row in previous_token_score(weights).tolist()],
            "after an earlier twin": [[round(x, 3) for x in row] for row in induction.tolist()],
        },
        "switched_off": switched_off,
        "cache": {"tokens": cache.n_tokens, "bytes": cache.n_bytes},
        "attacks": [
            "The heads are chosen on other random texts than those on which the loss is measured.",
            "As many heads drawn by chance from outside the best 30 are switched off on the same texts.",
            "The loss on the first half, where nothing repeats, is stored beside that on the repetition.",
        ],
    }
    _record.write("pretrained_recording", results, seeds=[0, *SEEDS], started=started)


if __name__ == "__main__":
    main()
