"""A published assistant learns sums: instruction tuning of SmolLM2 with LoRA, before and after, and what else changed.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. Its last ten layers get adapters of rank 8 at
all maps, and nothing else learns; so what the first twenty layers make of each conversation is computed once. The
conversations are the model's own template with a question and the right answer, loss on the answer alone.

The control has the same questions and the same answers, dealt out anew so that none is right: the form is as before,
and no sum can be learned from it. What it changes, too, the sums did not change.

Before and after: unseen sums, where the answer's beginning is given ("17 + 25 =") and the likeliest tokens follow, so
that it counts whether the number is right and not how it is said; the same of differences and of sums of three digits,
which no conversation had; the loss on prose; twenty questions about other things, of which it counts whether the
expected word is in the answer; and whole answers to some questions. A stored run is not made again; each takes some
four minutes of one core.
"""

import random
import re
import time

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from experiments.decoder_text import paragraphs, topics
from ttutor import assets
from ttutor.cache import DecoderCache
from ttutor.pretrained import Conversation, Pretrained, load
from ttutor.training.assistant import masked_answer_loss
from ttutor.training.low_rank import attach_low_rank, merge_low_rank

NAME = "assistant_pretrained"
RUNS = [("right", 0), ("shuffled", 0), ("right", 1), ("shuffled", 1)]
LEARNS, RANK, STEPS, BATCH, RATE = 10, 8, 60, 12, 1e-3
MAPS = ("to_query", "to_key", "to_value", "to_output", "gate", "widen", "narrow")
N_TRAIN, N_TEST, N_OTHER, PIECES = 300, 100, 50, 20
ASKED = ["What is 17 + 25?", "What is 48 + 31?", "What is the capital of France?", "How many legs do two dogs have?"]
OTHERS = {
    "What is the capital of France?": "paris",
    "What is the capital of Italy?": "rome",
    "What is the capital of Japan?": "tokyo",
    "What is the capital of Germany?": "berlin",
    "What is the capital of Spain?": "madrid",
    "What is the capital of England?": "london",
    "What is the capital of Russia?": "moscow",
    "What is the capital of China?": "beijing",
    "What is the capital of Egypt?": "cairo",
    "What is the capital of Greece?": "athens",
    "What is the opposite of hot?": "cold",
    "What is the opposite of big?": "small",
    "What colour is grass?": "green",
    "What do bees make?": "honey",
    "What is the largest planet?": "jupiter",
    "Who wrote Romeo and Juliet?": "shakespeare",
    "Which language do people speak in Brazil?": "portuguese",
    "What is frozen water called?": "ice",
    "Which planet do we live on?": "earth",
    "Which animal barks?": "dog",
}
ATTACKS = [
    "Another seed, 600 sums, 120 steps, other 60 sums: right .18 to .72, prose 3.12 to 3.28 nats; 6.2 core minutes.",
]
"""What was tried to refute the page's sentences, with the functions of this file."""

Sum = tuple[int, int]


def splits(low: int, high: int, n: int, seed: int) -> list[Sum]:
    """Pairs of numbers of a length, none twice."""
    rng = random.Random(seed)
    return rng.sample([(a, b) for a in range(low, high) for b in range(low, high)], n)


def asked(chat: Pretrained, pair: Sum, sign: str = "+") -> list[int]:
    """A question in the template."""
    assert chat.template is not None
    text = chat.template.render([{"role": "user", "content": f"What is {pair[0]} {sign} {pair[1]}?"}])
    return chat.tokenizer.encode(text).ids


def conversations(chat: Pretrained, pairs: list[Sum], answers: list[int]) -> tuple[Tensor, Tensor]:
    """Rows of tokens, filled up with end marks, and which of them are answers."""
    rows, masks, (end, *_) = [], [], chat.end_ids
    for (a, b), answer in zip(pairs, answers, strict=True):
        prompt, said = asked(chat, (a, b)), [*chat.tokenizer.encode(f"{a} + {b} = {answer}.").ids, end]
        rows.append(torch.tensor(prompt + said))
        masks.append(torch.tensor([False] * len(prompt) + [True] * len(said)))
    pad = nn.utils.rnn.pad_sequence
    return pad(rows, batch_first=True, padding_value=end), pad(masks, batch_first=True)


def through(chat: Pretrained, layers: nn.ModuleList, hidden: Tensor) -> Tensor:
    """The stream after some of the layers; padding on the right is hidden by the causal mask."""
    rotation = chat.model.rotary(torch.arange(hidden.shape[1])[None])
    for layer in layers:
        hidden = layer(hidden, rotation=rotation)
    return hidden


def tune(chat: Pretrained, pairs: list[Sum], answers: list[int], seed: int, steps: int, rate: float) -> list[float]:
    """Instruction tuning of the last layers; the loss of every tenth step, the mean of these ten."""
    model, rng = chat.model, random.Random(seed)
    torch.manual_seed(seed)
    rows, is_answer = conversations(chat, pairs, answers)
    model.requires_grad_(False)
    upper = model.layers[-LEARNS:]
    attach_low_rank(upper, rank=RANK, layers=MAPS)
    with torch.no_grad():
        below = torch.cat([through(chat, model.layers[:-LEARNS], model.embedding(some)) for some in rows.split(25)])
    optimizer = torch.optim.Adam([one for one in upper.parameters() if one.requires_grad])
    losses = []
    for step in range(steps):
        some = torch.tensor(rng.sample(range(len(rows)), BATCH))
        first = int(is_answer[some].long().argmax(dim=1).min()) - 1  # no logits where no answer is
        hidden = model.final_norm(through(chat, upper, below[some]))[:, first:]
        loss = masked_answer_loss(model.project(hidden), rows[some, first:], is_answer[some, first:])
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 10) * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    merge_low_rank(upper)
    return [round(sum(losses[i : i + 10]) / 10, 3) for i in range(0, steps, 10)]


@torch.no_grad()
def numbers(chat: Pretrained, pairs: list[Sum], sign: str = "+") -> list[str]:
    """The number that the likeliest tokens write after "17 + 25 ="; of another text nothing."""
    found = []
    for some in (pairs[start : start + 50] for start in range(0, len(pairs), 50)):
        given = [asked(chat, pair, sign) + chat.tokenizer.encode(f"{pair[0]} {sign} {pair[1]} =").ids for pair in some]
        new, cache, said = torch.tensor(given), DecoderCache(len(chat.model.layers)), []
        for _ in range(6):
            new = chat.model.project(chat.model.decode(new, cache=cache)[:, -1:]).argmax(dim=-1)
            said.append(new)
        texts = [chat.tokenizer.decode(row) for row in torch.cat(said, dim=1).tolist()]
        found += [match[1] if (match := re.match(r"\s*(-?\d+)(?!\d|\s*[-+*/=])", text)) else "" for text in texts]
    return found


@torch.no_grad()
def prose_loss(chat: Pretrained) -> float:
    """Nats per token of the manual of Python, twenty pieces of 128 tokens."""
    ids = chat.ids("\n".join(paragraphs(sorted(topics)[::3])))[0, : PIECES * 128].view(PIECES, 128)
    total = 0.0
    for some in ids.split(10):
        total += functional.cross_entropy(chat.model(some)[:, :-1].flatten(0, 1), some[:, 1:].flatten()).item()
    return round(total * 10 / PIECES, 3)


def deranged(answers: list[int], seed: int) -> list[int]:
    """The same answers in another order, none of them right."""
    rng, dealt = random.Random(seed), list(answers)
    while any(x == y for x, y in zip(dealt, answers, strict=True)):
        rng.shuffle(dealt)
    return dealt


def said_to(chat: Pretrained, question: str) -> str:
    """The likeliest answer, its first tokens."""
    return "".join(Conversation(chat, longest_answer=16).answer(question)).strip()


def look(chat: Pretrained, test: list[Sum]) -> dict:
    """What it can, and what else it says."""
    longer, minus = splits(100, 1000, N_OTHER, 3), [(max(pair), min(pair)) for pair in splits(10, 100, N_OTHER, 4)]
    said = {"sums": numbers(chat, test), "longer": numbers(chat, longer), "differences": numbers(chat, minus, "-")}
    right = {
        "sums": [a + b for a, b in test],
        "longer": [a + b for a, b in longer],
        "differences": [a - b for a, b in minus],
    }
    found: dict = {
        name: round(sum(x == str(y) for x, y in zip(said[name], right[name], strict=True)) / len(said[name]), 3)
        for name in said
    }
    added = sum(x == str(a + b) for x, (a, b) in zip(said["differences"], minus, strict=True))
    found["differences, added"] = round(added / len(minus), 3)
    found["answers"] = {one: said_to(chat, one) for one in ASKED}
    found["other answers"] = {one: said_to(chat, one) for one in OTHERS}
    named = [word in re.findall(r"\w+", found["other answers"][one].lower()) for one, word in OTHERS.items()]
    found["others"] = round(sum(named) / len(named), 3)
    return found | {"prose": prose_loss(chat)}


def run_of(kind: str, seed: int, train: list[Sum], test: list[Sum]) -> dict:
    """One tuning and what came of it."""
    answers = [a + b for a, b in train]
    chat, begun = load("smollm2"), time.process_time()
    losses = tune(chat, train, answers if kind == "right" else deranged(answers, seed), seed, STEPS, RATE)
    minutes = round((time.process_time() - begun) / 60, 1)
    return {"answers are": kind, "seed": seed, "loss": losses, "core minutes": minutes, **look(chat, test)}


def main() -> None:
    torch.set_num_threads(1)
    started, known = _record.start(), {(17, 25), (48, 31)}
    pairs = [pair for pair in splits(10, 100, N_TRAIN + N_TEST, 0) if pair not in known]
    train, test = pairs[:N_TRAIN], pairs[-N_TEST:]
    settings = {"layers": LEARNS, "rank": RANK, "steps": STEPS, "batch": BATCH, "rate": RATE, "sums": len(train)}
    stored = assets.load(NAME)
    if stored["settings"] != settings or "runs" not in stored:
        stored = {"before": look(load("smollm2"), test), "runs": []}
        print(stored["before"], flush=True)
    else:
        started -= 60 * stored["provenance"]["minutes"]
    runs = stored["runs"]
    for kind, seed in RUNS:
        if not any((run["answers are"], run["seed"]) == (kind, seed) for run in runs):
            runs.append(run_of(kind, seed, train, test))
            print(runs[-1], flush=True)
        results = {"settings": settings, "before": stored["before"], "runs": runs}
        results |= {"unseen sums": len(test), "other questions": OTHERS, "attacks": ATTACKS}
        _record.write(NAME, results, seeds=sorted({run["seed"] for run in runs}), started=started)


if __name__ == "__main__":
    main()
