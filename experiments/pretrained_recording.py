"""What a published language model does on a few texts: maps of heads, the lens, next words, induction heads, its cache.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes, and stores what pages show of it, so that they
need no model: for one text with a repetition the attention weights of all heads; for one prompt what the logit lens
reads after each of the 30 layers; the next words at four temperatures; for all 270 heads how much they look at the
first token, at the token before, and at what came after an earlier twin; what is lost where those heads are switched
off that do the last most, beside as many others drawn by chance; and the bytes of the cache by its length. Heads are
chosen on texts of seed 0, and the loss is measured on texts of other seeds.

Under ``attacks`` stands what came of trying to refute what the page says, on thirty other texts, sums, capitals and
prompts, with other heads and other ways to switch them off.
"""

import re
from collections import defaultdict
from collections.abc import Callable

import torch
from torch.nn import functional

from experiments import _record
from ttutor.cache import DecoderCache
from ttutor.generation import greedy_search
from ttutor.inside import (
    capture,
    first_token_score,
    induction_score,
    logit_lens,
    patch,
    previous_token_score,
    residual_stream,
)
from ttutor.pretrained import Pretrained, load

SEEDS = [1, 2, 3]
ATTACK_SEEDS = list(range(11, 41))
REPETITION = "One two six nine. One two six"
TEMPERATURES = (0.5, 0.7, 1.0, 2.0)
LENGTHS = (1, 16, 64, 256)
PROMPT, CONTINUED = "The capital of France is", "The weather today is"
BANK = "The old fisherman walked slowly down to the bank of the river, because the bank in town had closed at noon."
HALF = 24
"""Random tokens before they are repeated."""

Head = tuple[int, int]
Edit = Callable[[torch.Tensor, list[int]], torch.Tensor]
CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Poland": "Warsaw",
    "Austria": "Vienna",
    "Greece": "Athens",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Denmark": "Copenhagen",
    "Finland": "Helsinki",
    "Ireland": "Dublin",
    "Hungary": "Budapest",
    "Egypt": "Cairo",
    "Kenya": "Nairobi",
    "Japan": "Tokyo",
    "China": "Beijing",
    "India": "Delhi",
    "Thailand": "Bangkok",
    "Australia": "Canberra",
    "New Zealand": "Wellington",
    "Canada": "Ottawa",
    "Brazil": "Bras",
    "Argentina": "Buenos Aires",
    "Chile": "Santiago",
    "Peru": "Lima",
    "Turkey": "Ankara",
    "Nigeria": "Abuja",
    "Switzerland": "Bern",
}
SENTENCES = """\
My brother sold his bicycle last week and now he walks to the office every day.
Because it had rained all night, the small river behind our house was brown and loud.
Seven people were waiting at the bus stop when the first snow of the winter began to fall.
please send me the list of names before the meeting starts tomorrow morning
"You are late again," said the teacher, but she was smiling when she said it.
Water boils at a lower temperature on a mountain, so beans take longer to cook there.
Nobody knew who had painted the door green, and nobody asked twice.
In 1969 two people walked on the moon while a third one stayed in orbit around it.
A cat that has been asleep for an hour will stretch before it does anything else.
Bread, butter and a little salt were all that the cook had left on the table.
When you divide a number by itself, the result is one, unless the number is zero.
Yesterday the old fisherman walked slowly down to the bank of the river again.
She opened the letter, read it twice, folded it, and put it back into the drawer.
def add(first, second): return first + second
Although the museum was closed on Mondays, the guard let the children in for a minute.
Three of the four engines had stopped, and the captain spoke calmly to the passengers.
Every evening my grandmother told us the same story, and every evening we wanted to hear it.
If the price of wheat rises, bakers will buy less of it or ask more for their bread.
Music from the street came through the open window and woke the baby.
Dear Sir, I am writing to you about the noise that your dog makes at night.
The committee that the two ministers had appointed in spring never met before autumn.
Plants turn light, water and air into sugar, and most animals live on what plants make.
On the left you see the old harbour, on the right the tower from which ships were watched.
He counted the coins again: two of gold, five of silver, and one that he had never seen before.
Long before there were maps, sailors knew the coast by the shape of its hills.
This sentence is about nothing in particular, and it ends when it has enough words.
Our neighbours have a parrot which can say the names of all their children.
The bank in town had closed at noon, so the old fisherman walked slowly down to the river.
What would you do if you found a bag full of money on your way home?
Light from the nearest star needs more than four years to reach us.
""".splitlines()
PROMPTS = [f"The capital of {country} is" for country in list(CAPITALS)[1:16]] + [
    "The opposite of hot is",
    "The sun rises in the",
    "My favourite colour is",
    "One, two, three, four,",
    "She put the key into the",
    "The author of Hamlet is William",
    "Once upon a",
    "The largest planet is",
    "A dog is a kind of",
    "Thank you very",
    "Monday, Tuesday, Wednesday,",
    "The children went to the",
    "He drank a cup of",
    "The cat sat on the",
    "Water is made of hydrogen and",
]


def heads_at_work(chat: Pretrained, ids: torch.Tensor) -> torch.Tensor:
    """The attention weights of all layers: layers batch heads queries keys."""
    with capture(chat.model, "layers.*.self_attention.weights") as seen:
        chat.model(ids)
    return seen.stack()


def repeated(seed: int, n_rows: int = 4) -> torch.Tensor:
    """Random tokens, and the same once more."""
    ids = torch.randint(1000, 40_000, (n_rows, HALF), generator=torch.Generator().manual_seed(seed))
    return torch.cat([ids, ids], dim=1)


def to_zero(context: torch.Tensor, heads: list[int]) -> torch.Tensor:
    """What the heads of a layer hand on, batch heads tokens d_head, with nothing from these."""
    return context.index_fill(1, torch.tensor(heads), 0.0)


def to_mean(context: torch.Tensor, heads: list[int]) -> torch.Tensor:
    """The same with their mean over all tokens: a head's constant part stays, what it found out does not."""
    context[:, heads] = context[:, heads].mean(dim=(0, 2), keepdim=True)
    return context


def loss_without(chat: Pretrained, heads: list[Head], ids: torch.Tensor, edit: Edit = to_zero) -> list[float]:
    """The loss on the first half and on its repetition, in nats, with these heads switched off."""
    in_layer = defaultdict(list)
    for layer, head in heads:
        in_layer[layer].append(head)

    def switched_off(numbers: list[int]):
        return lambda context: edit(context, numbers)

    edits = {f"layers.{layer}.self_attention.context": switched_off(numbers) for layer, numbers in in_layer.items()}
    with patch(chat.model, edits):
        logits = chat.model(ids)
    losses = functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    losses, half = losses.view(len(ids), -1), ids.shape[1] // 2
    return [round(float(part.mean()), 2) for part in (losses[:, : half - 1], losses[:, half:])]


def best_words(chat: Pretrained, log_probabilities: torch.Tensor, n: int = 5) -> list[list]:
    """The most probable next words with their probabilities."""
    best = log_probabilities.exp().topk(n)
    return [
        [chat.tokenizer.decode([one]), round(float(p), 3)]
        for one, p in zip(best.indices.tolist(), best.values, strict=True)
    ]


# Attacks: each returns what it found, whichever way it went -----------------------------------------------------------


def asked(chat: Pretrained, questions: list[str], n_tokens: int) -> list[str]:
    """The answers to questions, each the first of its own conversation."""
    assert chat.template is not None
    texts = [chat.template.render([{"role": "user", "content": one}]) for one in questions]
    rows = [chat.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    is_real = torch.tensor([[False] * (longest - len(row)) + [True] * len(row) for row in rows])
    found = greedy_search(chat.model, ids, is_real=is_real, eos_id=chat.end_ids, max_new_tokens=n_tokens)
    return [chat.tokenizer.decode(one.token_ids) for one in found]


def attack_on_knowledge(chat: Pretrained) -> dict:
    """Thirty capitals and thirty sums: is a capital mostly right, and a sum mostly wrong?"""
    generator = torch.Generator().manual_seed(0)
    sums = [tuple(pair) for pair in torch.randint(11, 90, (30, 2), generator=generator).tolist()]
    capitals = asked(chat, [f"What is the capital of {country}?" for country in CAPITALS], 24)
    added = asked(chat, [f"What is {a} + {b}?" for a, b in sums], 100)
    small = [(a, b) for a in range(1, 10) for b in range(1, 10)]
    added_small = asked(chat, [f"What is {a} + {b}?" for a, b in small], 24)

    def right(pair: tuple, said: str) -> bool:
        return re.search(rf"\b{sum(pair)}\b", said) is not None

    return {
        "capitals right": sum(city in said for city, said in zip(CAPITALS.values(), capitals, strict=True)),
        "capitals": dict(zip(CAPITALS, capitals, strict=True)),
        "sums right": sum(map(right, sums, added)),
        "sums": {f"{a} + {b}": said for (a, b), said in zip(sums, added, strict=True)},
        "sums of two digits 1 to 9 right, of 81": sum(map(right, small, added_small)),
    }


def attack_on_the_sink(chat: Pretrained) -> dict:
    """Thirty sentences: the first token's share, its rivals, its vector, its values, and what its values are worth."""
    n_layers = chat.model.config.n_layers
    rows = []
    for text in SENTENCES:
        ids = chat.ids(text)
        n = ids.shape[1]
        with capture(chat.model, "layers.*.self_attention.weights", "layers.*.self_attention.v") as seen:
            chat.model(ids)
        weights = torch.stack([seen[f"layers.{layer}.self_attention.weights"] for layer in range(n_layers)])
        values = torch.stack([seen[f"layers.{layer}.self_attention.v"] for layer in range(n_layers)]).norm(dim=-1)
        on_first = first_token_score(weights)
        others = [weights[..., place:, place].mean(dim=(0, 1, 2, 3)) for place in range(1, n - 2)]
        stream = residual_stream(chat.model, ids)[:, 0].norm(dim=-1)
        lost = [loss_without_values(chat, ids, place) for place in (None, 0, 1, 2)]
        rows.append(
            {
                "tokens": n,
                "first token": chat.tokens(text)[0],
                "share": round(float(on_first.mean()), 3),
                "share by chance": round(sum(1 / k for k in range(1, n + 1)) / n, 3),
                "largest share of another": round(float(max(others)), 3),
                "heads above a half": int((on_first > 0.5).sum()),
                "length by median of others": [
                    float(f"{stream[layer, 0] / stream[layer, 1:].median():.2g}") for layer in (5, 10, 15, 20, 25, 30)
                ],
                "length of its values by median of others": round(
                    float((values[..., 0] / values[..., 1:].median(dim=-1).values).median()), 2
                ),
                "loss": lost[0],
                "loss without the values of its 1st, 2nd and 3rd token": lost[1:],
            }
        )
    return {"sentences": rows}


def loss_without_values(chat: Pretrained, ids: torch.Tensor, place: int | None) -> float:
    """The loss on the tokens from the fifth on, where nobody gets the value of the token at this place."""

    def without(value: torch.Tensor) -> torch.Tensor:
        return value.index_fill(2, torch.tensor([place]), 0.0)

    names = [f"layers.{layer}.self_attention.v" for layer in range(chat.model.config.n_layers)]
    with patch(chat.model, {} if place is None else dict.fromkeys(names, without)):
        logits = chat.model(ids)
    return round(float(functional.cross_entropy(logits[0, 3:-1], ids[0, 4:])), 2)


def attack_on_induction(chat: Pretrained, order: list[Head]) -> dict:
    """Thirty other texts; other heads of the same layers; other ways to switch off; text in place of noise."""
    n_heads, best = chat.model.config.n_heads, order[:8]
    same_layers = [
        (layer, head)
        for layer in sorted({layer for layer, _ in best})
        for head in range(n_heads)
        if (layer, head) not in order[:30]
    ]
    rows, again = [], []
    for seed in ATTACK_SEEDS:
        generator = torch.Generator().manual_seed(seed)
        ids = repeated(seed, 2)
        drawn = [same_layers[place] for place in torch.randperm(len(same_layers), generator=generator)[:8].tolist()]
        found = {
            "none": loss_without(chat, [], ids),
            "best 4": loss_without(chat, order[:4], ids),
            "best 4, mean kept": loss_without(chat, order[:4], ids, to_mean),
            "best 8": loss_without(chat, best, ids),
            "8 others of the same layers": loss_without(chat, drawn, ids),
        }
        rows.append(found)
    for seed in ATTACK_SEEDS[:10]:
        ids = repeated(seed, 2)
        score = induction_score(heads_at_work(chat, ids), ids)
        again.append([list(divmod(place, n_heads)) for place in score.flatten().topk(8).indices.tolist()])
    real = []
    for text in SENTENCES[:10]:
        half = chat.ids(text)[:, :HALF]
        ids = torch.cat([half, half], dim=1)
        real.append({"none": loss_without(chat, [], ids), "best 8": loss_without(chat, best, ids)})
    return {
        "losses": rows,
        "best 4": [list(head) for head in order[:4]],
        "best 8 of other texts": again,
        "sentences said twice": real,
    }


def attack_on_the_lens(chat: Pretrained) -> dict:
    """Thirty prompts: where the last layer's word comes to lead, and what the lens shows before."""
    rows, early = [], []
    for prompt in PROMPTS:
        logits = logit_lens(chat.model, chat.ids(prompt))[:, 0, -1]
        answer = int(logits[-1].argmax())
        ranks = (logits > logits[:, answer : answer + 1]).sum(dim=-1) + 1
        guesses = [chat.tokenizer.decode([one]) for one in logits.argmax(dim=-1).tolist()]
        early += guesses[5:21]
        leads = max((depth + 1 for depth, rank in enumerate(ranks.tolist()) if rank > 1), default=0)
        near = max((depth + 1 for depth, rank in enumerate(ranks.tolist()) if rank > 10), default=0)
        rows.append({"prompt": prompt, "answer": guesses[-1], "leads from": leads, "among ten from": near})
    blank = [one for one in early if not any(letter.isalnum() for letter in one)]
    return {"prompts": rows, "guesses of layers 5 to 20": len(early), "of them without a letter or digit": len(blank)}


def attack_on_temperature(chat: Pretrained) -> dict:
    """Thirty prompts: how many words share nine tenths of the probability."""
    rows = []
    for prompt in PROMPTS:
        logits = chat.model(chat.ids(prompt))[0, -1]
        counts = {}
        for t in TEMPERATURES:
            sorted_ = (logits / t).softmax(dim=-1).sort(descending=True).values
            counts[str(t)] = int((sorted_.cumsum(dim=0) < 0.9).sum()) + 1
        rows.append(counts)
    return {"words that share nine tenths": rows}


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
    whole_lens = logit_lens(chat.model, chat.ids(PROMPT))[:, 0].log_softmax(dim=-1)
    lens = whole_lens[:, -1]
    guessed = [[best_words(chat, one) for one in rows] for rows in whole_lens.unbind(dim=1)]  # by token and layer
    (paris,) = chat.tokenizer.encode(" Paris").ids
    log_probabilities = chat.model(chat.ids(CONTINUED))[0, -1]
    on_text, of_repetition = heads_at_work(chat, chat.ids(BANK)), heads_at_work(chat, chat.ids(REPETITION))
    cache, n_bytes = DecoderCache(chat.model.config.n_layers), {}
    for length in LENGTHS:
        chat.model.decode(torch.zeros(1, length - cache.n_tokens, dtype=torch.int64), None, cache)
        n_bytes[str(length)] = cache.n_bytes
    results = {
        "repetition": {
            "text": REPETITION,
            "tokens": chat.tokens(REPETITION),
        },
        "lens": {
            "prompt": PROMPT,
            "tokens": chat.tokens(PROMPT),
            "words": [[[word for word, _ in one] for one in rows] for rows in guessed],
            "chances": [[[chance for _, chance in one] for one in rows] for rows in guessed],
            "rank_of_Paris": [int((one > one[paris]).sum()) + 1 for one in lens],
        },
        "next_words": {
            "prompt": CONTINUED,
            "by_temperature": {
                str(t): best_words(chat, (log_probabilities / t).log_softmax(dim=-1), 8) for t in TEMPERATURES
            },
        },
        "heads": {
            "first token": [[round(x, 3) for x in row] for row in first_token_score(on_text).tolist()],
            "token before": [[round(x, 3) for x in row] for row in previous_token_score(weights).tolist()],
            "after an earlier twin": [[round(x, 3) for x in row] for row in induction.tolist()],
        },
        "switched_off": switched_off,
        "cache": {"bytes by tokens": n_bytes},
        "attacks": {
            "knowledge": attack_on_knowledge(chat),
            "sink": attack_on_the_sink(chat),
            "induction": attack_on_induction(chat, order),
            "lens": attack_on_the_lens(chat),
            "temperature": attack_on_temperature(chat),
        },
    }
    weights_of_repetition = {"repetition": of_repetition[:, 0].half()}
    seeds = [0, *SEEDS, *ATTACK_SEEDS]
    _record.write("pretrained_recording", results, seeds=seeds, started=started, weights=weights_of_repetition)


if __name__ == "__main__":
    main()
