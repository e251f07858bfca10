"""The cache of a published model in bytes, and how many tokens a second it reads and writes by the length of the text.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes, whose weights are float32 once loaded. It reads
prose from the manual that comes with every Python, and its cache is measured at several lengths. Then:

- *read*: tokens a second while the text goes on in passes of up to 256 tokens;
- *write*: tokens a second when the next tokens come one at a time, at each length;
- *several texts*: the same with 1, 4 and 16 texts at once, all 64 tokens long.

Time is the processor's time of one thread. Other work on the machine takes none of it away, but shares caches and
memory with it, so each figure is stored for three rounds; a page compares only what differs by more than they do.
"""

import time
from statistics import median

import torch
from torch import Tensor

from experiments import _record
from experiments.decoder_text import paragraphs, topics
from ttutor.cache import DecoderCache
from ttutor.pretrained import Pretrained, load

ROUNDS, LENGTHS, PASS, WRITTEN = 3, [64, 256, 1024, 4096], 256, 12
TEXTS, TEXT_LENGTH = [1, 4, 16], 64


def seconds(chat: Pretrained, ids: Tensor, cache: DecoderCache) -> float:
    started = time.process_time()
    chat.model(ids, cache=cache)
    return time.process_time() - started


def writing(chat: Pretrained, ids: Tensor, cache: DecoderCache) -> float:
    """The median seconds of a token that comes alone; the cache is left as it was."""
    spent = median(seconds(chat, token, cache) for token in ids.split(1, dim=1))
    cache.forget(ids.shape[1])
    return spent


def by_length(chat: Pretrained, ids: Tensor) -> dict:
    """One round: bytes, and tokens a second read and written, at each length."""
    cache, found = DecoderCache(chat.model.config.n_layers), {"bytes": [], "read": [], "write": []}
    for length in LENGTHS:
        begun = cache.n_tokens
        spent = sum(seconds(chat, piece, cache) for piece in ids[:, begun:length].split(PASS, dim=1))
        found["bytes"].append(cache.n_bytes)
        found["read"].append(round((length - begun) / spent, 1))
        found["write"].append(round(1 / writing(chat, ids[:, length : length + WRITTEN], cache), 2))
    return found


def by_texts(chat: Pretrained, ids: Tensor) -> list[float]:
    """One round: tokens a second of all texts together, written one at a time for each text."""
    rates = []
    for n_texts in TEXTS:
        pieces = ids[:, : n_texts * (TEXT_LENGTH + WRITTEN)].view(n_texts, -1)
        cache = DecoderCache(chat.model.config.n_layers)
        chat.model(pieces[:, :TEXT_LENGTH], cache=cache)
        rates.append(round(n_texts / writing(chat, pieces[:, TEXT_LENGTH:], cache), 2))
    return rates


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    started, chat = _record.start(), load("smollm2")
    config = chat.model.config
    ids = chat.ids("\n".join(paragraphs(sorted(topics))))[:, : LENGTHS[-1] + WRITTEN]
    rounds, texts = [], []
    for _ in range(ROUNDS):
        rounds.append(by_length(chat, ids))
        texts.append(by_texts(chat, ids))
        print(rounds[-1], texts[-1], flush=True)
    assert all(one["bytes"] == rounds[0]["bytes"] for one in rounds)
    results = {
        "shape": {
            "n_layers": config.n_layers,
            "n_heads": config.n_heads,
            "n_kv_heads": config.n_kv_heads,
            "d_head": config.d_head or config.d_model // config.n_heads,
        },
        "parameters": chat.facts["parameters"],
        "lengths": LENGTHS,
        "bytes": rounds[0]["bytes"],
        "read": [one["read"] for one in rounds],
        "write": [one["write"] for one in rounds],
        "texts": {"n": TEXTS, "length": TEXT_LENGTH, "write": texts},
    }
    _record.write("efficient_pretrained", results, seeds=list(range(ROUNDS)), started=started)


if __name__ == "__main__":
    main()
